//! NCCL_SOCKET_IFNAME: which network interfaces a value keeps.
//!
//! nccl:src/misc/socket.cc:196, src/os/linux.cc:380-425: the grammar of NCCL_IB_HCA, names are prefixes. A value of at
//! most one character is ignored.

use crate::nccl_ib_hca::NameList;
use crate::version::NcclVersion;

/// NCCL uses at most this many interfaces (nccl:src/os/linux.cc:380).
const MAX_INTERFACES: usize = 16;

/// The value that NCCL acts on; None where it is ignored.
pub fn effective(value: Option<&str>) -> Option<&str> {
    value.filter(|value| value.len() > 1)
}

/// The list that a value is; None where it is ignored and NCCL chooses itself.
pub fn parse(value: &str) -> Option<NameList<'_>> {
    effective(Some(value))
        .map(|value| NameList::parse_at_most(value, NcclVersion::LATEST, MAX_INTERFACES))
}

/// Whether NCCL keeps an interface. With an ignored value this says yes: NCCL's own choice depends on the host.
pub fn keeps(value: Option<&str>, interface: &str) -> bool {
    value
        .and_then(parse)
        .is_none_or(|list| list.keeps(interface, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_prefixes_and_short_values_are_ignored() {
        assert!(keeps(Some("eth"), "eth0") && !keeps(Some("=eth"), "eth0"));
        assert!(keeps(Some("^lo,docker"), "eth0") && !keeps(Some("^lo,docker"), "docker0"));
        assert!(keeps(Some("e"), "lo") && keeps(None, "lo"));
        assert!(!keeps(Some(" eth0"), "eth0"));
        assert_eq!(effective(Some("^")), None);
    }
}
