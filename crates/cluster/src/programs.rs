//! Programs that run for a while: kubectl and its like, credential plugins. None of them outlives whoever needs it.

#[cfg(unix)]
use std::sync::Mutex;

use tokio::process::Child;

/// Process groups of programs that run.
#[cfg(unix)]
static RUNNING: Mutex<Vec<rustix::process::Pid>> = Mutex::new(Vec::new());

/// Ends every program that still runs, and what it has started: for a run that ends at once, without its own order.
pub fn end_programs() {
    #[cfg(unix)]
    if let Ok(running) = RUNNING.lock() {
        for group in running.iter() {
            let _gone = rustix::process::kill_process_group(*group, rustix::process::Signal::KILL);
        }
    }
}

/// A program, the first of a process group of its own, that is ended, with what it has started, when nobody needs it
/// any more.
pub(crate) struct Running {
    pub(crate) child: Child,
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
}

impl Running {
    pub(crate) fn new(child: Child) -> Self {
        #[cfg(unix)]
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw);
        #[cfg(unix)]
        if let (Some(group), Ok(mut running)) = (group, RUNNING.lock()) {
            running.push(group);
        }
        Self {
            child,
            #[cfg(unix)]
            group,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.group {
            if let Ok(mut running) = RUNNING.lock() {
                running.retain(|other| *other != group);
            }
            // Until its end was waited for, its number belongs to nobody else. Of one that ended by itself what it has left
            // behind is its own affair.
            if self.child.id().is_some() {
                let _gone =
                    rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
        }
    }
}
