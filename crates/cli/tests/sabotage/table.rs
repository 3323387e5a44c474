//! The faults. One more is one more line.

mod environment;
mod flags;
mod gpus;
mod limits;
mod objects;
mod rails;
mod roce;
mod software;

use crate::inside::Fabric;
use crate::worker::Worker;

/// Where faults are planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the variables of the engine's process, and nowhere else.
    Environment,
    /// In the words of its command line.
    Flags,
    /// In RDMA devices and their ports.
    Rails,
    /// In GPUs, their driver and kernel modules.
    Gpus,
    /// In limits and rights.
    Limits,
    /// In libraries and their answers.
    Software,
    /// In objects of the API server, or on the way to the container.
    Objects,
}

/// One fault.
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) worker: &'static str,
    pub(crate) plant: fn(&mut Worker),
    /// The cause that must name the worker; empty where nothing may be said.
    pub(crate) cause: &'static str,
    pub(crate) place: Place,
    /// Causes that are told of a pair or a role as a whole as well.
    pub(crate) pairs: &'static [&'static str],
    /// The fabric of the deployment.
    pub(crate) fabric: Fabric,
    /// Options of the run.
    pub(crate) options: &'static [&'static str],
}

impl Fault {
    fn pairs(mut self, causes: &'static [&'static str]) -> Self {
        self.pairs = causes;
        self
    }

    fn options(mut self, options: &'static [&'static str]) -> Self {
        self.options = options;
        self
    }
}

/// One that must be named.
fn fault(
    name: &'static str,
    worker: &'static str,
    plant: fn(&mut Worker),
    cause: &'static str,
) -> Fault {
    Fault {
        name,
        worker,
        plant,
        cause,
        place: Place::Environment,
        pairs: &[],
        fabric: Fabric::InfiniBand,
        options: &[],
    }
}

/// One difference that must not be told as a fault.
fn harmless(name: &'static str, worker: &'static str, plant: fn(&mut Worker)) -> Fault {
    fault(name, worker, plant, "")
}

/// All of them.
pub(crate) fn all() -> Vec<Fault> {
    let mut all = Vec::new();
    for (place, faults) in [
        (Place::Environment, environment::all()),
        (Place::Flags, flags::all()),
        (Place::Rails, rails::all()),
        (Place::Rails, roce::all()),
        (Place::Gpus, gpus::all()),
        (Place::Limits, limits::all()),
        (Place::Software, software::all()),
        (Place::Objects, objects::all()),
    ] {
        all.extend(faults.into_iter().map(|fault| Fault { place, ..fault }));
    }
    all
}
