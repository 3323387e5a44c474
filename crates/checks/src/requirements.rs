//! Which facts a command requires, and what its verdict is without them.

use model::{Outcome, Readiness};

/// A fact that a verdict needs.
pub struct Required {
    /// The command that needs it.
    pub command: &'static str,
    /// The fact.
    pub fact: &'static str,
    /// Why the verdict needs it.
    pub why: &'static str,
    /// The best readiness without it. A failed check still makes it `blocked`.
    pub without: Readiness,
    /// What becomes of an input that lacks it, where it is a fact about inputs.
    pub outcome: Option<Outcome>,
}

/// Every required fact, by command.
pub const REQUIRED: &[Required] = &[
    Required {
        command: "env",
        fact: "every path that is given exists",
        why: "a path that is missing may have held the role or the setting that decides",
        without: Readiness::Inconclusive,
        outcome: Some(Outcome::Missing),
    },
    Required {
        command: "env",
        fact: "every input can be read, and every document in it parses",
        why: "a part that is lost may have held the role or the setting that decides",
        without: Readiness::Inconclusive,
        outcome: Some(Outcome::Broken),
    },
    Required {
        command: "env",
        fact: "a prefill or a decode worker",
        why: "without one no KV cache moves between workers",
        without: Readiness::NotApplicable,
        outcome: None,
    },
    Required {
        command: "env",
        fact: "the KV connector of every prefill and decode worker",
        why: "without it nothing tells what carries KV cache, or whether anything does; a script or a configuration inside the image hides it",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "env",
        fact: "a proven transfer for every pair of prefill and decode",
        why: "files say what is meant, never what carried the bytes; env cannot gather this fact",
        without: Readiness::Unproven,
        outcome: None,
    },
    Required {
        command: "node",
        fact: "every output that is given is known and can be read",
        why: "what is lost may have shown the fault",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "node",
        fact: "the collection came to its end",
        why: "what comes after the place where it stopped was not looked at",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "node",
        fact: "the environment and the command line of an engine that runs here",
        why: "a setting that could not be read is not a setting that is not there",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "node",
        fact: "an RDMA device, or a role that says whether one is needed",
        why: "a machine without a fabric is a fault for a KV worker only",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "node",
        fact: "a proven transfer",
        why: "one end shows what could carry KV, never what did",
        without: Readiness::Unproven,
        outcome: None,
    },
    Required {
        command: "node --pod",
        fact: "all",
        why: "pods are not part of this version: nothing is looked at",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "nixl --from",
        fact: "UCX's protocol table of a READ to the peer, or a fault that is seen",
        why: "nothing else in a log names what carried the payload; lanes are a hint, and a backend that was instantiated tells nothing",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "nixl --from",
        fact: "every log that is given is text, and something in it is known",
        why: "what is lost may have shown the fault; an empty output of a process whose other output is read is none",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "nixl --from",
        fact: "a proven transfer",
        why: "a log has one kind of evidence, and a proof needs two",
        without: Readiness::Unproven,
        outcome: None,
    },
    Required {
        command: "nixl",
        fact: "all",
        why: "without --from the command is not part of this version: nothing is looked at",
        without: Readiness::Inconclusive,
        outcome: None,
    },
];
