//! Reads and writes durations as text, such as `90s`, `1h 30m` or `400d`. Use it with `#[serde(with = "duration_text")]`.
//!
//! A day is 24 hours, and a week is 7 days. Months and years are refused, because their lengths differ.

use std::time::Duration;

use jiff::fmt::friendly::{SpanParser, SpanPrinter};
use jiff::{Error, SignedDuration, SpanRelativeTo};
use serde::{Deserialize, Deserializer, Serializer, de};

const DAY: u64 = 24 * 60 * 60;

/// Shortest duration that is written in days.
const MIN_IN_DAYS: u64 = 2 * DAY;

static PARSER: SpanParser = SpanParser::new();
static PRINTER: SpanPrinter = SpanPrinter::new();

/// Parses a duration that is not negative.
fn parse(text: &str) -> Result<Duration, Error> {
    let span = PARSER.parse_span(text)?;
    let duration: SignedDuration = span.to_duration(SpanRelativeTo::days_are_24_hours())?;
    Duration::try_from(duration)
}

/// Returns the text of a duration: whole days from two days on, otherwise units up to hours.
fn text_of(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds >= MIN_IN_DAYS && seconds.is_multiple_of(DAY) && duration.subsec_nanos() == 0 {
        return format!("{}d", seconds / DAY);
    }
    PRINTER.unsigned_duration_to_string(&duration)
}

/// Writes a duration.
///
/// # Errors
/// Only those of the serializer.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text_of(*duration))
}

/// Reads a duration.
///
/// # Errors
/// The text is not a duration, or it is negative or has months or years.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).map_err(de::Error::custom)
}

/// Reads and writes durations that may be absent, like [`duration_text`](self).
pub mod optional {
    use super::{Deserialize, Deserializer, Duration, Serializer, de, parse, text_of};

    /// Writes a duration; `None` as null.
    ///
    /// # Errors
    /// Only those of the serializer.
    pub fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => serializer.serialize_some(&text_of(*duration)),
            None => serializer.serialize_none(),
        }
    }

    /// Reads a duration or null.
    ///
    /// # Errors
    /// Those of [`duration_text::deserialize`](super::deserialize).
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| parse(&text).map_err(de::Error::custom))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::*;

    #[test]
    fn days_and_weeks_are_24_and_168_hours() {
        for (text, seconds) in [
            ("30d", 30 * DAY),
            ("1w", 7 * DAY),
            ("1d 12h", DAY + DAY / 2),
            ("2 days", 2 * DAY),
            ("90s", 90),
            ("1h 30m", 5_400),
        ] {
            assert_eq!(parse(text).unwrap(), Duration::from_secs(seconds), "{text}");
        }
    }

    #[test]
    fn months_negative_and_other_texts_are_refused() {
        for text in ["1mo", "1y", "-1s", "1s ago", "", "30", "soon", "1e3s"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn whole_days_are_written_as_days() {
        for (hours, text) in [(9_600, "400d"), (48, "2d"), (24, "24h"), (49, "49h")] {
            assert_eq!(text_of(Duration::from_secs(hours * 3_600)), text);
        }
        assert_eq!(text_of(Duration::from_millis(1_500)), "1s 500ms");
        assert_eq!(text_of(Duration::ZERO), "0s");
    }

    proptest! {
        #[test]
        fn every_text_is_read_as_the_duration_that_was_written(
            seconds in any::<u32>(), nanos in 0_u32..1_000_000_000, whole_days: bool,
        ) {
            let written = if whole_days {
                Duration::from_secs(u64::from(seconds % 10_000) * DAY)
            } else {
                Duration::new(u64::from(seconds), nanos)
            };
            assert_eq!(parse(&text_of(written)).unwrap(), written);
        }
    }
}
