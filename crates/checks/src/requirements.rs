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
        fact: "the API server, with the right to read the pods",
        why: "without it nobody can tell which workers there are; where nothing was judged for that the exit code is 5",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "node --pod",
        fact: "every pod that was asked for is there and runs, and stays the same while it is looked at",
        why: "a worker that does not run, or is another one now, may be the one with the fault",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "node --pod",
        fact: "the inside of the chosen container of every pod that was asked for",
        why: "what nobody could look into may have shown the fault; the others are judged all the same",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "node --pod",
        fact: "for each container, what `node` requires of a place",
        why: "a pod is a place",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "node --pod",
        fact: "for prefill and decode workers together, what `env` requires of a deployment",
        why: "what the engine processes have is judged by the same rules; the other role is required only where both were asked for",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "node --pod",
        fact: "a prefill or a decode worker",
        why: "without one no KV cache moves between workers",
        without: Readiness::NotApplicable,
        outcome: None,
    },
    Required {
        command: "node --pod",
        fact: "a proven transfer",
        why: "what several places show of themselves never proves what moved between them",
        without: Readiness::Unproven,
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
        command: "nixl --transfer",
        fact: "for each of the two pods, what `node --pod` requires",
        why: "a transfer between workers that cannot run says nothing",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "nixl --transfer",
        fact: "a transfer that came to its end, whose content arrived by hashes of both ends",
        why: "what was not moved was not measured",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "nixl --transfer",
        fact: "a carrier of each leg that UCX's protocol table names and no other evidence contradicts",
        why: "an unknown carrier is never a pass",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "nixl --transfer",
        fact: "two kinds of evidence that agree on RDMA hardware or cuda_ipc, without emulation, in the operation and the memory of the engines (GPU memory unless their buffers are told to be on the host)",
        why: "one kind, other memory or software RDMA is no proof",
        without: Readiness::Unproven,
        outcome: None,
    },
    Required {
        command: "nixl --transfer",
        fact: "over RDMA, at 16 MiB and more, a rate that could be compared with the slower end's link",
        why: "RDMA at an unknown rate is no proof that KV moves at the speed of the fabric; less than a quarter of the link is `degraded`",
        without: Readiness::Unproven,
        outcome: None,
    },
    Required {
        command: "nixl --transfer",
        fact: "two workers on different nodes",
        why: "within one node bytes may never leave the card or the GPU",
        without: Readiness::Unproven,
        outcome: None,
    },
    Required {
        command: "nixl",
        fact: "a process of an engine, here or in the chosen container of every pod",
        why: "what NIXL would do in an engine that does not run cannot be seen",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "nixl",
        fact: "libnixl among the libraries that the engine has loaded",
        why: "without it no KV moves over NIXL there, and nothing of it can be judged; a list that may not be read is not an empty one",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "nixl",
        fact: "the environment of a vLLM that runs with NIXL",
        why: "it holds the address that the engine announces to its peers",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "nixl",
        fact: "of pods, what `node --pod` requires of the way to them",
        why: "what nobody could look into may have shown the fault",
        without: Readiness::Inconclusive,
        outcome: None,
    },
    Required {
        command: "nixl",
        fact: "a proven transfer",
        why: "what one end has loaded, offers and counts never proves what carried the payload; logs and an agent beside the engine add to it and are not required",
        without: Readiness::Unproven,
        outcome: None,
    },
];
