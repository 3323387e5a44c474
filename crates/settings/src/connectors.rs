//! KV connectors of vLLM and of its platform plugins, and what each one does with KV cache.
//!
//! Names are those under which the connectors are registered (vllm:vllm/distributed/kv_transfer/kv_connector/factory.py
//! and the plugins of vllm-ascend, vllm-neuron, tpu-inference and LMCache). This is the only table of them: which
//! workers form a deployment, which library carries the bytes, and which names are slips all follow from it.

use crate::distance::nearest;

/// What a connector does with KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// From prefill to decode, through NIXL.
    Nixl,
    /// From prefill to decode, through Mooncake's transfer engine.
    Mooncake,
    /// From prefill to decode, by a way of its own.
    Otherwise,
    /// To memory, to disk, or to a store that workers share; not from one worker to another.
    Store,
    /// Whatever the connectors inside it do.
    Wrapped,
}

/// A connector that is registered under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connector {
    /// Its name, as `kv_connector` takes it.
    pub name: &'static str,
    /// What it does with KV cache.
    pub carries: Carries,
    /// Which side a worker is on follows from `kv_role`. NIXL takes either direction, whatever `kv_role` says.
    pub obeys_role: bool,
}

const fn connector(name: &'static str, carries: Carries) -> Connector {
    Connector {
        name,
        carries,
        obeys_role: !matches!(carries, Carries::Nixl),
    }
}

/// Every connector that is known.
pub const ALL: [Connector; 23] = [
    connector("NixlConnector", Carries::Nixl),
    connector("NixlPushConnector", Carries::Nixl),
    connector("RixlConnector", Carries::Nixl),
    connector("MooncakeConnector", Carries::Mooncake),
    connector("MooncakeConnectorV1", Carries::Mooncake),
    connector("MooncakeLayerwiseConnector", Carries::Mooncake),
    connector("MooncakeStoreConnector", Carries::Store),
    connector("P2pNcclConnector", Carries::Otherwise),
    connector("PyNcclConnector", Carries::Otherwise),
    connector("MoRIIOConnector", Carries::Otherwise),
    connector("NeuronConnector", Carries::Otherwise),
    connector("AscendConnector", Carries::Otherwise),
    connector("TPUConnector", Carries::Otherwise),
    connector("TPUConnectorHMA", Carries::Otherwise),
    connector("LLMDataDistCMgrConnector", Carries::Otherwise),
    connector("LMCacheConnector", Carries::Store),
    connector("LMCacheConnectorV1", Carries::Store),
    connector("LMCacheMPConnector", Carries::Store),
    connector("OffloadingConnector", Carries::Store),
    connector("SharedStorageConnector", Carries::Store),
    connector("ExampleConnector", Carries::Store),
    connector("DecodeBenchConnector", Carries::Store),
    connector("MultiConnector", Carries::Wrapped),
];

/// The connector of that name.
pub fn lookup(name: &str) -> Option<&'static Connector> {
    ALL.iter().find(|c| c.name == name)
}

/// Whether the connector of that name moves KV cache from prefill to decode.
pub fn moves_kv(name: &str) -> bool {
    lookup(name).is_some_and(|c| {
        matches!(
            c.carries,
            Carries::Nixl | Carries::Mooncake | Carries::Otherwise
        )
    })
}

/// The connector that a name is a slip of: `NixlConector`.
pub fn did_you_mean(name: &str) -> Option<&'static str> {
    slip_of(name, ALL.iter().map(|c| c.name))
}

/// The one of `known` that `name` is a slip of. A later version of a known one is none: LMCacheConnectorV1 and V2.
pub fn slip_of<'k>(name: &str, known: impl Iterator<Item = &'k str> + Clone) -> Option<&'k str> {
    let stem = |n: &str| n.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    if known
        .clone()
        .any(|k| k == name || k.get(..stem(k)) == name.get(..stem(name)))
    {
        return None;
    }
    // In a short name two slips make another name.
    let limit = if name.len() < 8 { 1 } else { 2 };
    nearest(name, known, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_no_slips_of_each_other() {
        for (index, one) in ALL.iter().enumerate() {
            assert!(
                ALL.iter()
                    .skip(index + 1)
                    .all(|other| other.name != one.name)
            );
            assert_eq!(did_you_mean(one.name), None, "{}", one.name);
        }
    }

    #[test]
    fn what_they_do() {
        assert!(moves_kv("NixlConnector") && moves_kv("P2pNcclConnector"));
        assert!(
            !moves_kv("LMCacheConnectorV1") && !moves_kv("MultiConnector") && !moves_kv("Mine")
        );
        assert!(lookup("MooncakeConnector").is_some_and(|c| c.obeys_role));
        assert!(lookup("NixlConnector").is_some_and(|c| !c.obeys_role));
        assert_eq!(did_you_mean("NixlConector"), Some("NixlConnector"));
        assert_eq!(did_you_mean("LMCacheConnectorV2"), None);
        assert_eq!(did_you_mean("OurOwnConnector"), None);
    }
}
