//! Distance levels of NCCL: NCCL_NET_GDR_LEVEL and NCCL_P2P_LEVEL.
//!
//! nccl:src/graph/paths.cc:243-280, 512: a word in exact case, or a digit 0..4 of the old scale. Any other word is the
//! default, without a message.

use crate::nccl_ib_hca::atoi;

/// How far apart two devices are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The same device; as a limit: never.
    Loc,
    /// NVLink.
    Nvl,
    /// NVLink through another GPU.
    Nvb,
    /// A chip-to-chip link.
    C2c,
    /// One PCIe switch.
    Pix,
    /// Several PCIe switches.
    Pxb,
    /// PCIe and a chip-to-chip link.
    P2c,
    /// NVLink to a GPU that is near the NIC.
    Pxn,
    /// The host bridge.
    Phb,
    /// The link between CPUs.
    Sys,
}

const LEVELS: &[(&str, Level)] = &[
    ("LOC", Level::Loc),
    ("NVL", Level::Nvl),
    ("NVB", Level::Nvb),
    ("C2C", Level::C2c),
    ("PIX", Level::Pix),
    ("PXB", Level::Pxb),
    ("P2C", Level::P2c),
    ("PXN", Level::Pxn),
    ("PHB", Level::Phb),
    ("SYS", Level::Sys),
];

impl Level {
    /// Reads a value; None where NCCL silently takes its default.
    pub fn parse(value: &str) -> Option<Self> {
        if let Some(&(_, level)) = LEVELS.iter().find(|(word, _)| *word == value) {
            return Some(level);
        }
        if !value.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        Some(match atoi(value) {
            0 => Self::Loc,
            1 => Self::Pix,
            2 => Self::Pxb,
            3 => Self::Phb,
            _ => Self::Sys,
        })
    }

    /// The word that NCCL uses.
    pub fn as_str(self) -> &'static str {
        LEVELS
            .iter()
            .find(|(_, level)| *level == self)
            .map_or("", |&(word, _)| word)
    }
}

#[cfg(test)]
mod tests {
    use super::Level;

    #[test]
    fn words_in_exact_case_and_old_digits() {
        assert_eq!(Level::parse("PXB"), Some(Level::Pxb));
        assert_eq!(Level::parse("0"), Some(Level::Loc));
        assert_eq!(Level::parse("3"), Some(Level::Phb));
        assert_eq!(Level::parse("9"), Some(Level::Sys));
        for word in ["pix", "NODE", "", " SYS", "-1"] {
            assert_eq!(Level::parse(word), None, "{word}");
        }
        assert_eq!(Level::P2c.as_str(), "P2C");
    }
}
