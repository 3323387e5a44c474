//! What sort of value a variable takes.

/// How a value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UCX_TLS.
    UcxTls,
    /// UCX_NET_DEVICES.
    UcxNetDevices,
    /// Another UCX allow list.
    UcxList,
    /// UCX: y or n.
    Bool,
    /// UCX: y, n or try.
    Ternary,
    /// UCX: y, n, try or auto.
    TernaryAuto,
    /// UCX: on, off or auto.
    OnOffAuto,
    /// UCX: a time with a unit.
    Time,
    /// UCX: a time, inf or auto.
    TimeOrWord,
    /// UCX: a size in bytes.
    Memory,
    /// UCX: a bandwidth.
    Bandwidth,
    /// UCX: an unsigned number or inf.
    Uint,
    /// UCX: a number, inf or auto.
    Ulong,
    /// UCX: an integer.
    Int,
    /// UCX: a number with a point.
    Float,
    /// UCX: a hexadecimal number or auto.
    Hex,
    /// UCX: one of some words, in any case.
    Enum(&'static str),
    /// NCCL: an integer by `strtoll`.
    NcclInt,
    /// NCCL_IB_HCA.
    NcclHca,
    /// NCCL interface names.
    NcclIfname,
    /// NCCL distance levels.
    NcclLevel,
    /// libfabric: a switch.
    FiBool,
    /// aws-ofi-nccl: a switch.
    OfiBool,
    /// On if set at all, whatever the value.
    Presence,
    /// On only if exactly `1`.
    ExactlyOne,
    /// Once a variable, no longer.
    Removed,
    /// Never a variable, though people set it.
    Unread,
    /// Anything else.
    Text,
}

impl Kind {
    /// Reads the code that the tables use.
    pub fn parse(code: &'static str) -> Option<Self> {
        if let Some(words) = code.strip_prefix("enum:") {
            return (!words.is_empty()).then_some(Self::Enum(words));
        }
        Some(match code {
            "ucx-tls" => Self::UcxTls,
            "ucx-net-devices" => Self::UcxNetDevices,
            "ucx-list" => Self::UcxList,
            "bool" => Self::Bool,
            "ternary" => Self::Ternary,
            "ternary-auto" => Self::TernaryAuto,
            "on-off-auto" => Self::OnOffAuto,
            "time" => Self::Time,
            "time-or-word" => Self::TimeOrWord,
            "memory" => Self::Memory,
            "bandwidth" => Self::Bandwidth,
            "uint" => Self::Uint,
            "ulong" => Self::Ulong,
            "int" => Self::Int,
            "float" => Self::Float,
            "hex" => Self::Hex,
            "nccl-int" => Self::NcclInt,
            "nccl-hca" => Self::NcclHca,
            "nccl-ifname" => Self::NcclIfname,
            "nccl-level" => Self::NcclLevel,
            "fi-bool" => Self::FiBool,
            "ofi-bool" => Self::OfiBool,
            "presence" => Self::Presence,
            "one" => Self::ExactlyOne,
            "removed" => Self::Removed,
            "unread" => Self::Unread,
            "text" => Self::Text,
            _ => return None,
        })
    }
}
