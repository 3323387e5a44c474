//! Versions of UCX and NCCL, as far as a value's meaning depends on them.

use std::fmt;
use std::str::FromStr;

/// A UCX release, by major and minor number: no grammar changed in a patch release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UcxVersion {
    /// Major number.
    pub major: u16,
    /// Minor number.
    pub minor: u16,
}

impl UcxVersion {
    /// The newest UCX whose grammar is modelled here.
    pub const LATEST: Self = Self::new(1, 23);

    /// The version `major.minor`.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for UcxVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for UcxVersion {
    type Err = BadVersion;

    /// Reads `1.23`, also with a patch number or suffix (`1.23.0`, `1.23~rc1`, `v1.23`).
    fn from_str(text: &str) -> Result<Self, BadVersion> {
        let mut numbers = Numbers::new(text);
        Ok(Self {
            major: numbers.required()?,
            minor: numbers.required()?,
        })
    }
}

/// An NCCL release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NcclVersion {
    /// Major number.
    pub major: u16,
    /// Minor number.
    pub minor: u16,
    /// Patch number.
    pub patch: u16,
}

impl NcclVersion {
    /// The newest NCCL whose grammar is modelled here.
    pub const LATEST: Self = Self::new(2, 30, 7);

    /// The version `major.minor.patch`.
    pub const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Self {
            major,
            minor,
            patch,
        }
    }
}

impl fmt::Display for NcclVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for NcclVersion {
    type Err = BadVersion;

    /// Reads `2.30.7`, also with a suffix (`2.27.7+cuda12.9`); a missing patch number is 0.
    fn from_str(text: &str) -> Result<Self, BadVersion> {
        let mut numbers = Numbers::new(text);
        Ok(Self {
            major: numbers.required()?,
            minor: numbers.required()?,
            patch: numbers.optional().unwrap_or(0),
        })
    }
}

/// The text is not a version number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadVersion;

impl fmt::Display for BadVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a version number")
    }
}

impl std::error::Error for BadVersion {}

/// The dotted numbers at the start of a text.
struct Numbers<'a> {
    rest: Option<&'a str>,
}

impl<'a> Numbers<'a> {
    fn new(text: &'a str) -> Self {
        let text = text.trim();
        Self {
            rest: Some(text.strip_prefix('v').unwrap_or(text)),
        }
    }

    fn optional(&mut self) -> Option<u16> {
        let rest = self.rest.take()?;
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (digits, tail) = rest.split_at_checked(end)?;
        self.rest = tail.strip_prefix('.');
        digits.parse().ok()
    }

    fn required(&mut self) -> Result<u16, BadVersion> {
        self.optional().ok_or(BadVersion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        for (text, wanted) in [
            ("1.23", UcxVersion::new(1, 23)),
            ("1.23.0", UcxVersion::new(1, 23)),
            ("v1.20.x", UcxVersion::new(1, 20)),
            ("1.23~rc1", UcxVersion::new(1, 23)),
        ] {
            assert_eq!(text.parse(), Ok(wanted), "{text}");
        }
        assert_eq!(UcxVersion::new(1, 9).to_string(), "1.9");
        assert_eq!("2.27.7".parse(), Ok(NcclVersion::new(2, 27, 7)));
        assert_eq!("2.30".parse(), Ok(NcclVersion::new(2, 30, 0)));
        assert_eq!(NcclVersion::LATEST.to_string(), "2.30.7");
    }

    #[test]
    fn orders_by_number_not_by_text() {
        assert!(UcxVersion::new(1, 9) < UcxVersion::new(1, 10));
        assert!(NcclVersion::new(2, 4, 8) < NcclVersion::new(2, 27, 7));
    }

    #[test]
    fn refuses_what_is_no_version() {
        for text in ["", "1", "1.", "x.1", "1.x", "99999.1", "-1.2"] {
            assert_eq!(text.parse::<UcxVersion>(), Err(BadVersion), "{text}");
        }
    }
}
