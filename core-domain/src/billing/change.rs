//! Changes of a subscription: what an upgrade costs now, and what waits for the end of the period (contract:
//! "Proration").

use serde::{Deserialize, Serialize};

use super::calendar::{Interval, Period};
use super::money::{Money, MoneyError};
use super::proration::Proration;
use crate::kernel::{Timestamp, text_enum};

text_enum! {
    /// Whether a change makes a subscription more or less expensive.
    pub enum ChangeDirection {
        /// The new recurring amount is higher. The change is made at once.
        Upgrade = "upgrade",
        /// The new recurring amount is not higher. The change waits for the end of the period.
        Downgrade = "downgrade",
    }
}

/// The recurring price of a subscription: the amount of one period for all units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recurring {
    /// The amount of one period: the price times the quantity.
    pub amount: Money,
    /// The length of a period.
    pub interval: Interval,
}

impl Recurring {
    /// Compares two recurring prices by what they cost in a year.
    fn is_above(self, other: Self) -> bool {
        let of_year = |price: Self| {
            let periods = Interval::Year.months() / price.interval.months();
            i128::from(price.amount.minor()) * i128::from(periods)
        };
        of_year(self) > of_year(other)
    }
}

/// A change of a subscription in the middle of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedChange {
    /// The recurring price until now.
    pub from: Recurring,
    /// The recurring price from now on.
    pub to: Recurring,
    /// What the current period was invoiced with for the plan in force: 0 in a trial or while the period is unpaid. An
    /// operator's override does not change it.
    pub billed: Money,
    /// The current period.
    pub period: Period,
    /// The instant of the change, in the period.
    pub at: Timestamp,
}

/// The amounts of a change that is made at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeAmounts {
    /// The credit for the rest of the period in minor units. Never positive.
    pub credit: i64,
    /// The charge in minor units: for the rest of the period, or for a whole one if the period restarts.
    pub charge: i64,
    /// Whether a new period begins with the change.
    pub restarts_period: bool,
}

impl PlannedChange {
    /// Returns whether the change is an upgrade. A change to a longer interval is one, because a whole period is paid in
    /// advance; the change back waits for the end of the period.
    #[must_use]
    pub fn direction(&self) -> ChangeDirection {
        let is_upgrade = match (self.from.interval, self.to.interval) {
            (Interval::Month, Interval::Year) => true,
            (Interval::Year, Interval::Month) => self.to.is_above(self.from),
            _ => self.to.amount.minor() > self.from.amount.minor(),
        };
        if is_upgrade {
            ChangeDirection::Upgrade
        } else {
            ChangeDirection::Downgrade
        }
    }

    /// Returns the amounts if the change is made at once. Returns `None` if its instant is not in the period.
    ///
    /// # Errors
    /// [`MoneyError`] does not occur for amounts that are valid on their own.
    pub fn amounts(&self) -> Result<Option<ChangeAmounts>, MoneyError> {
        let Some(rest) = Proration::new(self.period, self.at) else {
            return Ok(None);
        };
        let restarts_period = self.from.interval != self.to.interval;
        let charge = match restarts_period {
            true => self.to.amount,
            false => rest.rest_of(self.to.amount)?,
        };
        Ok(Some(ChangeAmounts {
            credit: rest.rest_of(self.billed)?.negate().minor(),
            charge: charge.minor(),
            restarts_period,
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::billing::Currency;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    fn usd(minor: i64) -> Money {
        Money::new(minor.into(), Currency::USD).unwrap()
    }

    const MONTH: Interval = Interval::Month;
    const YEAR: Interval = Interval::Year;

    fn november() -> Period {
        Period::new(at("2026-11-01T00:00:00Z"), at("2026-12-01T00:00:00Z")).unwrap()
    }

    fn change(from: (i64, Interval), to: (i64, Interval), when: &str) -> PlannedChange {
        let recurring = |(amount, interval)| Recurring {
            amount: usd(amount),
            interval,
        };
        PlannedChange {
            from: recurring(from),
            to: recurring(to),
            billed: usd(from.0),
            period: november(),
            at: at(when),
        }
    }

    fn amounts(change: PlannedChange) -> (i64, i64, bool) {
        let amounts = change.amounts().unwrap().unwrap();
        (amounts.credit, amounts.charge, amounts.restarts_period)
    }

    #[test]
    fn the_worked_examples_of_the_contract_are_reproduced() {
        let half = "2026-11-16T00:00:00Z";
        for (from, to, when, expected) in [
            ((2_900, MONTH), (9_900, MONTH), half, (-1_450, 4_950, false)),
            (
                (9_900, MONTH),
                (49_900, MONTH),
                half,
                (-4_950, 24_950, false),
            ),
            (
                (9_900, MONTH),
                (2_900, MONTH),
                "2026-11-16T00:10:00Z",
                (-4_948, 1_449, false),
            ),
            ((9_900, MONTH), (99_000, YEAR), half, (-4_950, 99_000, true)),
            (
                (2_900, MONTH),
                (9_900, MONTH),
                "2026-11-30T23:00:00Z",
                (-4, 14, false),
            ),
        ] {
            assert_eq!(amounts(change(from, to, when)), expected, "{from:?} {to:?}");
        }
        let overridden = PlannedChange {
            billed: usd(2_900),
            ..change((9_900, MONTH), (49_900, MONTH), half)
        };
        assert_eq!(amounts(overridden), (-1_450, 24_950, false));
        let in_trial = PlannedChange {
            billed: usd(0),
            ..change((2_900, MONTH), (9_900, MONTH), half)
        };
        assert_eq!(amounts(in_trial).0, 0);
    }

    #[test]
    fn a_change_is_an_upgrade_if_it_costs_more() {
        let direction = |from, to| change(from, to, "2026-11-16T00:00:00Z").direction();
        for (from, to) in [
            ((2_900, MONTH), (9_900, MONTH)),
            ((29_000, YEAR), (99_000, YEAR)),
            ((9_900, MONTH), (99_000, YEAR)),
            ((9_900, MONTH), (29_000, YEAR)),
            ((29_000, YEAR), (9_900, MONTH)),
        ] {
            assert_eq!(
                direction(from, to),
                ChangeDirection::Upgrade,
                "{from:?} {to:?}"
            );
        }
        for (from, to) in [
            ((9_900, MONTH), (2_900, MONTH)),
            ((9_900, MONTH), (9_900, MONTH)),
            ((99_000, YEAR), (2_900, MONTH)),
            ((99_000, YEAR), (29_000, YEAR)),
        ] {
            assert_eq!(
                direction(from, to),
                ChangeDirection::Downgrade,
                "{from:?} {to:?}"
            );
        }
    }

    #[test]
    fn a_change_outside_the_period_has_no_amounts() {
        let late = change((2_900, MONTH), (9_900, MONTH), "2026-12-01T00:00:00Z");
        assert_eq!(late.amounts(), Ok(None));
    }

    proptest! {
        #[test]
        fn two_changes_in_one_second_cost_as_much_as_one(
            second in 0..2_592_000_i64, a in 0..1_000_000_i64, b in 0..1_000_000_i64, c in 0..1_000_000_i64,
        ) {
            let when = Timestamp::from_seconds(november().start().seconds() + second);
            let step = |from, to| PlannedChange { at: when, ..change((from, MONTH), (to, MONTH), "2026-11-16T00:00:00Z") };
            let sum = |change: PlannedChange| { let (credit, charge, _) = amounts(change); credit + charge };
            prop_assert_eq!(sum(step(a, b)) + sum(step(b, c)), sum(step(a, c)));
            prop_assert_eq!(sum(step(a, b)) + sum(step(b, a)), 0);
        }
    }
}
