//! Scalar values of UCX, and what UCX does with one that it cannot read.
//!
//! ucx:src/ucs/config/parser.c:240-330 (bool, ternary, on/off/auto, enum), 497-525 (time); ucx:src/ucs/sys/string.c:169-203
//! (memory). `true`, `false`, `enable` and `disable` are invalid everywhere. UCX reads numbers with `sscanf`, which
//! ignores what follows a number; these functions accept whatever UCX accepts.

use std::fmt;

/// Why UCX refuses a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// What UCX would accept.
    pub expected: String,
}

impl Invalid {
    fn new(expected: impl Into<String>) -> Self {
        Self {
            expected: expected.into(),
        }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.expected)
    }
}

impl std::error::Error for Invalid {}

/// A switch with a middle position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ternary {
    /// Off.
    No,
    /// Required: the component fails if it cannot have it.
    Yes,
    /// Used where possible.
    Try,
    /// UCX decides.
    Auto,
}

/// A number or one of the two words that many variables take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// A number, in seconds, bytes or bytes per second.
    Number(f64),
    /// `inf`.
    Infinite,
    /// `auto`.
    Auto,
}

/// `y`, `yes` (any case), `on`, `1`; `n`, `no` (any case), `off`, `0`.
pub fn parse_bool(value: &str) -> Result<bool, Invalid> {
    read_bool(value).ok_or_else(|| Invalid::new("y or n"))
}

fn read_bool(value: &str) -> Option<bool> {
    let word = |word: &str| value.eq_ignore_ascii_case(word);
    if word("y") || word("yes") || value == "on" || value == "1" {
        Some(true)
    } else if word("n") || word("no") || value == "off" || value == "0" {
        Some(false)
    } else {
        None
    }
}

/// A bool, or `try` or `maybe`.
pub fn parse_ternary(value: &str) -> Result<Ternary, Invalid> {
    read_ternary(value).ok_or_else(|| Invalid::new("y, n or try"))
}

fn read_ternary(value: &str) -> Option<Ternary> {
    if value.eq_ignore_ascii_case("try") || value.eq_ignore_ascii_case("maybe") {
        return Some(Ternary::Try);
    }
    read_bool(value).map(|on| if on { Ternary::Yes } else { Ternary::No })
}

/// A ternary, or `auto`.
pub fn parse_ternary_auto(value: &str) -> Result<Ternary, Invalid> {
    if value.eq_ignore_ascii_case("auto") {
        return Ok(Ternary::Auto);
    }
    read_ternary(value).ok_or_else(|| Invalid::new("y, n, try or auto"))
}

/// `on`, `off`, `yes`, `no`, `y`, `n` (any case), `1`, `0`; `auto`, `try` or `maybe` for auto.
pub fn parse_on_off_auto(value: &str) -> Result<Ternary, Invalid> {
    let one_of = |words: &[&str]| words.iter().any(|word| value.eq_ignore_ascii_case(word));
    if one_of(&["auto", "try", "maybe"]) {
        Ok(Ternary::Auto)
    } else if one_of(&["on", "1", "yes", "y"]) {
        Ok(Ternary::Yes)
    } else if one_of(&["off", "0", "no", "n"]) {
        Ok(Ternary::No)
    } else {
        Err(Invalid::new("on, off or auto"))
    }
}

/// A number of seconds, or with the unit `m`, `s`, `ms`, `us` or `ns`.
pub fn parse_time(value: &str) -> Result<f64, Invalid> {
    let invalid = || Invalid::new("a number with m, s, ms, us or ns");
    let (number, rest) = scan_float(value).ok_or_else(invalid)?;
    // UCX reads two characters of the unit and does not look further.
    let unit: String = rest.chars().take(2).collect();
    let per_second = match unit.as_str() {
        "" | "s" => 1.0,
        "m" => 1.0 / 60.0,
        "ms" => 1e3,
        "us" => 1e6,
        "ns" => 1e9,
        _ => return Err(invalid()),
    };
    Ok(number / per_second)
}

/// A time, or `inf` or `auto` (lower case).
pub fn parse_time_or_word(value: &str) -> Result<Quantity, Invalid> {
    match value {
        "inf" => Ok(Quantity::Infinite),
        "auto" => Ok(Quantity::Auto),
        _ => parse_time(value)
            .map(Quantity::Number)
            .map_err(|_| Invalid::new("a number with m, s, ms, us or ns, inf or auto")),
    }
}

/// A whole number of bytes, with `b`, `k`, `m`, `g`, `t`, `p` or `e` and an optional `b` (any case), or `inf` or `auto`.
pub fn parse_memory(value: &str) -> Result<Quantity, Invalid> {
    if let Some(word) = infinite_or_auto(value) {
        return Ok(word);
    }
    let invalid =
        || Invalid::new("a whole number of bytes with an optional k, m, g or t, inf or auto");
    let (number, rest) = scan_integer(value).ok_or_else(invalid)?;
    let mut unit = rest.chars();
    let factor = match unit.next() {
        None => 1.0,
        Some(prefix) => prefix_factor(prefix).ok_or_else(invalid)?,
    };
    match unit.next() {
        None | Some('b' | 'B') => Ok(Quantity::Number(number * factor)),
        Some(_) => Err(invalid()),
    }
}

/// Bytes per second such as `2200MBps`, `12179MBs`, `10Gbps` or `1GB/s`, or `auto`.
pub fn parse_bandwidth(value: &str) -> Result<Quantity, Invalid> {
    if value.eq_ignore_ascii_case("auto") {
        return Ok(Quantity::Auto);
    }
    let invalid = || Invalid::new("a number with a unit such as MBps or Gbps, or auto");
    let (number, rest) = scan_float(value).ok_or_else(invalid)?;
    let unit = rest.split_whitespace().next().ok_or_else(invalid)?;
    let first = unit.chars().next().ok_or_else(invalid)?;
    let factor = prefix_factor(first).ok_or_else(invalid)?;
    let unit = if matches!(first, 'b' | 'B') {
        unit
    } else {
        unit.strip_prefix(first).unwrap_or(unit)
    };
    let (divider, unit) = match (unit.strip_prefix('B'), unit.strip_prefix('b')) {
        (Some(rest), _) => (1.0, rest),
        (_, Some(rest)) => (8.0, rest),
        _ => return Err(invalid()),
    };
    if matches!(unit, "ps" | "/s" | "s") {
        Ok(Quantity::Number(number * factor / divider))
    } else {
        Err(invalid())
    }
}

/// An unsigned number, or `inf`.
pub fn parse_uint(value: &str) -> Result<Quantity, Invalid> {
    if value.eq_ignore_ascii_case("inf") {
        return Ok(Quantity::Infinite);
    }
    scan_integer(value)
        .map(|(number, _)| Quantity::Number(number))
        .ok_or_else(|| Invalid::new("a number or inf"))
}

/// A number, or `inf` or `auto`.
pub fn parse_ulong(value: &str) -> Result<Quantity, Invalid> {
    infinite_or_auto(value)
        .or_else(|| scan_integer(value).map(|(number, _)| Quantity::Number(number)))
        .ok_or_else(|| Invalid::new("a number, inf or auto"))
}

/// A number.
pub fn parse_int(value: &str) -> Result<(), Invalid> {
    scan_integer(value)
        .map(|_| ())
        .ok_or_else(|| Invalid::new("a number"))
}

/// A number with a point.
pub fn parse_float(value: &str) -> Result<f64, Invalid> {
    scan_float(value)
        .map(|(number, _)| number)
        .ok_or_else(|| Invalid::new("a number"))
}

/// A hexadecimal number with `0x`, or `auto`.
pub fn parse_hex(value: &str) -> Result<Quantity, Invalid> {
    if value.eq_ignore_ascii_case("auto") {
        return Ok(Quantity::Auto);
    }
    let digits = value
        .strip_prefix("0x")
        .or_else(|| value.strip_prefix("0X"))
        .unwrap_or("");
    let end = digits
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(digits.len());
    digits
        .get(..end)
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .map(|number| Quantity::Number(f64::from(number)))
        .ok_or_else(|| Invalid::new("a number such as 0x7fff, or auto"))
}

/// One of some words, in any case.
pub fn parse_enum<'w>(value: &str, words: &[&'w str]) -> Result<&'w str, Invalid> {
    words
        .iter()
        .copied()
        .find(|word| word.eq_ignore_ascii_case(value))
        .ok_or_else(|| Invalid::new(format!("one of {}", words.join(", "))))
}

/// A switch of libfabric: 0/1, true/false, yes/no, on/off, any case (ofi:src/var.c:257-268).
pub fn libfabric_bool(value: &str) -> Result<bool, Invalid> {
    let one_of = |words: &[&str]| words.iter().any(|word| value.eq_ignore_ascii_case(word));
    if one_of(&["1", "true", "yes", "on"]) {
        Ok(true)
    } else if one_of(&["0", "false", "no", "off"]) {
        Ok(false)
    } else {
        Err(Invalid::new("1 or 0, true or false, yes or no, on or off"))
    }
}

/// A switch of aws-ofi-nccl: true or false in any case, or a number (awsofi:include/nccl_ofi_param_impl.h:35).
pub fn ofi_nccl_bool(value: &str) -> Result<bool, Invalid> {
    if value.eq_ignore_ascii_case("true") {
        return Ok(true);
    }
    if value.eq_ignore_ascii_case("false") {
        return Ok(false);
    }
    value
        .parse::<i64>()
        .map(|number| number != 0)
        .map_err(|_| Invalid::new("true, false or a number"))
}

fn infinite_or_auto(value: &str) -> Option<Quantity> {
    if value.eq_ignore_ascii_case("inf") {
        Some(Quantity::Infinite)
    } else if value.eq_ignore_ascii_case("auto") {
        Some(Quantity::Auto)
    } else {
        None
    }
}

fn prefix_factor(prefix: char) -> Option<f64> {
    let power = match prefix.to_ascii_lowercase() {
        'b' => 0,
        'k' => 1,
        'm' => 2,
        'g' => 3,
        't' => 4,
        'p' => 5,
        'e' => 6,
        _ => return None,
    };
    Some(1024_f64.powi(power))
}

/// The number at the start of a text and what follows it, as `sscanf("%ld")` reads it.
fn scan_integer(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign_len = text.len() - unsigned.len();
    let digits = unsigned
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(unsigned.len());
    let (number, rest) = text.split_at_checked(sign_len + digits)?;
    Some((number.parse().ok()?, rest))
}

/// The number at the start of a text and what follows it, as `sscanf("%lf")` reads it.
fn scan_float(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let end = text
        .char_indices()
        .map(|(index, c)| index + c.len_utf8())
        .rev()
        // Also reads inf, infinity and nan, as C does; the longest text that is a number counts.
        .find(|&end| {
            text.get(..end)
                .is_some_and(|head| head.parse::<f64>().is_ok())
        })?;
    let (number, rest) = text.split_at_checked(end)?;
    Some((number.parse().ok()?, rest))
}

/// The part of UCX that owns a variable, which decides what an invalid value does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The UCP context.
    Context,
    /// A memory domain: RDMA, CUDA, TCP as a whole.
    MemoryDomain,
    /// An interface of one transport.
    Interface,
    /// Process-wide options.
    Global,
}

impl Owner {
    /// What UCX does if it cannot read a variable of this owner, as a clause.
    pub fn consequence(self) -> &'static str {
        match self {
            // `ucp_config_read` fails; NIXL: `Failed to create UCX config` (nixl:src/plugins/ucx/config.cpp:55).
            Self::Context => "UCX does not start",
            // ucx:src/uct/base/uct_md.c:275: `Failed to read MD config`.
            Self::MemoryDomain => {
                "the whole transport family is dropped and the process goes on without it"
            }
            Self::Interface => "the transport's interface cannot be created, so UCX fails",
            Self::Global => "UCX silently uses the default",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bools_and_ternaries() {
        for value in ["y", "Y", "yes", "YES", "on", "1"] {
            assert_eq!(parse_bool(value), Ok(true), "{value}");
        }
        for value in ["n", "No", "off", "0"] {
            assert_eq!(parse_bool(value), Ok(false), "{value}");
        }
        for value in ["true", "false", "ON", "On", "2", "", "enable", "try"] {
            assert!(parse_bool(value).is_err(), "{value}");
        }
        assert_eq!(parse_ternary("try"), Ok(Ternary::Try));
        assert_eq!(parse_ternary("yes"), Ok(Ternary::Yes));
        assert!(parse_ternary("auto").is_err() && parse_ternary("true").is_err());
        assert_eq!(parse_ternary_auto("auto"), Ok(Ternary::Auto));
        assert_eq!(parse_on_off_auto("ON"), Ok(Ternary::Yes));
        assert!(parse_on_off_auto("true").is_err());
    }

    #[test]
    fn times() {
        let near = |value: &str, wanted: f64| {
            let got = parse_time(value).unwrap();
            assert!((got - wanted).abs() < 1e-9, "{value}: {got}");
        };
        near("5", 5.0);
        near("100ms", 0.1);
        near("2m", 120.0);
        near("0.5s", 0.5);
        for value in ["1min", "1sec", "1h", "1 s", "", "ms"] {
            assert!(parse_time(value).is_err(), "{value}");
        }
        assert_eq!(parse_time_or_word("inf"), Ok(Quantity::Infinite));
    }

    #[test]
    fn memory_sizes() {
        for (value, wanted) in [
            ("8192", 8192.0),
            ("8k", 8192.0),
            ("8KB", 8192.0),
            ("1g", 1_073_741_824.0),
            ("16b", 16.0),
            ("-1", -1.0),
        ] {
            assert_eq!(parse_memory(value), Ok(Quantity::Number(wanted)), "{value}");
        }
        assert_eq!(parse_memory("INF"), Ok(Quantity::Infinite));
        for value in ["8kib", "8.5k", "8 kb", "", "k", "x"] {
            assert!(parse_memory(value).is_err(), "{value}");
        }
    }

    #[test]
    fn bandwidths() {
        let mega = 1024.0 * 1024.0;
        assert_eq!(
            parse_bandwidth("2200MBps"),
            Ok(Quantity::Number(2200.0 * mega))
        );
        assert_eq!(parse_bandwidth("12MB/s"), Ok(Quantity::Number(12.0 * mega)));
        assert_eq!(parse_bandwidth("8Mbs"), Ok(Quantity::Number(mega)));
        assert_eq!(parse_bandwidth("100Bps"), Ok(Quantity::Number(100.0)));
        for value in ["10", "10G", "10GB", "fast"] {
            assert!(parse_bandwidth(value).is_err(), "{value}");
        }
    }

    #[test]
    fn numbers_and_words() {
        assert_eq!(parse_uint("4"), Ok(Quantity::Number(4.0)));
        assert_eq!(parse_uint("inf"), Ok(Quantity::Infinite));
        assert!(parse_uint("auto").is_err() && parse_uint("").is_err());
        assert_eq!(parse_ulong("auto"), Ok(Quantity::Auto));
        assert_eq!(parse_hex("0x7fff"), Ok(Quantity::Number(32767.0)));
        assert!(parse_hex("7fff").is_err());
        assert_eq!(parse_enum("WARN", &["fatal", "warn"]), Ok("warn"));
        let refused = parse_enum("warning", &["fatal", "warn"]).unwrap_err();
        assert_eq!(refused.to_string(), "expected one of fatal, warn");
    }

    #[test]
    fn switches_of_other_libraries() {
        assert_eq!(libfabric_bool("True"), Ok(true));
        assert_eq!(libfabric_bool("off"), Ok(false));
        assert!(libfabric_bool("2").is_err() && libfabric_bool("y").is_err());
        assert_eq!(ofi_nccl_bool("FALSE"), Ok(false));
        assert_eq!(ofi_nccl_bool("2"), Ok(true));
        assert!(ofi_nccl_bool("yes").is_err());
    }
}
