//! From the stream of the collecting script to facts.

mod facts;
mod gpu;
mod host;
mod interfaces;
mod process;
mod queue_pairs;
mod rdma;
mod sockets;
mod software;
mod topology;
mod values;

use std::borrow::Cow;
use std::sync::Arc;

use model::observation::{
    Completeness, Merge as _, Observation, Provenance, Section, Tool, Unanswered,
};

use crate::recognise::recognise;
use crate::stream::Stream;
use facts::Facts;
pub use process::library_name;

/// Tools of the script and their command lines, in the order in which they run.
const COMMANDS: [(&str, &str); 9] = [
    ("tool:nvidia-smi-q", "nvidia-smi -q"),
    ("tool:nvidia-smi-topo", "nvidia-smi topo -m"),
    ("tool:nvidia-smi-nvlink", "nvidia-smi nvlink -s"),
    ("tool:rdma-system", "rdma system show"),
    ("tool:rdma-link", "rdma link show"),
    ("tool:ibv_devinfo", "ibv_devinfo"),
    ("tool:ucx_info-v", "ucx_info -v"),
    ("tool:ucx_info-d", "ucx_info -d"),
    ("tool:fi_info", "fi_info -l"),
];

/// Makes facts of a stream.
///
/// A fact that the stream does not hold is missing with the reason that the stream gives: the file is not there,
/// access was refused, or collection stopped before.
pub fn observation(stream: &Stream) -> Observation {
    let facts = Facts::new(stream);
    let mut seen = Observation::default();
    seen.sections.push(section(stream));
    host::read(&facts, &mut seen);
    gpu::read(&facts, &mut seen);
    interfaces::read(&facts, &mut seen);
    process::read(&facts, &mut seen);
    software::read(&facts, &mut seen);
    rdma::read(&facts, &mut seen);
    topology::read(&facts, &mut seen);
    for (id, command) in COMMANDS {
        if let Some(text) = facts.tool(id) {
            // With the command line before it, as in a saved session, so that nothing is left to be guessed.
            seen.merge(recognise(command, &format!("$ {command}\n{text}")));
        }
    }
    seen
}

/// The stream as a whole, so that everybody can see whether a part of it is missing.
fn section(stream: &Stream) -> Section {
    Section {
        from: Arc::new(Provenance {
            file: "this machine".to_owned(),
            tool: Tool::SysfsDump,
            section: 0,
            place: None,
            command: None,
        }),
        lines: (1, u32::try_from(stream.records.len()).unwrap_or(u32::MAX)),
        completeness: match stream.gap() {
            None => Completeness::Whole,
            Some(gap) => Completeness::Cut(gap.to_string()),
        },
    }
}

/// Why a tool of the script gave nothing, by its command line: for the part of a report that says what is missing.
pub fn tools_without_output(stream: &Stream) -> Vec<(Cow<'static, str>, Unanswered)> {
    let facts = Facts::new(stream);
    COMMANDS
        .iter()
        .filter_map(|(id, command)| Some((Cow::Borrowed(*command), facts.tool_gap(id)?)))
        .collect()
}
