//! The YAML core schema: which plain texts are not strings.

/// Whether a plain text is null.
pub(crate) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// The boolean that a plain text is.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Whether YAML 1.1 reads a plain text as a boolean.
pub(crate) fn legacy_boolean(text: &str) -> bool {
    boolean(text).is_some()
        || matches!(
            text,
            "y" | "Y"
                | "yes"
                | "Yes"
                | "YES"
                | "on"
                | "On"
                | "ON"
                | "n"
                | "N"
                | "no"
                | "No"
                | "NO"
                | "off"
                | "Off"
                | "OFF"
        )
}

/// Decimal digits with an optional sign.
pub(crate) fn decimal(text: &str) -> Option<i64> {
    let digits = unsigned(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// An integer by the core schema: decimal, `0o` octal or `0x` hexadecimal.
pub(crate) fn integer(text: &str) -> Option<i64> {
    if let Some(digits) = text.strip_prefix("0x") {
        return based(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return based(digits, 8);
    }
    decimal(text)
}

/// Whether a plain text is an integer or float by the core schema.
pub(crate) fn is_number(text: &str) -> bool {
    if let Some(digits) = text.strip_prefix("0x") {
        return !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return !digits.is_empty() && digits.bytes().all(|b| matches!(b, b'0'..=b'7'));
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let body = unsigned(text);
    if matches!(body, ".inf" | ".Inf" | ".INF") {
        return true;
    }
    let (mantissa, exponent) = match body.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(unsigned(exponent))),
        None => (body, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|part| !part.is_empty() && digits(part))
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['-', '+']).unwrap_or(text)
}

fn based(digits: &str, radix: u32) -> Option<i64> {
    // `from_str_radix` would take a sign of its own.
    digits
        .bytes()
        .all(|b| b.is_ascii_hexdigit())
        .then(|| i64::from_str_radix(digits, radix).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_by_the_core_schema() {
        for text in [
            "0", "-1", "+12", "0x1F", "0o17", "1.5", "1.", ".5", "1e3", "-1.2E-3", ".inf", "-.INF",
            ".nan",
        ] {
            assert!(is_number(text), "{text}");
        }
        for text in [
            "", "-", "+", ".", "1a", "0x", "0o8", "1e", "e5", "1.2.3", "10Gi", "1_000", "0b1",
            "--1", "-.nan", "1:30",
        ] {
            assert!(!is_number(text), "{text}");
        }
    }

    #[test]
    fn integers() {
        assert_eq!(integer("0x10"), Some(16));
        assert_eq!(integer("0o10"), Some(8));
        assert_eq!(integer("010"), Some(10));
        assert_eq!(integer("-7"), Some(-7));
        assert_eq!(integer("+7"), Some(7));
        assert_eq!(integer("0x-1"), None);
        assert_eq!(integer("99999999999999999999"), None);
        assert_eq!(decimal("0x10"), None);
        assert_eq!(decimal("1.0"), None);
    }
}
