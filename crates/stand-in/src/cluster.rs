//! A scenario, and the server that plays it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

use crate::certs::{Authority, Certificate};
use crate::fault::Fault;
use crate::hub::{Containers, Hub};
use crate::kubeconfig::{Basis, Login};
use crate::objects::{Kind, World};
use crate::pod::Pod;
use crate::proxy;
use crate::record::Journal;
use crate::rights::{Rights, Token, User};
use crate::scenario;
use crate::server;
use crate::stand_in::{StandIn, TOKEN, token_of};

/// A scenario: what there is, who may do what, and what goes wrong.
#[derive(Debug)]
pub struct Cluster {
    namespace: String,
    namespaces: BTreeSet<String>,
    objects: Vec<Value>,
    kinds: Vec<Kind>,
    pods: Vec<(String, Pod)>,
    faults: Vec<Fault>,
    users: Vec<User>,
    tls: Option<Certificate>,
    protocols: Vec<&'static str>,
    minor: u32,
    keep: usize,
    threads: usize,
}

impl Default for Cluster {
    fn default() -> Self {
        Self::new()
    }
}

impl Cluster {
    /// Two nodes, the namespace `default`, one user with all rights, plain HTTP.
    pub fn new() -> Self {
        Self {
            namespace: "default".to_owned(),
            namespaces: BTreeSet::from(["default".to_owned()]),
            objects: Vec::new(),
            kinds: Vec::new(),
            pods: Vec::new(),
            faults: Vec::new(),
            users: vec![User::new("stand-in-user")],
            tls: None,
            protocols: vec!["v5.channel.k8s.io", "v4.channel.k8s.io"],
            minor: 32,
            keep: 8 << 20,
            threads: 2,
        }
    }

    /// Reads a directory with a `scenario.json`; its form is described in `scenario.rs`.
    pub fn from_directory(directory: &Path) -> io::Result<Self> {
        scenario::read(directory)
    }

    /// The namespace of the pods that follow, and of the kubeconfig.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        self.namespaces.insert(namespace.to_owned());
        self
    }

    /// Adds a pod.
    #[must_use]
    pub fn pod(mut self, pod: Pod) -> Self {
        let namespace = pod
            .namespace
            .clone()
            .unwrap_or_else(|| self.namespace.clone());
        self.namespaces.insert(namespace.clone());
        self.pods.push((namespace, pod));
        self
    }

    /// Adds any object: nodes, Dynamo graph deployments, config maps. A kind that no cluster has by itself becomes known, as if
    /// its CRD were installed.
    #[must_use]
    pub fn object(mut self, object: Value) -> Self {
        self.objects.push(object);
        self
    }

    /// Makes a kind known without an object of it: `nvidia.com/v1alpha1`, `dynamographdeployments`, `DynamoGraphDeployment`.
    #[must_use]
    pub fn serves(mut self, api_version: &str, plural: &str, kind: &str) -> Self {
        self.kinds.push(Kind::new(api_version, plural, kind, true));
        self
    }

    /// Makes Dynamo's kinds known, as its operator's CRDs do; v1beta1 comes first.
    #[must_use]
    pub fn serves_dynamo(self) -> Self {
        ["v1beta1", "v1alpha1"]
            .into_iter()
            .fold(self, |cluster, version| {
                let api_version = format!("nvidia.com/{version}");
                cluster
                    .serves(
                        &api_version,
                        "dynamographdeployments",
                        "DynamoGraphDeployment",
                    )
                    .serves(
                        &api_version,
                        "dynamocomponentdeployments",
                        "DynamoComponentDeployment",
                    )
            })
    }

    /// Adds something that goes wrong.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// What the first user may do; everything otherwise.
    #[must_use]
    pub fn rights(mut self, rights: Rights) -> Self {
        if let Some(user) = self.users.first_mut() {
            user.rights = rights;
        }
        self
    }

    /// Somebody else, who can log in ([`Login::TokenOf`]) or be impersonated.
    #[must_use]
    pub fn user(mut self, user: User) -> Self {
        self.users.push(user);
        self
    }

    /// TLS, with this certificate.
    #[must_use]
    pub fn tls(mut self, certificate: Certificate) -> Self {
        self.tls = Some(certificate);
        self
    }

    /// Only the older subprotocol, as an API server before 1.30 has it. kubectl needs SPDY then, which is not here.
    #[must_use]
    pub fn only_v4(mut self) -> Self {
        self.protocols = vec!["v4.channel.k8s.io"];
        self
    }

    /// The server's minor version, 32 otherwise. From 35 on, an exec over WebSocket needs the right to `create` too.
    #[must_use]
    pub fn minor(mut self, minor: u32) -> Self {
        self.minor = minor;
        self
    }

    /// How many bytes of what each connection sent are kept for [`StandIn::sent`]; 8 MiB otherwise.
    #[must_use]
    pub fn keep(mut self, bytes: usize) -> Self {
        self.keep = bytes;
        self
    }

    /// Threads that serve; two otherwise.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Listens on a free port of the loopback interface.
    pub fn start(self) -> io::Result<StandIn> {
        let directory = tempfile::Builder::new().prefix("stand-in-").tempdir()?;
        let scratch = directory.path().join("scratch");
        std::fs::create_dir(&scratch)?;
        let (world, containers) = self.stored();
        let mut tokens = BTreeMap::new();
        for (number, user) in self.users.iter().enumerate() {
            let text = if number == 0 {
                TOKEN.to_owned()
            } else {
                token_of(&user.name)
            };
            tokens.insert(
                text,
                Token {
                    user: user.name.clone(),
                    expires: None,
                },
            );
        }
        let first = self
            .users
            .first()
            .map(|user| user.name.clone())
            .unwrap_or_default();
        let mut certificates = Vec::new();
        let mut acceptor = None;
        let mut authority_pem = None;
        let mut client = None;
        if let Some(which) = self.tls {
            let authority = Authority::new("stand-in authority")?;
            acceptor = Some(authority.acceptor(&authority.server(which)?)?);
            authority_pem = Some(authority.pem());
            let issued = authority.client(&first)?;
            client = Some((issued.certificate_pem(), issued.key_pem()));
            certificates.push((issued.der, first));
        }
        let hub = Arc::new(Hub {
            world: Mutex::new(world),
            containers: Mutex::new(containers),
            faults: Mutex::new(self.faults),
            users: Mutex::new(self.users),
            tokens: Mutex::new(tokens),
            certificates: Mutex::new(certificates),
            journal: Journal::new(),
            live: Mutex::default(),
            children: Mutex::default(),
            scratch,
            protocols: self.protocols,
            minor: self.minor,
            secure: acceptor.is_some(),
            keep: self.keep,
        });
        let runtime = Builder::new_multi_thread()
            .worker_threads(self.threads)
            .thread_name("stand-in")
            .enable_all()
            .build()?;
        let (listener, address) = listen(&runtime)?;
        let (proxy_listener, proxy) = listen(&runtime)?;
        let scheme = if hub.secure { "https" } else { "http" };
        let basis = Basis {
            url: format!("{scheme}://{address}"),
            namespace: self.namespace,
            authority: authority_pem,
            token: TOKEN.to_owned(),
            certificate: client,
        };
        let kubeconfig = basis.write(directory.path(), "token", &Login::Token)?;
        runtime.spawn(server::accept(listener, Arc::clone(&hub), acceptor));
        let proxied = Arc::default();
        runtime.spawn(proxy::accept(proxy_listener, Arc::clone(&proxied)));
        Ok(StandIn {
            proxy: format!("http://{proxy}"),
            proxied,
            hub,
            runtime: Some(runtime),
            directory,
            basis,
            kubeconfig,
            written: Mutex::new(0),
        })
    }

    fn stored(&self) -> (World, Containers) {
        let mut world = World::new();
        for kind in &self.kinds {
            world.serve(kind.clone());
        }
        for namespace in &self.namespaces {
            world.put(json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace }, "status": { "phase": "Active" },
            }));
        }
        let mut containers = BTreeMap::new();
        let mut nodes = BTreeSet::from(["node-a".to_owned(), "node-b".to_owned()]);
        for (namespace, pod) in &self.pods {
            let object = pod.object(namespace);
            if let Some(node) = object.pointer("/spec/nodeName").and_then(Value::as_str) {
                nodes.insert(node.to_owned());
            }
            world.put(object);
            for container in &pod.containers {
                let place = (namespace.clone(), pod.name.clone(), container.name.clone());
                containers.insert(place, Arc::new(container.clone()));
            }
        }
        for node in &nodes {
            world.put(crate::node::object(node));
        }
        for object in &self.objects {
            world.put(object.clone());
        }
        (world, containers)
    }
}

fn listen(runtime: &Runtime) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let _inside = runtime.enter();
    Ok((TcpListener::from_std(listener)?, address))
}
