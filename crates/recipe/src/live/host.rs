//! A host as a worker: nothing is written of it, and its engine process tells all.

use std::sync::Arc;

use model::{Engine, Place, Role, Worker};

/// A worker of which nothing but its host is known. What its engine has is laid over it.
pub fn of_host(name: &str) -> Worker {
    Worker {
        name: name.to_owned(),
        container: String::new(),
        kind: Arc::from("Host"),
        role: Role::Other,
        role_place: None,
        named: None,
        place: Place {
            file: format!("host {name}").into(),
            line: 0,
            column: 0,
            text: Arc::from(""),
            mark: (0, 0),
        },
        engine: Engine::Unknown,
        engine_is_assumed: false,
        image: None,
        settings: Vec::new(),
        possible: Vec::new(),
        overridden: Vec::new(),
        unknown_names: Vec::new(),
        resources: Vec::new(),
        accelerators: None,
        accelerator: None,
        claims: Vec::new(),
        privileged: true,
        capabilities: Vec::new(),
        run_as_user: None,
        host_network: true,
        host_ipc: true,
        host_pid: true,
        host_paths: Vec::new(),
        annotations: Vec::new(),
        nodes: 1,
        replicas: None,
        has_command: false,
        hidden: Vec::new(),
        pod: None,
        part: None,
        starts_mpirun: false,
        by_dynamo: false,
        command_fault: None,
        uses_cluster_names: None,
    }
}
