//! The periods of a subscription (contract: "Periods"). All instants are whole seconds of UTC.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use jiff::{Span, ToSpan};

use crate::kernel::{Timestamp, text_enum};

text_enum! {
    /// How long the periods of a subscription are.
    pub enum Interval {
        /// One month.
        Month = "month",
        /// Twelve months.
        Year = "year",
    }
}

impl Interval {
    /// Returns the length in months.
    #[must_use]
    pub const fn months(self) -> u32 {
        match self {
            Self::Month => 1,
            Self::Year => 12,
        }
    }
}

/// A span of time that contains its start but not its end. The start is before the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    start: Timestamp,
    end: Timestamp,
}

impl Period {
    /// Creates a period of whole seconds. Returns `None` if it would be empty.
    #[must_use]
    pub fn new(start: Timestamp, end: Timestamp) -> Option<Self> {
        let (start, end) = (whole_second(start), whole_second(end));
        (start < end).then_some(Self { start, end })
    }

    /// Returns the first second of the period.
    #[must_use]
    pub const fn start(self) -> Timestamp {
        self.start
    }

    /// Returns the first second after the period.
    #[must_use]
    pub const fn end(self) -> Timestamp {
        self.end
    }

    /// Returns the length in seconds, at least 1.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.end.seconds().abs_diff(self.start.seconds())
    }

    /// Returns the seconds from an instant to the end of the period: all of them before the period, none after it.
    #[must_use]
    pub fn seconds_left(self, at: Timestamp) -> u64 {
        let at = at.seconds().clamp(self.start.seconds(), self.end.seconds());
        self.end.seconds().abs_diff(at)
    }

    /// Returns whether an instant is in the period.
    #[must_use]
    pub fn contains(self, at: Timestamp) -> bool {
        (self.start.seconds()..self.end.seconds()).contains(&at.seconds())
    }
}

/// The instant from which the periods of a subscription are counted: its creation, the end of its trial or its restart.
///
/// Each boundary is counted in months from the anchor itself, never from the boundary before. The day is reduced to the
/// last one of a shorter month, and the time of day is kept: 31 January, 28 February, 31 March.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor(Timestamp);

impl Anchor {
    /// Creates an anchor at the whole second of an instant.
    #[must_use]
    pub fn new(at: Timestamp) -> Self {
        Self(whole_second(at))
    }

    /// Returns the instant of the anchor.
    #[must_use]
    pub const fn at(self) -> Timestamp {
        self.0
    }

    /// Returns the instant this many months after the anchor. Returns `None` after the year 9999.
    #[must_use]
    pub fn boundary(self, months: u32) -> Option<Timestamp> {
        let span = Span::new().try_months(i64::from(months)).ok()?;
        let later = date_time(self.0)?.checked_add(span).ok()?;
        let later = Offset::UTC.to_timestamp(later).ok()?;
        Some(Timestamp::from_seconds(later.as_second()))
    }

    /// Returns the period that contains an instant. An instant before the anchor counts as the anchor. Returns `None`
    /// after the year 9999.
    #[must_use]
    pub fn period_at(self, interval: Interval, at: Timestamp) -> Option<Period> {
        let at = whole_second(at).max(self.0);
        let length = interval.months();
        // The boundary in the month of the instant can be after it, because of the day or the time of day.
        let mut periods = months_between(date_time(self.0)?, date_time(at)?) / length;
        if self.boundary(periods * length)? > at {
            periods -= 1;
        }
        let (start, end) = (periods * length, (periods + 1) * length);
        Period::new(self.boundary(start)?, self.boundary(end)?)
    }

    /// Returns the period that begins at the end of another one of this anchor.
    #[must_use]
    pub fn period_after(self, interval: Interval, period: Period) -> Option<Period> {
        self.period_at(interval, period.end())
    }
}

/// Returns the number of calendar months from the month of `start` to that of `end`, which is not earlier.
fn months_between(start: DateTime, end: DateTime) -> u32 {
    let month = |at: DateTime| i32::from(at.year()) * 12 + i32::from(at.month());
    u32::try_from(month(end) - month(start)).unwrap_or_default()
}

/// Returns the year and the month of an instant, in UTC.
pub(super) fn month_of(at: Timestamp) -> (u16, u8) {
    let at = date_time(at).unwrap_or_default();
    (at.year().unsigned_abs(), at.month().unsigned_abs())
}

/// Returns the first instant after a month, in UTC. Returns `None` if there is no such month.
pub(super) fn end_of_month(year: u16, month: u8) -> Option<Timestamp> {
    let (year, month) = (i16::try_from(year).ok()?, i8::try_from(month).ok()?);
    let first = Date::new(year, month, 1).ok()?;
    let next = first.checked_add(1_i32.months()).ok()?;
    let at = Offset::UTC.to_timestamp(next.to_datetime(Time::midnight()));
    Some(Timestamp::from_seconds(at.ok()?.as_second()))
}

fn date_time(at: Timestamp) -> Option<DateTime> {
    let at = jiff::Timestamp::from_second(at.seconds()).ok()?;
    Some(Offset::UTC.to_datetime(at))
}

const fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp::from_seconds(at.seconds())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    fn boundaries(anchor: &str, interval: Interval, count: u32) -> Vec<String> {
        let anchor = Anchor::new(at(anchor));
        let boundary = |n| anchor.boundary(n * interval.months()).unwrap();
        (1..=count).map(|n| boundary(n).to_rfc3339()).collect()
    }

    #[test]
    fn the_day_of_the_anchor_is_reduced_in_short_months_alone() {
        let expected = ["02-28", "03-31", "04-30", "05-31", "06-30"];
        assert_eq!(
            boundaries("2027-01-31T12:00:00Z", Interval::Month, 5),
            expected.map(|day| format!("2027-{day}T12:00:00.000Z"))
        );
        let expected = ["2029-02-28", "2030-02-28", "2031-02-28", "2032-02-29"];
        assert_eq!(
            boundaries("2028-02-29T00:00:00Z", Interval::Year, 4),
            expected.map(|day| format!("{day}T00:00:00.000Z"))
        );
    }

    #[test]
    fn a_period_contains_its_start_but_not_its_end() {
        let period = Period::new(at("2026-11-01T00:00:00Z"), at("2026-12-01T00:00:00Z")).unwrap();
        assert_eq!(period.seconds(), 2_592_000);
        assert!(period.contains(period.start()));
        assert!(!period.contains(period.end()));
        assert_eq!(period.seconds_left(at("2026-11-16T00:00:00Z")), 1_296_000);
        assert_eq!(
            period.seconds_left(at("2026-11-11T09:30:17.999Z")),
            1_693_783
        );
        assert_eq!(period.seconds_left(at("2026-12-24T00:00:00Z")), 0);
        assert_eq!(period.seconds_left(at("2026-10-24T00:00:00Z")), 2_592_000);
        assert_eq!(Period::new(period.end(), period.start()), None);
        assert_eq!(
            Period::new(
                period.start(),
                period.start().plus(std::time::Duration::from_millis(999))
            ),
            None
        );
    }

    #[test]
    fn there_are_no_periods_after_the_year_9999() {
        let anchor = Anchor::new(at("9999-11-30T00:00:00Z"));
        assert!(anchor.boundary(1).is_some());
        assert_eq!(anchor.boundary(2), None);
        assert_eq!(anchor.boundary(u32::MAX), None);
        assert_eq!(anchor.period_at(Interval::Year, anchor.at()), None);
    }

    /// A naive calendar that counts days.
    mod model {
        pub(super) fn is_leap_year(year: i64) -> bool {
            year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        }

        pub(super) fn days(year: i64, month: i64) -> i64 {
            match month {
                2 => 28 + i64::from(is_leap_year(year)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            }
        }

        /// Returns the seconds from 1970 to the start of a day.
        pub(super) fn seconds(year: i64, month: i64, day: i64) -> i64 {
            let years: i64 = (1970..year)
                .map(|year| 365 + i64::from(is_leap_year(year)))
                .sum();
            let months: i64 = (1..month).map(|month| days(year, month)).sum();
            (years + months + day - 1) * 86_400
        }

        pub(super) fn boundary(date: (i64, i64, i64), time: i64, months: i64) -> i64 {
            let (year, month, day) = date;
            let month = year * 12 + month - 1 + months;
            let (year, month) = (month / 12, month % 12 + 1);
            seconds(year, month, day.min(days(year, month))) + time
        }
    }

    prop_compose! {
        fn anchors()(year in 1970..2400_i64, month in 1..=12_i64)(
            day in 1..=model::days(year, month), time in 0..86_400_i64, year in Just(year), month in Just(month),
        ) -> ((i64, i64, i64), i64) {
            ((year, month, day), time)
        }
    }

    proptest! {
        #[test]
        fn boundaries_are_those_of_a_naive_calendar((date, time) in anchors(), months in 0..600_u32) {
            let start = model::boundary(date, time, 0);
            let anchor = Anchor::new(Timestamp::from_millis(start * 1_000 + 999));
            prop_assert_eq!(anchor.at().seconds(), start);
            let boundary = anchor.boundary(months).unwrap();
            prop_assert_eq!(boundary.seconds(), model::boundary(date, time, months.into()));
        }

        #[test]
        fn periods_follow_each_other_without_gap_or_overlap(
            (date, time) in anchors(), interval: Interval, later in 0..3_000_000_000_i64,
        ) {
            let anchor = Anchor::new(Timestamp::from_seconds(model::boundary(date, time, 0)));
            let at = Timestamp::from_seconds(anchor.at().seconds() + later);
            let period = anchor.period_at(interval, at).unwrap();
            prop_assert!(period.contains(at));
            let next = anchor.period_after(interval, period).unwrap();
            prop_assert_eq!(next.start(), period.end());
            for inside in [period.start(), Timestamp::from_seconds(period.end().seconds() - 1)] {
                prop_assert_eq!(anchor.period_at(interval, inside), Some(period));
            }
        }

        #[test]
        fn an_instant_before_the_anchor_is_in_the_first_period(
            (date, time) in anchors(), interval: Interval, earlier in 0..100_000_000_i64,
        ) {
            let anchor = Anchor::new(Timestamp::from_seconds(model::boundary(date, time, 0)));
            let at = Timestamp::from_seconds(anchor.at().seconds() - earlier);
            let first = anchor.period_at(interval, at).unwrap();
            prop_assert_eq!(first.start(), anchor.at());
        }
    }
}
