//! Exact decimal numbers. Two numbers of JSON are equal if their values are, independent of their notation and of the
//! precision of a double.

use std::cmp::Ordering;

use core_domain::kernel::{canonical_json, number_literal, number_literal_text};
use serde_json::{Map, Number, Value};

/// The exact value of a JSON number: `0.digits` times ten to the power of `exponent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    /// The significant digits, without leading and trailing zeros. Empty for zero.
    digits: String,
    /// The power of ten; 0 for zero. An exponent outside 64 bits is replaced by the nearest one.
    exponent: i64,
}

impl Decimal {
    const ZERO: Self = Self {
        negative: false,
        digits: String::new(),
        exponent: 0,
    };

    /// Returns the value of a number, also of a [`number_literal`]; `None` for values of another type.
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Some(Self::of_number(number)),
            other => number_literal_text(other).map(Self::parse),
        }
    }

    /// Returns the value of a number.
    pub(super) fn of_number(number: &Number) -> Self {
        Self::parse(&number.to_string())
    }

    /// Parses a number in the notation of JSON.
    fn parse(text: &str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let significant = digits.trim_start_matches('0');
        if significant.is_empty() {
            return Self::ZERO;
        }
        let leading_zeros = length(&digits) - length(significant);
        let point = length(whole) - leading_zeros;
        Self {
            negative,
            digits: significant.trim_end_matches('0').to_owned(),
            exponent: exponent_of(exponent).saturating_add(point),
        }
    }

    /// Returns whether the number has no fractional part.
    pub(super) fn is_integer(&self) -> bool {
        length(&self.digits) <= self.exponent
    }

    /// Returns the number as a signed or unsigned 64-bit integer; `None` if it is not one.
    pub(super) fn to_integer(&self) -> Option<Number> {
        let zeros = usize::try_from(self.exponent - length(&self.digits)).ok()?;
        if zeros > 20 {
            return None;
        }
        let sign = if self.negative { "-" } else { "" };
        let text = format!("{sign}{}{}", self.digits, "0".repeat(zeros));
        if self.digits.is_empty() {
            return Some(Number::from(0));
        }
        let small = text.parse::<i64>().map(Number::from);
        small
            .or_else(|_| text.parse::<u64>().map(Number::from))
            .ok()
    }

    /// Compares the absolute values.
    fn magnitude(&self, other: &Self) -> Ordering {
        // The digits have no leading zero, so the exponent decides first.
        let is_zero = (self.digits.is_empty(), other.digits.is_empty());
        match is_zero {
            (false, false) => (self.exponent, &self.digits).cmp(&(other.exponent, &other.digits)),
            (one, another) => another.cmp(&one),
        }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Returns whether two JSON values are equal. Numbers are compared by their exact value, also inside other values.
pub(super) fn are_equal(one: &Value, other: &Value) -> bool {
    if let (Some(one), Some(other)) = (Decimal::of(one), Decimal::of(other)) {
        return one == other;
    }
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| are_equal(a, b))
        }
        (Value::Object(one), Value::Object(other)) => {
            let in_other =
                |(name, a): (&String, &Value)| other.get(name).is_some_and(|b| are_equal(a, b));
            one.len() == other.len() && one.iter().all(in_other)
        }
        (one, other) => one == other,
    }
}

/// Returns a text that is equal for two values if and only if they are equal ([`are_equal`]).
pub(super) fn canonical_text(value: &Value) -> String {
    canonical_json(&with_exact_numbers(value))
}

fn with_exact_numbers(value: &Value) -> Value {
    if let Some(number) = Decimal::of(value) {
        let sign = if number.negative { "-" } else { "" };
        return number_literal(&format!("{sign}{}e{}", number.digits, number.exponent));
    }
    match value {
        Value::Array(items) => items.iter().map(with_exact_numbers).collect(),
        Value::Object(fields) => {
            let exact =
                |(name, field): (&String, &Value)| (name.clone(), with_exact_numbers(field));
            Value::Object(fields.iter().map(exact).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

fn length(digits: &str) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX)
}

/// Parses an exponent. One outside 64 bits becomes the nearest one.
fn exponent_of(text: &str) -> i64 {
    let furthest = if text.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    text.parse().unwrap_or(furthest)
}

#[cfg(test)]
mod tests {
    use core_domain::kernel::number_literal;

    use super::*;
    use crate::kernel::parse_strict;

    fn number(text: &str) -> Value {
        parse_strict(text.as_bytes()).unwrap()
    }

    #[test]
    fn numbers_with_the_same_value_are_equal_in_every_notation() {
        for equal in [
            &["2", "2.0", "2.000", "20e-1", "0.2E+1", "2e0"][..],
            &["0", "-0", "0.0", "-0.0e7", "0e-400"],
            &["100", "1e2", "1E+2", "100.0", "0.0001e6"],
            &["-1.5", "-15e-1", "-1.50"],
            &[
                "18446744073709551616",
                "18446744073709551616.0",
                "1844674407370955161600e-2",
            ],
            &["9007199254740993", "9007199254740993.0"],
        ] {
            for one in equal {
                for other in equal {
                    let (one, other) = (number(one), number(other));
                    assert!(are_equal(&one, &other), "{one} {other}");
                    assert_eq!(canonical_text(&one), canonical_text(&other));
                    // The same holds inside other values.
                    let nested =
                        |n: &Value| serde_json::json!({ "a": [n.clone(), { "b": n.clone() }] });
                    assert!(are_equal(&nested(&one), &nested(&other)));
                    assert_eq!(
                        canonical_text(&nested(&one)),
                        canonical_text(&nested(&other))
                    );
                }
            }
        }
    }

    #[test]
    fn different_numbers_with_the_same_double_are_not_equal() {
        for (one, other) in [
            ("9007199254740992", "9007199254740993.0"),
            ("0.1", "0.1000000000000000055511151231257827"),
            ("18446744073709551616", "18446744073709551617"),
            ("1e-400", "0"),
            ("1e-400", "1e-401"),
            ("1", "\"1\""),
            ("0", "false"),
            ("1", "[1]"),
        ] {
            let (one, other) = (number(one), number(other));
            assert!(!are_equal(&one, &other), "{one} {other}");
            assert_ne!(canonical_text(&one), canonical_text(&other));
        }
    }

    #[test]
    fn numbers_are_ordered_by_value() {
        let ordered = [
            "-18446744073709551617",
            "-18446744073709551616",
            "-1e2",
            "-99.5",
            "-0.1",
            "-1e-400",
            "0",
            "1e-400",
            "0.09",
            "0.1",
            "1",
            "1.5",
            "9",
            "1e1",
            "99",
            "100.5",
            "18446744073709551615",
            "18446744073709551616",
            "1e300",
        ];
        let ordered = ordered.map(|text| Decimal::of(&number(text)).unwrap());
        for (at, one) in ordered.iter().enumerate() {
            for (other_at, other) in ordered.iter().enumerate() {
                assert_eq!(one.cmp(other), at.cmp(&other_at), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn integers_of_64_bits_are_recognized_in_every_notation() {
        for (text, integer) in [
            ("1e2", Some(Number::from(100))),
            ("-0", Some(Number::from(0))),
            ("-2.50e1", Some(Number::from(-25))),
            ("1844674407370955161.5e1", Some(Number::from(u64::MAX))),
            ("1.5", None),
            ("1e-1", None),
            ("18446744073709551616", None),
            ("1e300", None),
        ] {
            let decimal = Decimal::of(&number(text)).unwrap();
            assert_eq!(decimal.to_integer(), integer, "{text}");
        }
        assert!(Decimal::of(&number("1e300")).unwrap().is_integer());
        assert!(!Decimal::of(&number_literal("1e-1")).unwrap().is_integer());
        assert!(Decimal::of(&number("-0.0")).unwrap().is_integer());
    }
}
