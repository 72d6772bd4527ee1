//! Amounts in Stripe's minor units, which are not always those of ISO 4217.
//!
//! Stripe has decimal places of its own for some currencies, and takes only multiples of ten in currencies with three
//! places.

use core_domain::billing::{Currency, Money};

/// The form of a currency's amounts at Stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Notation {
    /// The number of decimal places.
    places: u16,
    /// The number that every amount is a multiple of.
    step: i64,
}

/// The currencies whose amounts Stripe does not write with two decimal places, or of which it takes only some amounts.
const NOTATIONS: [(&[&str], Notation); 3] = [
    (
        &[
            "bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "vnd", "vuv",
            "xaf", "xof", "xpf",
        ],
        Notation { places: 0, step: 1 },
    ),
    // They have no minor unit, but Stripe writes them with two places, which are always 00.
    (
        &["isk", "ugx"],
        Notation {
            places: 2,
            step: 100,
        },
    ),
    (
        &["bhd", "jod", "kwd", "omr", "tnd"],
        Notation {
            places: 3,
            step: 10,
        },
    ),
];

/// The reason why an amount cannot be sent to Stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AmountError {
    #[error("Stripe does not charge in {0}")]
    UnsupportedCurrency(Currency),
    #[error("Stripe cannot charge {0}: it needs a multiple of {1} minor units")]
    NotMultiple(Money, i64),
    #[error("the amount {0} is too large for Stripe")]
    TooLarge(Money),
}

fn notation(currency: Currency) -> Result<Notation, AmountError> {
    let code = currency.code();
    let mut known = NOTATIONS.iter();
    if let Some((_, notation)) = known.find(|(codes, _)| codes.contains(&code.as_str())) {
        return Ok(*notation);
    }
    if currency.exponent() == 2 {
        return Ok(Notation { places: 2, step: 1 });
    }
    Err(AmountError::UnsupportedCurrency(currency))
}

/// The ratio between Stripe's amounts and ours: ours times `up`, divided by `down`.
#[derive(Clone, Copy)]
struct Ratio {
    up: i64,
    down: i64,
    /// The number that an amount of Stripe is a multiple of.
    step: i64,
}

fn ratio(currency: Currency) -> Result<Ratio, AmountError> {
    let Notation { places, step } = notation(currency)?;
    let power = |exponent: u16| 10_i64.pow(u32::from(exponent.min(4)));
    Ok(Ratio {
        up: power(places.saturating_sub(currency.exponent())),
        down: power(currency.exponent().saturating_sub(places)),
        step,
    })
}

impl Ratio {
    /// Returns the largest amount of Stripe that is not above ours.
    fn floor(self, minor: i64) -> Option<i64> {
        let scaled = minor.checked_mul(self.up)?.div_euclid(self.down);
        Some(scaled.div_euclid(self.step) * self.step)
    }

    /// Returns the number of our minor units of which every amount is a multiple.
    const fn own_step(self) -> i64 {
        let step = self.step * self.down / self.up;
        if step == 0 { 1 } else { step }
    }
}

/// Returns an amount in Stripe's minor units.
///
/// # Errors
/// [`AmountError`] if Stripe cannot charge exactly this amount.
pub(crate) fn to_stripe(money: Money) -> Result<i64, AmountError> {
    let ratio = ratio(money.currency())?;
    let amount = ratio
        .floor(money.minor())
        .ok_or(AmountError::TooLarge(money))?;
    if from_stripe(amount, money.currency()) != Some(money.minor()) {
        return Err(AmountError::NotMultiple(money, ratio.own_step()));
    }
    Ok(amount)
}

/// Returns the amounts of lines in Stripe's minor units. They add up to their exact sum: a line that is no whole amount
/// of Stripe leaves its rest to the next one.
///
/// # Errors
/// [`AmountError`] if the currency is not supported or an amount is too large.
pub(crate) fn lines_to_stripe(lines: &[i64], currency: Currency) -> Result<Vec<i64>, AmountError> {
    let ratio = ratio(currency)?;
    let (mut sum, mut sent) = (0_i64, 0_i64);
    let amount = |line: &i64| {
        sum = sum.checked_add(*line)?;
        let target = ratio.floor(sum)?;
        let amount = target.checked_sub(sent)?;
        sent = target;
        Some(amount)
    };
    let amounts: Option<Vec<_>> = lines.iter().map(amount).collect();
    amounts.ok_or(AmountError::TooLarge(Money::zero(currency)))
}

/// Returns an amount of Stripe in our minor units. Returns `None` if it is too large or the currency is not supported.
pub(crate) fn from_stripe(amount: i64, currency: Currency) -> Option<i64> {
    let ratio = ratio(currency).ok()?;
    let minor = amount.checked_mul(ratio.down)?;
    Some(minor.div_euclid(ratio.up))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(minor: i128, code: &str) -> Money {
        Money::new(minor, Currency::parse(code).unwrap()).unwrap()
    }

    #[test]
    fn amounts_are_converted_to_minor_units_of_stripe_and_back() {
        for (minor, code, expected) in [
            (2900, "usd", 2900),
            (-1450, "eur", -1450),
            (999, "jpy", 999),
            (12, "isk", 1200),
            (500, "ugx", 50_000),
            (5_000, "mga", 50),
            (12_340, "kwd", 12_340),
        ] {
            let money = money(minor, code);
            assert_eq!(to_stripe(money), Ok(expected), "{money}");
            assert_eq!(from_stripe(expected, money.currency()), Some(money.minor()));
        }
    }

    #[test]
    fn amounts_between_the_steps_of_stripe_are_refused() {
        for (minor, code, step) in [(12_345, "kwd", 10), (5_050, "mga", 100), (-1, "tnd", 10)] {
            let money = money(minor, code);
            assert_eq!(to_stripe(money), Err(AmountError::NotMultiple(money, step)));
        }
    }

    #[test]
    fn lines_leave_their_rest_to_the_next_line() {
        let kwd = Currency::parse("kwd").unwrap();
        assert_eq!(
            lines_to_stripe(&[15, 15, -3, 3], kwd),
            Ok(vec![10, 20, -10, 10])
        );
        let usd = Currency::USD;
        assert_eq!(lines_to_stripe(&[-1450, 4950], usd), Ok(vec![-1450, 4950]));
        assert!(lines_to_stripe(&[i64::MAX, 1], usd).is_err());
    }

    #[test]
    fn currencies_with_other_decimal_places_are_in_the_table_or_refused() {
        for code in ["iqd", "lyd", "clf", "uyi", "uyw"] {
            let money = money(1_000, code);
            let refused = Err(AmountError::UnsupportedCurrency(money.currency()));
            assert_eq!(to_stripe(money), refused, "{code}");
        }
        let codes = NOTATIONS.iter().flat_map(|(codes, _)| codes.iter());
        for code in codes {
            let currency = Currency::parse(code).unwrap();
            assert!(to_stripe(Money::zero(currency)).is_ok(), "{code}");
        }
    }
}
