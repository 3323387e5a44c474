//! What all connections share.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::watch;

use crate::fault::{Fault, PodEvent, What};
use crate::objects::World;
use crate::pod::{Container, put};
use crate::record::{Journal, lock};
use crate::rights::{Rights, Token, User};
use crate::states;
use crate::status::Wanted;

/// Namespace, pod, container.
pub(crate) type Place = (String, String, String);
/// How each container behaves.
pub(crate) type Containers = BTreeMap<Place, Arc<Container>>;

/// A session that runs.
#[derive(Debug)]
pub(crate) struct Live {
    place: Place,
    tell: watch::Sender<Option<PodEvent>>,
}

#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) world: Mutex<World>,
    pub(crate) containers: Mutex<Containers>,
    pub(crate) faults: Mutex<Vec<Fault>>,
    pub(crate) users: Mutex<Vec<User>>,
    pub(crate) tokens: Mutex<BTreeMap<String, Token>>,
    /// Client certificates that were issued, with their users.
    pub(crate) certificates: Mutex<Vec<(Vec<u8>, String)>>,
    pub(crate) journal: Journal,
    pub(crate) live: Mutex<BTreeMap<usize, Live>>,
    /// Process groups of commands that run.
    pub(crate) children: Mutex<BTreeSet<u32>>,
    /// Where commands run that have no tree.
    pub(crate) scratch: PathBuf,
    /// Subprotocols that exec agrees on, the preferred one first.
    pub(crate) protocols: Vec<&'static str>,
    /// The minor version of the server.
    pub(crate) minor: u32,
    pub(crate) secure: bool,
    /// So many bytes of what a connection sent are kept.
    pub(crate) keep: usize,
}

/// Whom a request comes from.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) name: String,
    pub(crate) rights: Rights,
}

impl Hub {
    /// The user of a token; `None` for a token that is unknown or has expired.
    pub(crate) fn user_of_token(&self, token: &str) -> Option<Caller> {
        let tokens = lock(&self.tokens);
        let token = tokens.get(token)?;
        if token.expires.is_some_and(|at| Instant::now() >= at) {
            return None;
        }
        Some(self.user(&token.user))
    }

    pub(crate) fn user_of_certificate(&self, der: &[u8]) -> Option<Caller> {
        let known = lock(&self.certificates);
        let found = known.iter().find(|(known, _)| known == der);
        found.map(|(_, user)| self.user(user))
    }

    /// A user by name; nobody has given rights to one that the scenario does not know.
    pub(crate) fn user(&self, name: &str) -> Caller {
        let users = lock(&self.users);
        let known = users.iter().find(|user| user.name == name);
        Caller {
            name: name.to_owned(),
            rights: known.map_or_else(Rights::none, |user| user.rights.clone()),
        }
    }

    /// The faults that strike a request, in their order.
    pub(crate) fn struck(&self, verb: &str, what: &Wanted<'_>, container: &str) -> Vec<What> {
        lock(&self.faults)
            .iter_mut()
            .filter_map(|fault| {
                fault
                    .strikes(verb, what, container)
                    .then(|| fault.what.clone())
            })
            .collect()
    }

    pub(crate) fn enter(&self, exec: usize, place: Place) -> watch::Receiver<Option<PodEvent>> {
        let (tell, told) = watch::channel(None);
        lock(&self.live).insert(exec, Live { place, tell });
        told
    }

    pub(crate) fn leave(&self, exec: usize) {
        lock(&self.live).remove(&exec);
        self.journal.exec_over(exec);
    }

    /// Something happens to a pod, and to the commands in it. Restarting is about one container.
    pub(crate) fn happen(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        event: PodEvent,
    ) -> bool {
        let done = {
            let mut world = lock(&self.world);
            match event {
                PodEvent::Deleted | PodEvent::DeletedAndReset => {
                    world.remove_pod(namespace, pod).is_some()
                }
                PodEvent::Restarted => {
                    world.change_pod(namespace, pod, |object| states::restart(object, container))
                }
                PodEvent::Replaced => world.change_pod(namespace, pod, |object| {
                    let old = object
                        .pointer("/metadata/uid")
                        .and_then(|uid| uid.as_str())
                        .unwrap_or_default();
                    let uid = crate::ids::uid(&format!("after {old}"));
                    put(object, "/metadata/uid", uid.into());
                    let statuses = object
                        .pointer_mut("/status/containerStatuses")
                        .and_then(|list| list.as_array_mut());
                    for status in statuses.into_iter().flatten() {
                        let old = status
                            .get("containerID")
                            .map(ToString::to_string)
                            .unwrap_or_default();
                        let id = crate::ids::hex(&format!("after {old}"), 64);
                        put(status, "/containerID", format!("containerd://{id}").into());
                    }
                }),
            }
        };
        let whole_pod = event != PodEvent::Restarted;
        for live in lock(&self.live).values() {
            let (live_namespace, live_pod, live_container) = &live.place;
            if live_namespace == namespace
                && live_pod == pod
                && (whole_pod || live_container == container)
            {
                let _ = live.tell.send(Some(event));
            }
        }
        done
    }

    pub(crate) fn kill_all(&self) {
        let children: Vec<u32> = lock(&self.children).iter().copied().collect();
        for child in children {
            kill(child);
        }
    }
}

/// Kills a process group, as a runtime does with all processes of a container.
pub(crate) fn kill(leader: u32) {
    if let Some(pid) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}
