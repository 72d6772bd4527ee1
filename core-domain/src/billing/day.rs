//! Calendar days in UTC.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::usage::start_of_day;
use crate::kernel::Timestamp;

/// The length of a day.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A calendar day in UTC, from 1970 to 9999. Its text form is `YYYY-MM-DD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(Timestamp);

/// The error for a text that is not a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a day from 1970 to 9999 in the form YYYY-MM-DD")]
pub struct DayError;

impl Day {
    /// Returns the day that contains an instant.
    #[must_use]
    pub const fn of(at: Timestamp) -> Self {
        Self(start_of_day(at))
    }

    /// Returns the first instant of the day.
    #[must_use]
    pub const fn start(self) -> Timestamp {
        self.0
    }

    /// Returns the first instant after the day.
    #[must_use]
    pub fn end(self) -> Timestamp {
        self.0.plus(DAY)
    }
}

impl FromStr for Day {
    type Err = DayError;

    fn from_str(text: &str) -> Result<Self, DayError> {
        let start = Timestamp::parse_rfc3339(&format!("{text}T00:00:00Z")).map(Self);
        // The parser also accepts other forms of a date, such as one without hyphens.
        start.filter(|day| day.to_string() == text).ok_or(DayError)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_rfc3339();
        f.write_str(text.get(.."YYYY-MM-DD".len()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_one_text_form() {
        let day: Day = "2028-02-29".parse().unwrap();
        assert_eq!(day.to_string(), "2028-02-29");
        assert_eq!(day.start().to_rfc3339(), "2028-02-29T00:00:00.000Z");
        assert_eq!(day.end().to_rfc3339(), "2028-03-01T00:00:00.000Z");
        assert_eq!(Day::of(day.end().minus(Duration::from_millis(1))), day);
        assert_eq!(Day::of(day.end()).to_string(), "2028-03-01");
        for text in [
            "2027-02-29",
            "20280229",
            "2028-2-29",
            "1969-12-31",
            "2028-02-29T00",
            "",
            "today",
        ] {
            assert_eq!(text.parse::<Day>(), Err(DayError), "{text}");
        }
    }
}
