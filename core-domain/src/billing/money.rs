//! Amounts of money, their currencies, and the only rounding rule (contract: "Ledger and arithmetic").

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest amount in minor units, positive or negative: 2^53 - 1. JavaScript represents every whole number up to
/// it exactly.
const MAX_MINOR: i64 = (1 << 53) - 1;

/// The reasons why a calculation with money has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MoneyError {
    /// The amount exceeds 2^53 - 1 minor units.
    #[error("the amount is too large")]
    TooLarge,
    /// The amounts have different currencies.
    #[error("the amounts have different currencies: {0} and {1}")]
    CurrencyMismatch(Currency, Currency),
    /// The text is not the code of a currency with minor units.
    #[error("the currency is unknown")]
    UnknownCurrency,
}

/// Returns `numerator / denominator`, rounded to the nearest whole number, halves away from zero.
///
/// Every division of money uses this function, once per line of an invoice; sums are never rounded. It is odd:
/// the result for `-numerator` is the negative result for `numerator`.
///
/// # Errors
/// [`MoneyError::TooLarge`] if the denominator is not positive or an intermediate result does not fit into 128 bits.
pub fn divide_rounded(numerator: i128, denominator: i128) -> Result<i128, MoneyError> {
    if denominator <= 0 {
        return Err(MoneyError::TooLarge);
    }
    let divisor = denominator.checked_mul(2).ok_or(MoneyError::TooLarge)?;
    let magnitude = numerator
        .checked_abs()
        .and_then(|magnitude| magnitude.checked_mul(2))
        .and_then(|doubled| doubled.checked_add(denominator))
        .ok_or(MoneyError::TooLarge)?
        / divisor;
    Ok(if numerator < 0 { -magnitude } else { magnitude })
}

/// A currency of ISO 4217 that has minor units. Its text form is the code in lower case, for example `usd`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Currency(iso_currency::Currency);

impl Currency {
    /// The United States dollar, the currency of the standard plans.
    pub const USD: Self = Self(iso_currency::Currency::USD);

    /// Parses a code, in upper or lower case.
    ///
    /// # Errors
    /// [`MoneyError::UnknownCurrency`] if the code is unknown, or does not stand for money with minor units, as that of gold.
    pub fn parse(code: &str) -> Result<Self, MoneyError> {
        iso_currency::Currency::from_code(&code.to_ascii_uppercase())
            .filter(|currency| currency.exponent().is_some())
            .map(Self)
            .ok_or(MoneyError::UnknownCurrency)
    }

    /// Returns the code in lower case.
    #[must_use]
    pub fn code(self) -> String {
        self.0.code().to_ascii_lowercase()
    }

    /// Returns the number of decimal places of the currency: 2 for `usd`, 0 for `jpy`, 3 for `kwd`.
    #[must_use]
    pub fn exponent(self) -> u16 {
        self.0.exponent().unwrap_or_default()
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.code())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.code())
    }
}

impl PartialOrd for Currency {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Currency {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.code().cmp(other.0.code())
    }
}

impl Serialize for Currency {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.code())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&code).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Currency {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Currency".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[A-Za-z]{3}$", "minLength": 3, "maxLength": 3, "examples": ["usd"] })
    }
}

/// An amount of money: a whole number of minor units of one currency, from -(2^53 - 1) to 2^53 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Money {
    minor: i64,
    currency: Currency,
}

impl Money {
    /// Creates an amount.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the amount exceeds 2^53 - 1 minor units.
    pub fn new(minor: i128, currency: Currency) -> Result<Self, MoneyError> {
        let minor = i64::try_from(minor).map_err(|_| MoneyError::TooLarge)?;
        if !(-MAX_MINOR..=MAX_MINOR).contains(&minor) {
            return Err(MoneyError::TooLarge);
        }
        Ok(Self { minor, currency })
    }

    /// Returns nothing in a currency.
    #[must_use]
    pub const fn zero(currency: Currency) -> Self {
        Self { minor: 0, currency }
    }

    /// Returns a price, which always fits.
    #[must_use]
    pub fn of_price(minor: u32, currency: Currency) -> Self {
        Self {
            minor: i64::from(minor),
            currency,
        }
    }

    /// Returns the number of minor units, for example cents.
    #[must_use]
    pub const fn minor(self) -> i64 {
        self.minor
    }

    /// Returns the currency.
    #[must_use]
    pub const fn currency(self) -> Currency {
        self.currency
    }

    /// Returns the sum of two amounts.
    ///
    /// # Errors
    /// [`MoneyError`] if the currencies differ or the sum is too large.
    pub fn plus(self, other: Self) -> Result<Self, MoneyError> {
        if self.currency != other.currency {
            return Err(MoneyError::CurrencyMismatch(self.currency, other.currency));
        }
        Self::new(
            i128::from(self.minor) + i128::from(other.minor),
            self.currency,
        )
    }

    /// Returns the difference of two amounts.
    ///
    /// # Errors
    /// [`MoneyError`] if the currencies differ or the difference is too large.
    pub fn minus(self, other: Self) -> Result<Self, MoneyError> {
        self.plus(other.negate())
    }

    /// Returns the amount with the opposite sign.
    #[must_use]
    pub const fn negate(self) -> Self {
        Self {
            minor: -self.minor,
            currency: self.currency,
        }
    }

    /// Returns the amount multiplied by a whole number.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the product is too large.
    pub fn times(self, factor: u32) -> Result<Self, MoneyError> {
        Self::new(i128::from(self.minor) * i128::from(factor), self.currency)
    }

    /// Returns the part `numerator / denominator` of the amount, rounded as [`divide_rounded`] does.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the denominator is 0 or the part is too large.
    pub fn part(self, numerator: u64, denominator: u64) -> Result<Self, MoneyError> {
        let product = i128::from(self.minor) * i128::from(numerator);
        Self::new(divide_rounded(product, denominator.into())?, self.currency)
    }

    /// Returns the sum of amounts in one currency; nothing if there are none.
    ///
    /// # Errors
    /// [`MoneyError`] if an amount has another currency or the sum is too large.
    pub fn sum(
        currency: Currency,
        amounts: impl IntoIterator<Item = Self>,
    ) -> Result<Self, MoneyError> {
        let mut amounts = amounts.into_iter();
        amounts.try_fold(Self::zero(currency), Self::plus)
    }

    /// Returns the smaller of two amounts in the same currency, and this one if the currencies differ.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        if self.currency == other.currency && other.minor < self.minor {
            return other;
        }
        self
    }
}

/// Writes the amount in major units with its currency, for example `-14.50 USD`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.currency.0.code();
        let places = usize::from(self.currency.exponent());
        let sign = if self.minor < 0 { "-" } else { "" };
        let digits = format!("{:0width$}", self.minor.unsigned_abs(), width = places + 1);
        let (whole, fraction) = digits.split_at(digits.len() - places);
        let point = if places == 0 { "" } else { "." };
        write!(f, "{sign}{whole}{point}{fraction} {code}")
    }
}

#[cfg(any(test, feature = "proptest"))]
impl proptest::arbitrary::Arbitrary for Currency {
    type Parameters = ();
    type Strategy = proptest::strategy::BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        use proptest::strategy::Strategy;
        let codes = ["usd", "eur", "jpy", "kwd"];
        let parsed = codes.map(|code| Self::parse(code).unwrap_or(Self::USD));
        proptest::sample::select(parsed.to_vec()).boxed()
    }
}

#[cfg(any(test, feature = "proptest"))]
impl proptest::arbitrary::Arbitrary for Money {
    type Parameters = ();
    type Strategy = proptest::strategy::BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        use proptest::strategy::Strategy;
        let minor = proptest::prop_oneof![-1_000..1_000_i64, -MAX_MINOR..=MAX_MINOR];
        (minor, proptest::arbitrary::any::<Currency>())
            .prop_map(|(minor, currency)| Self { minor, currency })
            .boxed()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn currency(code: &str) -> Currency {
        Currency::parse(code).unwrap()
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        for (numerator, denominator, expected) in [
            (5, 2, 3),
            (-5, 2, -3),
            (4, 3, 1),
            (5, 3, 2),
            (-4, 3, -1),
            (0, 7, 0),
            (1, 3, 0),
            (999, 2, 500),
        ] {
            assert_eq!(
                divide_rounded(numerator, denominator),
                Ok(expected),
                "{numerator}/{denominator}"
            );
        }
        for denominator in [0, -1, i128::MAX] {
            assert_eq!(divide_rounded(1, denominator), Err(MoneyError::TooLarge));
        }
        assert_eq!(divide_rounded(i128::MIN, 1), Err(MoneyError::TooLarge));
    }

    #[test]
    fn currencies_have_a_code_and_an_exponent() {
        for (code, exponent) in [("usd", 2), ("JPY", 0), ("kwd", 3), ("eur", 2)] {
            let currency = currency(code);
            assert_eq!(currency.code(), code.to_lowercase());
            assert_eq!(currency.exponent(), exponent, "{code}");
        }
        for code in ["", "us", "usdx", "zzz", "xau", "xxx", "ü12"] {
            assert_eq!(
                Currency::parse(code),
                Err(MoneyError::UnknownCurrency),
                "{code}"
            );
        }
    }

    #[test]
    fn amounts_are_written_in_major_units() {
        for (minor, code, expected) in [
            (3_500, "usd", "35.00 USD"),
            (-5, "usd", "-0.05 USD"),
            (0, "usd", "0.00 USD"),
            (999, "jpy", "999 JPY"),
            (1_234, "kwd", "1.234 KWD"),
        ] {
            let amount = Money::new(minor, currency(code)).unwrap();
            assert_eq!(amount.to_string(), expected);
        }
    }

    #[test]
    fn amounts_of_different_currencies_are_never_added() {
        let (dollars, yen) = (Money::zero(Currency::USD), Money::zero(currency("jpy")));
        let refused = Err(MoneyError::CurrencyMismatch(Currency::USD, currency("jpy")));
        assert_eq!(dollars.plus(yen), refused);
        assert_eq!(dollars.minus(yen), refused);
        assert_eq!(Money::sum(Currency::USD, [dollars, yen]), refused);
    }

    #[test]
    fn amounts_end_where_a_browser_stops_to_be_exact() {
        let largest = i128::from(MAX_MINOR);
        for minor in [largest, -largest] {
            let amount = Money::new(minor, Currency::USD).unwrap();
            assert_eq!(i128::from(amount.minor()), minor);
            assert_eq!(amount.plus(amount), Err(MoneyError::TooLarge));
            assert_eq!(amount.times(2), Err(MoneyError::TooLarge));
        }
        for minor in [largest + 1, -largest - 1, i128::MAX] {
            assert_eq!(Money::new(minor, Currency::USD), Err(MoneyError::TooLarge));
        }
    }

    proptest! {
        #[test]
        fn rounding_is_odd_and_within_half_a_unit(
            numerator in -(1_i128 << 100)..(1 << 100), denominator in 1_i128..(1 << 60),
        ) {
            let rounded = divide_rounded(numerator, denominator).unwrap();
            prop_assert_eq!(divide_rounded(-numerator, denominator), Ok(-rounded));
            let error = numerator - rounded * denominator;
            prop_assert!(2 * error.abs() <= denominator);
        }

        #[test]
        fn subtraction_undoes_addition(a: Money, b: Money) {
            if let Ok(sum) = a.plus(b) {
                prop_assert_eq!(sum.minus(b), Ok(a));
            }
        }

        #[test]
        fn the_json_form_of_a_currency_is_its_code(currency: Currency) {
            let json = serde_json::to_value(currency).unwrap();
            prop_assert_eq!(serde_json::from_value::<Currency>(json).unwrap(), currency);
        }
    }
}
