//! Amounts for a part of a period (contract: "Proration"), and the fair division of an amount.

use super::calendar::Period;
use super::money::{Money, MoneyError};
use crate::kernel::Timestamp;

/// The rest of a period from a change on. The bounds are always those of the whole period, whatever changes were before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proration {
    period: Period,
    at: Timestamp,
}

impl Proration {
    /// Creates the rest of a period from an instant on. Returns `None` if the instant is not in the period.
    #[must_use]
    pub fn new(period: Period, at: Timestamp) -> Option<Self> {
        period.contains(at).then_some(Self { period, at })
    }

    /// Returns the part of an amount for the whole period that belongs to the rest, rounded once.
    ///
    /// The part between two changes is the difference of their rests. The parts of any number of changes therefore add up
    /// to the amount, and the remainder of each rounding falls to the earlier part.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] does not occur for a part, which is never larger than the amount.
    pub fn rest_of(self, amount: Money) -> Result<Money, MoneyError> {
        amount.part(self.seconds_left(), self.period.seconds())
    }

    /// Returns the seconds of the rest, at least 1.
    #[must_use]
    pub fn seconds_left(self) -> u64 {
        self.period.seconds_left(self.at)
    }

    /// Returns the whole period.
    #[must_use]
    pub const fn period(self) -> Period {
        self.period
    }
}

/// Divides an amount in proportion to weights, such that the parts add up to it. Units that remain after rounding down
/// go to the parts with the largest remainders; of equal remainders, to the earlier part.
///
/// Without a positive weight, all parts are zero.
///
/// # Errors
/// [`MoneyError::TooLarge`] if the sum of the weights exceeds 64 bits.
pub fn split_by_largest_remainder(
    amount: Money,
    weights: &[u64],
) -> Result<Vec<Money>, MoneyError> {
    let total = weights
        .iter()
        .try_fold(0_u64, |sum, weight| sum.checked_add(*weight))
        .ok_or(MoneyError::TooLarge)?;
    if total == 0 {
        return Ok(vec![Money::zero(amount.currency()); weights.len()]);
    }
    let (magnitude, total) = (u128::from(amount.minor().unsigned_abs()), u128::from(total));
    let products = weights.iter().map(|weight| magnitude * u128::from(*weight));
    let mut parts: Vec<_> = products
        .map(|product| (product / total, product % total))
        .collect();
    let given: u128 = parts.iter().map(|(part, _)| part).sum();
    let mut by_remainder: Vec<usize> = (0..parts.len()).collect();
    by_remainder.sort_by_key(|&position| std::cmp::Reverse(parts[position].1));
    let left = usize::try_from(magnitude - given).unwrap_or_default();
    for &position in by_remainder.iter().take(left) {
        parts[position].0 += 1;
    }
    let sign = i128::from(amount.minor().signum());
    let part = |(part, _)| {
        let part = i128::try_from(part).map_err(|_| MoneyError::TooLarge)?;
        Money::new(sign * part, amount.currency())
    };
    parts.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::billing::Currency;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    fn usd(minor: i128) -> Money {
        Money::new(minor, Currency::USD).unwrap()
    }

    /// Returns the rest of an amount from an instant on, in minor units.
    fn rest_of_amount(period: (&str, &str), change: &str, amount: i128) -> i64 {
        let period = Period::new(at(period.0), at(period.1)).unwrap();
        let proration = Proration::new(period, at(change)).unwrap();
        proration.rest_of(usd(amount)).unwrap().minor()
    }

    #[test]
    fn the_worked_examples_of_the_contract_are_reproduced() {
        let november = ("2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z");
        for (change, amount, expected) in [
            ("2026-11-16T00:00:00Z", 2_900, 1_450),
            ("2026-11-16T00:00:00Z", 9_900, 4_950),
            ("2026-11-16T00:00:00Z", 49_900, 24_950),
            ("2026-11-11T09:30:17Z", 2_900, 1_895),
            ("2026-11-11T09:30:17Z", 9_900, 6_469),
            ("2026-11-16T00:10:00Z", 9_900, 4_948),
            ("2026-11-16T00:10:00Z", 2_900, 1_449),
            ("2026-11-08T06:00:01Z", 2_900, 2_199),
            ("2026-11-08T06:00:01Z", 9_900, 7_507),
            ("2026-11-21T17:45:59Z", 9_900, 3_056),
            ("2026-11-21T17:45:59Z", 49_900, 15_402),
            ("2026-11-30T23:00:00Z", 2_900, 4),
            ("2026-11-30T23:00:00Z", 9_900, 14),
        ] {
            assert_eq!(
                rest_of_amount(november, change, amount),
                expected,
                "{change} {amount}"
            );
        }
        let march = ("2027-02-28T12:00:00Z", "2027-03-31T12:00:00Z");
        assert_eq!(rest_of_amount(march, "2027-03-15T12:00:00Z", 2_900), 1_497);
        assert_eq!(rest_of_amount(march, "2027-03-15T12:00:00Z", 9_900), 5_110);
        let year = ("2028-02-29T00:00:00Z", "2029-02-28T00:00:00Z");
        assert_eq!(rest_of_amount(year, "2028-08-29T00:00:00Z", 29_000), 14_540);
        assert_eq!(rest_of_amount(year, "2028-08-29T00:00:00Z", 99_000), 49_636);
    }

    #[test]
    fn the_remainder_falls_to_the_earlier_part() {
        let period = Period::new(at("2026-11-01T00:00:00Z"), at("2026-12-01T00:00:00Z")).unwrap();
        let half = Proration::new(period, at("2026-11-16T00:00:00Z")).unwrap();
        let yen = Money::new(999, Currency::parse("jpy").unwrap()).unwrap();
        let rest = half.rest_of(yen).unwrap();
        assert_eq!((rest.minor(), yen.minus(rest).unwrap().minor()), (500, 499));
    }

    #[test]
    fn a_change_outside_the_period_has_no_proration() {
        let period = Period::new(at("2026-11-01T00:00:00Z"), at("2026-12-01T00:00:00Z")).unwrap();
        assert!(Proration::new(period, period.start()).is_some());
        assert_eq!(Proration::new(period, period.end()), None);
        assert_eq!(Proration::new(period, at("2026-10-31T23:59:59Z")), None);
    }

    #[test]
    fn units_that_remain_go_to_the_largest_remainders() {
        let split = |amount, weights: &[u64]| -> Vec<i64> {
            let parts = split_by_largest_remainder(usd(amount), weights).unwrap();
            parts.into_iter().map(Money::minor).collect()
        };
        assert_eq!(split(100, &[1, 1, 1]), [34, 33, 33]);
        assert_eq!(split(-100, &[1, 1, 1]), [-34, -33, -33]);
        assert_eq!(split(14, &[200_000, 75_000]), [10, 4]);
        assert_eq!(split(5, &[0, 0]), [0, 0]);
        assert_eq!(split(5, &[]), [0_i64; 0]);
        let overflow = split_by_largest_remainder(usd(1), &[u64::MAX, 1]);
        assert_eq!(overflow, Err(MoneyError::TooLarge));
    }

    proptest! {
        #[test]
        fn rests_never_grow_and_the_parts_between_changes_add_up(
            start in 0..4_000_000_000_i64, length in 1..40_000_000_i64, amount in 0..10_000_000_i128,
            mut cuts in proptest::collection::vec(0..1_000_000_u64, 0..8),
        ) {
            let second = Timestamp::from_seconds;
            let period = Period::new(second(start), second(start + length)).unwrap();
            cuts.sort_unstable();
            let mut parts = Vec::new();
            let mut before = usd(amount);
            for cut in cuts {
                let change = start + i64::try_from(cut).unwrap() * length / 1_000_000;
                let rest = Proration::new(period, second(change)).unwrap().rest_of(usd(amount)).unwrap();
                prop_assert!(0 <= rest.minor() && rest.minor() <= before.minor());
                parts.push(before.minus(rest).unwrap());
                before = rest;
            }
            parts.push(before);
            prop_assert_eq!(Money::sum(Currency::USD, parts).unwrap(), usd(amount));
        }

        #[test]
        fn a_change_and_its_reversal_in_one_second_add_up_to_zero(
            start in 0..4_000_000_000_i64, length in 1..40_000_000_i64, cut in 0..1_000_000_i64,
            old in 0..10_000_000_i128, new in 0..10_000_000_i128,
        ) {
            let second = Timestamp::from_seconds;
            let period = Period::new(second(start), second(start + length)).unwrap();
            let change = Proration::new(period, second(start + cut * length / 1_000_000)).unwrap();
            let rest = |amount| change.rest_of(usd(amount)).unwrap();
            let lines = [rest(old).negate(), rest(new), rest(new).negate(), rest(old)];
            prop_assert_eq!(Money::sum(Currency::USD, lines).unwrap(), usd(0));
        }

        #[test]
        fn the_parts_of_an_amount_add_up_and_are_within_one_unit(
            amount in -10_000_000..10_000_000_i128,
            weights in proptest::collection::vec(0..1_000_000_u64, 1..12),
        ) {
            let parts = split_by_largest_remainder(usd(amount), &weights).unwrap();
            let total: u64 = weights.iter().sum();
            let expected = if total == 0 { 0 } else { amount };
            prop_assert_eq!(Money::sum(Currency::USD, parts.iter().copied()).unwrap(), usd(expected));
            for (part, weight) in parts.iter().zip(&weights) {
                let difference = i128::from(part.minor()) * i128::from(total) - expected * i128::from(*weight);
                prop_assert!(difference.abs() < i128::from(total.max(1)));
            }
        }
    }
}
