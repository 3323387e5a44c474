//! Integer parameters of NCCL.
//!
//! nccl:src/misc/param.cc:74-103: an empty value is the default, anything else goes through `strtoll` with base 0, so that
//! a word is 0; a number out of range is the default.

/// What NCCL makes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcclInt {
    /// The built-in default.
    Default,
    /// A number.
    Number(i64),
    /// A text without any digit, which counts as 0.
    Word,
}

impl NcclInt {
    /// Reads a value.
    pub fn parse(value: &str) -> Self {
        if value.is_empty() {
            return Self::Default;
        }
        let text = value.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
        let (negative, digits) = if let Some(rest) = text.strip_prefix('-') {
            (true, rest)
        } else {
            (false, text.strip_prefix('+').unwrap_or(text))
        };
        let (base, digits) = base(digits);
        let mut number: Option<i64> = None;
        for digit in digits.chars().map_while(|c| c.to_digit(base)) {
            let digit = i64::from(digit);
            let step = number.unwrap_or(0).checked_mul(i64::from(base));
            // Counting down reaches the smallest number as well.
            let next = step.and_then(|step| {
                if negative {
                    step.checked_sub(digit)
                } else {
                    step.checked_add(digit)
                }
            });
            let Some(next) = next else {
                return Self::Default;
            };
            number = Some(next);
        }
        number.map_or(Self::Word, Self::Number)
    }

    /// The number that NCCL works with.
    pub fn or_default(self, default: i64) -> i64 {
        match self {
            Self::Default => default,
            Self::Number(number) => number,
            Self::Word => 0,
        }
    }
}

/// The base of a number by its first characters. `0x` needs a digit after it, otherwise the number is the 0.
fn base(digits: &str) -> (u32, &str) {
    let hex = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()));
    match hex {
        Some(rest) => (16, rest),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    }
}

#[cfg(test)]
mod tests {
    use super::NcclInt::{self, Default, Number, Word};

    #[test]
    fn reads_like_strtoll() {
        for (text, wanted) in [
            ("", Default),
            ("1", Number(1)),
            ("1abc", Number(1)),
            (" -7", Number(-7)),
            ("0x10", Number(16)),
            ("010", Number(8)),
            ("08", Number(0)),
            ("0x", Number(0)),
            ("true", Word),
            ("yes", Word),
            (" ", Word),
            ("-", Word),
            ("9223372036854775807", Number(i64::MAX)),
            ("-9223372036854775808", Number(i64::MIN)),
            ("9223372036854775808", Default),
            ("99999999999999999999", Default),
        ] {
            assert_eq!(NcclInt::parse(text), wanted, "{text:?}");
        }
        assert_eq!(NcclInt::parse("true").or_default(5), 0);
        assert_eq!(NcclInt::parse("").or_default(5), 5);
    }
}
