//! The usage period that contains an instant (contract: "Periods").

use crate::billing::{Anchor, Interval, Period, Subscription, SubscriptionStatus};
use crate::kernel::Timestamp;

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// Returns the first second of the UTC day of an instant.
#[must_use]
pub const fn start_of_day(at: Timestamp) -> Timestamp {
    let seconds = at.seconds();
    Timestamp::from_seconds(seconds - seconds.rem_euclid(DAY_SECONDS))
}

/// The period of a subscription, and how it continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewingTerm {
    /// The current period of the subscription: a month, a year or a trial.
    pub period: Period,
    /// The instant from which the months are counted.
    pub anchor: Anchor,
    /// `true` if another period follows.
    pub renews: bool,
}

impl RenewingTerm {
    /// Returns the term of a subscription. Returns `None` if it has ended, or its stored period is empty.
    #[must_use]
    pub fn of(subscription: &Subscription) -> Option<Self> {
        let status = subscription.status;
        let ends = subscription.cancel_at_period_end
            || matches!(
                status,
                SubscriptionStatus::Unpaid | SubscriptionStatus::Paused
            );
        let period = subscription.period().ok()?;
        status.is_live().then_some(Self {
            period,
            anchor: Anchor::new(subscription.anchor),
            renews: !ends,
        })
    }

    /// Returns the usage period that contains an instant. Returns `None` if the instant is before the term, or after it
    /// and no other period follows.
    #[must_use]
    pub fn usage_period_at(self, at: Timestamp) -> Option<Period> {
        let term = self.period;
        if at.seconds() < term.start().seconds() {
            return None;
        }
        if term.contains(at) {
            // The months of a trial are counted from its start: its anchor is its end.
            let anchor = match self.anchor.at() > term.start() {
                true => Anchor::new(term.start()),
                false => self.anchor,
            };
            let month = anchor.period_at(Interval::Month, at)?;
            return Period::new(month.start().max(term.start()), month.end().min(term.end()));
        }
        let month = self.anchor.period_at(Interval::Month, at)?;
        let following = Period::new(month.start().max(term.end()), month.end());
        following.filter(|_| self.renews)
    }
}

/// The usage periods of a platform: those that are stored, those of its subscription, and calendar months otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageCalendar {
    /// The stored periods, in any order. No two of them overlap.
    pub stored: Vec<Period>,
    /// The period of the subscription that has not ended.
    pub term: Option<RenewingTerm>,
}

impl UsageCalendar {
    /// Returns the usage period that contains an instant: a stored one, one of the subscription, or else the part of the
    /// calendar month between these. Returns `None` after the year 9999.
    #[must_use]
    pub fn period_at(&self, at: Timestamp) -> Option<Period> {
        if let Some(stored) = self.stored.iter().find(|period| period.contains(at)) {
            return Some(*stored);
        }
        let of_term = self.term.and_then(|term| term.usage_period_at(at));
        let around = match of_term {
            Some(period) => period,
            None => calendar_month(at)?,
        };
        self.clip(around, at)
    }

    /// Returns the part of a period around an instant that no stored period and no other term covers.
    fn clip(&self, around: Period, at: Timestamp) -> Option<Period> {
        let term = self.term.map(|term| term.period);
        let others = self.stored.iter().copied().chain(term);
        let (mut start, mut end) = (around.start(), around.end());
        for other in others.filter(|other| !other.contains(at)) {
            if other.end().seconds() <= at.seconds() {
                start = start.max(other.end());
            } else {
                end = end.min(other.start());
            }
        }
        Period::new(start, end)
    }

    /// Returns when the rollup of an instant begins: with its UTC day or, if that begins later, with its usage period.
    #[must_use]
    pub fn rollup_start(period: Period, at: Timestamp) -> Timestamp {
        start_of_day(at).max(period.start())
    }
}

/// Returns the calendar month that contains an instant.
fn calendar_month(at: Timestamp) -> Option<Period> {
    Anchor::new(Timestamp::EPOCH).period_at(Interval::Month, at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    fn period(start: &str, end: &str) -> Period {
        Period::new(at(start), at(end)).unwrap()
    }

    fn term(start: &str, end: &str, anchor: &str, renews: bool) -> Option<RenewingTerm> {
        Some(RenewingTerm {
            period: period(start, end),
            anchor: Anchor::new(at(anchor)),
            renews,
        })
    }

    #[test]
    fn a_platform_without_a_subscription_has_calendar_months() {
        let found = UsageCalendar::default().period_at(at("2026-11-21T04:02:17Z"));
        assert_eq!(
            found,
            Some(period("2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"))
        );
    }

    #[test]
    fn the_months_of_a_year_are_usage_periods() {
        let term = term(
            "2027-01-31T12:00:00Z",
            "2028-01-31T12:00:00Z",
            "2027-01-31T12:00:00Z",
            true,
        );
        let calendar = UsageCalendar {
            stored: Vec::new(),
            term,
        };
        for (instant, start, end) in [
            (
                "2027-01-31T12:00:00Z",
                "2027-01-31T12:00:00Z",
                "2027-02-28T12:00:00Z",
            ),
            (
                "2027-03-01T00:00:00Z",
                "2027-02-28T12:00:00Z",
                "2027-03-31T12:00:00Z",
            ),
            (
                "2028-02-01T00:00:00Z",
                "2028-01-31T12:00:00Z",
                "2028-02-29T12:00:00Z",
            ),
            (
                "2027-01-31T11:59:59Z",
                "2027-01-01T00:00:00Z",
                "2027-01-31T12:00:00Z",
            ),
        ] {
            assert_eq!(
                calendar.period_at(at(instant)),
                Some(period(start, end)),
                "{instant}"
            );
        }
    }

    #[test]
    fn a_trial_is_a_usage_period_of_its_own() {
        let trial = ("2027-01-20T10:00:00Z", "2027-02-03T10:00:00Z");
        let calendar = UsageCalendar {
            stored: Vec::new(),
            term: term(trial.0, trial.1, trial.1, true),
        };
        let found = calendar.period_at(at("2027-01-25T00:00:00Z"));
        assert_eq!(found, Some(period(trial.0, trial.1)));
        let after = calendar.period_at(at("2027-02-03T10:00:00Z"));
        assert_eq!(after, Some(period(trial.1, "2027-03-03T10:00:00Z")));
    }

    #[test]
    fn a_month_without_a_subscription_ends_where_the_next_period_begins() {
        let calendar = UsageCalendar {
            stored: vec![period("2026-11-03T00:00:00Z", "2026-11-07T00:00:00Z")],
            term: term(
                "2026-11-16T00:00:00Z",
                "2026-11-20T00:00:00Z",
                "2026-11-16T00:00:00Z",
                false,
            ),
        };
        for (instant, start, end) in [
            (
                "2026-11-02T00:00:00Z",
                "2026-11-01T00:00:00Z",
                "2026-11-03T00:00:00Z",
            ),
            (
                "2026-11-05T00:00:00Z",
                "2026-11-03T00:00:00Z",
                "2026-11-07T00:00:00Z",
            ),
            (
                "2026-11-10T00:00:00Z",
                "2026-11-07T00:00:00Z",
                "2026-11-16T00:00:00Z",
            ),
            (
                "2026-11-17T00:00:00Z",
                "2026-11-16T00:00:00Z",
                "2026-11-20T00:00:00Z",
            ),
            (
                "2026-11-25T00:00:00Z",
                "2026-11-20T00:00:00Z",
                "2026-12-01T00:00:00Z",
            ),
        ] {
            assert_eq!(
                calendar.period_at(at(instant)),
                Some(period(start, end)),
                "{instant}"
            );
        }
    }

    proptest! {
        #[test]
        fn every_instant_of_a_period_has_that_period(
            cuts in prop::collection::btree_set(0_i64..20_000_000, 2..8), second in 0_i64..30_000_000,
            start in 0_i64..20_000_000, renews: bool,
        ) {
            let instant = |second| Timestamp::from_seconds(1_800_000_000 + second);
            let cuts: Vec<_> = cuts.into_iter().collect();
            let stored = cuts.chunks_exact(2).filter_map(|pair| Period::new(instant(pair[0]), instant(pair[1])));
            let stored: Vec<_> = stored.filter(|period| period.end() <= instant(start)).collect();
            let anchor = Anchor::new(instant(start));
            let month = anchor.period_at(Interval::Month, instant(start)).unwrap();
            let term = Some(RenewingTerm { period: month, anchor, renews });
            let calendar = UsageCalendar { stored, term };
            let found = calendar.period_at(instant(second)).unwrap();
            prop_assert!(found.contains(instant(second)));
            for inside in [found.start(), Timestamp::from_seconds(found.end().seconds() - 1)] {
                prop_assert_eq!(calendar.period_at(inside), Some(found));
            }
        }
    }
}
