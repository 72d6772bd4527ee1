//! Prices of metered units, which are often smaller than the minor unit of a currency.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::money::{Currency, Money, MoneyError, divide_rounded};

/// The number of decimal places of a price.
const PLACES: usize = 12;

/// 10^12. A price is a whole number of this part of a minor unit.
const SCALE: i128 = 1_000_000_000_000;

/// The largest number of digits before the decimal point.
const MAX_WHOLE_DIGITS: usize = 15;

/// The reason why a text is not a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a price is a decimal number of minor units with at most 15 digits and 12 decimal places")]
pub struct UnitPriceError;

/// The price of one unit, as a decimal number of minor units with at most 12 decimal places. Example: `0.00005`, in
/// usd 0.00005 cents. Never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnitPrice(i128);

impl UnitPrice {
    /// Parses a decimal number, without sign or exponent.
    ///
    /// # Errors
    /// [`UnitPriceError`] if the text has another form, or too many digits.
    pub fn parse(text: &str) -> Result<Self, UnitPriceError> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !are_digits(whole) || !are_digits(fraction) {
            return Err(UnitPriceError);
        }
        let fraction = fraction.trim_end_matches('0');
        let whole = whole.trim_start_matches('0');
        if fraction.len() > PLACES || whole.len() > MAX_WHOLE_DIGITS {
            return Err(UnitPriceError);
        }
        let digits = format!("{whole}{fraction:0<PLACES$}");
        digits.parse().map(Self).map_err(|_| UnitPriceError)
    }

    /// Returns the price whose unit costs a whole number of minor units.
    #[must_use]
    pub fn from_minor(minor: u32) -> Self {
        Self(i128::from(minor) * SCALE)
    }

    /// Returns the price of a number of units in a currency, rounded once.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the amount is too large.
    pub fn of(self, quantity: u64, currency: Currency) -> Result<Money, MoneyError> {
        let product = self
            .0
            .checked_mul(i128::from(quantity))
            .ok_or(MoneyError::TooLarge)?;
        Money::new(divide_rounded(product, SCALE)?, currency)
    }
}

/// Writes the number without zeros at its end, for example `0.00005`.
impl fmt::Display for UnitPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:0width$}", self.0, width = PLACES + 1);
        let (whole, fraction) = digits.split_at(digits.len() - PLACES);
        match fraction.trim_end_matches('0') {
            "" => f.write_str(whole),
            fraction => write!(f, "{whole}.{fraction}"),
        }
    }
}

impl Serialize for UnitPrice {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UnitPrice {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for UnitPrice {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "UnitPrice".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string", "pattern": "^[0-9]{1,15}([.][0-9]{1,12})?$", "maxLength": 28, "examples": ["0.00005"],
        })
    }
}

crate::kernel::arbitrary!(UnitPrice);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn price(text: &str) -> UnitPrice {
        UnitPrice::parse(text).unwrap()
    }

    #[test]
    fn prices_are_decimal_texts() {
        for (text, expected) in [
            ("0.00005", "0.00005"),
            ("0.000000000001", "0.000000000001"),
            ("1", "1"),
            ("2900.0", "2900"),
            ("007.50", "7.5"),
            ("0", "0"),
            (
                "999999999999999.999999999999",
                "999999999999999.999999999999",
            ),
        ] {
            assert_eq!(price(text).to_string(), expected);
        }
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e3",
            "1,5",
            "0.0000000000001",
            "1000000000000000",
            " 1",
            "٣",
        ] {
            assert_eq!(UnitPrice::parse(text), Err(UnitPriceError), "{text}");
        }
    }

    #[test]
    fn the_price_of_a_quantity_is_rounded_once() {
        for (unit, quantity, expected) in [
            ("0.00005", 4_000_000, 200),
            ("0.00005", 275_000, 14),
            ("0.00005", 305_000, 15),
            ("0.00005", 9_999, 0),
            ("0.00005", 10_000, 1),
            ("5", 3, 15),
        ] {
            let amount = price(unit).of(quantity, Currency::USD).unwrap();
            assert_eq!(amount.minor(), expected, "{unit} x {quantity}");
        }
        let huge = price("999999999999999").of(u64::MAX, Currency::USD);
        assert_eq!(huge, Err(MoneyError::TooLarge));
    }

    proptest! {
        #[test]
        fn the_text_of_a_price_is_parsed_back(price: UnitPrice) {
            prop_assert_eq!(UnitPrice::parse(&price.to_string()), Ok(price));
        }

        #[test]
        fn the_price_is_at_most_half_a_unit_from_the_exact_one(
            thousandths in 0..1_000_000_u32, quantity in 0..1_000_000_000_u64,
        ) {
            let (whole, fraction) = (thousandths / 1_000, thousandths % 1_000);
            let price = price(&format!("{whole}.{fraction:03}"));
            let amount = i128::from(price.of(quantity, Currency::USD).unwrap().minor());
            let exact = i128::from(thousandths) * i128::from(quantity);
            prop_assert!((2 * (exact - amount * 1_000)).abs() <= 1_000);
        }
    }
}
