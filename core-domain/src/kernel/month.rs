//! Calendar months in UTC, by which the audit log is archived.

use std::fmt;

use jiff::civil::Date;
use jiff::tz::Offset;

use super::{Timestamp, first_uuid};

/// A month of the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month {
    /// The number of months since January of the year 0.
    number: i32,
}

impl Month {
    /// Returns the month of an instant. An instant outside of the years -9999 to 9999 counts as 1970.
    #[must_use]
    pub fn of(at: Timestamp) -> Self {
        let instant = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or_default();
        let date = Offset::UTC.to_datetime(instant).date();
        Self::new(date.year(), date.month())
    }

    /// Parses a month such as `2026-11`; `None` if the text is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (year, month) = text.split_once('-')?;
        let date = Date::new(year.parse().ok()?, month.parse().ok()?, 1).ok()?;
        let month = Self::new(date.year(), date.month());
        (month.to_string() == text).then_some(month)
    }

    fn new(year: i16, month: i8) -> Self {
        Self {
            number: i32::from(year) * 12 + i32::from(month) - 1,
        }
    }

    /// Returns the next month.
    #[must_use]
    pub const fn next(self) -> Self {
        Self {
            number: self.number.saturating_add(1),
        }
    }

    /// Returns the first instant of the month. A month after the year 9999 starts at the last possible instant.
    #[must_use]
    pub fn start(self) -> Timestamp {
        let (year, month) = self.parts();
        let date = Date::new(year, month, 1).ok();
        let start = date.and_then(|date| Offset::UTC.to_timestamp(date.into()).ok());
        Timestamp::from_millis(start.map_or(i64::MAX, jiff::Timestamp::as_millisecond))
    }

    /// Returns the smallest text that sorts before or equal to every UUIDv7 of the month, and after all of earlier
    /// months.
    #[must_use]
    pub fn first_key(self) -> String {
        first_uuid(self.start())
    }

    fn parts(self) -> (i16, i8) {
        let year = i16::try_from(self.number.div_euclid(12)).unwrap_or(1970);
        let month = i8::try_from(self.number.rem_euclid(12)).unwrap_or(0) + 1;
        (year, month)
    }
}

/// Shows the month as `2026-11`.
impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month) = self.parts();
        write!(f, "{year:04}-{month:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::new_uuid;
    use crate::testing::SeededEntropy;

    fn month(year: i16, month: i8) -> Month {
        Month::new(year, month)
    }

    #[test]
    fn months_follow_each_other_over_the_end_of_a_year() {
        assert_eq!(month(2026, 12).next(), month(2027, 1));
        assert_eq!(month(2026, 11).next().to_string(), "2026-12");
    }

    #[test]
    fn only_the_text_of_a_month_is_one() {
        assert_eq!(Month::parse("2026-11"), Some(month(2026, 11)));
        for text in ["2026-13", "2026-1", "2026", "+2026-01", "2026-11-01", ""] {
            assert_eq!(Month::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_start_of_a_month_belongs_to_it_and_the_millisecond_before_does_not() {
        for of in [month(2024, 2), month(2026, 12), month(1970, 2)] {
            assert_eq!(Month::of(of.start()), of);
            let before = Timestamp::from_millis(of.start().millis() - 1);
            assert_eq!(Month::of(before).next(), of);
        }
        assert_eq!(
            month(2027, 1).start(),
            Timestamp::from_seconds(1_798_761_600)
        );
    }

    #[test]
    fn a_month_after_the_last_year_starts_later_than_all_others() {
        let last = month(9999, 12);
        assert!(last.next().start() > last.start());
        assert!(last.next().next().start() > last.start());
    }

    #[test]
    fn the_first_key_separates_the_ids_of_two_months() {
        let entropy = SeededEntropy::new(5);
        let of = month(2026, 12);
        let before = Timestamp::from_millis(of.start().millis() - 1);
        for _ in 0..100 {
            assert!(new_uuid(before, &entropy) < of.first_key());
            assert!(new_uuid(of.start(), &entropy) >= of.first_key());
        }
    }
}
