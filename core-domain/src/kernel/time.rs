//! Instants and the clock port. The domain does not read a clock itself.

use std::time::Duration;

use jiff::SignedDuration;
use jiff::civil::DateTime;
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;

/// An instant in milliseconds since the Unix epoch, UTC.
///
/// Its JSON form is RFC 3339 with milliseconds and `Z`. For whole seconds in JSON, use [`UnixSeconds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// The last millisecond of the year 9999.
const MAX_MILLIS: i64 = 253_402_300_799_999;

/// The offset that is used to compute date and time. `jiff` supports instants only up to one offset before the end of
/// the year 9999. The instant is therefore reduced by this offset, and the offset is added back with the conversion.
const MAX_OFFSET: Offset = Offset::MAX;

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);

    /// Returns the instant this many milliseconds after the epoch, limited to the years 1970 to 9999.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        if millis < 0 {
            Self(0)
        } else if millis > MAX_MILLIS {
            Self(MAX_MILLIS)
        } else {
            Self(millis)
        }
    }

    /// Returns the instant this many seconds after the epoch, limited to the years 1970 to 9999.
    #[must_use]
    pub const fn from_seconds(seconds: i64) -> Self {
        Self::from_millis(seconds.saturating_mul(1_000))
    }

    /// Returns the milliseconds since the epoch.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Returns the whole seconds since the epoch, rounded down.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Returns the instant that is later by the duration, at most the end of the year 9999.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self::from_millis(
            self.0
                .saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// Returns the instant that is earlier by the duration, at least the epoch.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self::from_millis(
            self.0
                .saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// Returns the time from `earlier` to this instant; zero if this instant is not later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Parses an RFC 3339 instant in the years 1970 to 9999. Fractions below a millisecond are dropped. Returns `None`
    /// if the text is not such an instant.
    #[must_use]
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let pieces = Pieces::parse(text).ok()?;
        let local = pieces.date().to_datetime(pieces.time()?);
        let since_epoch = local.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0));
        let in_utc = since_epoch - SignedDuration::from(pieces.to_numeric_offset()?);
        if in_utc.is_negative() {
            return None;
        }
        let millis = i64::try_from(in_utc.as_millis()).ok()?;
        (0..=MAX_MILLIS).contains(&millis).then_some(Self(millis))
    }

    /// Returns the instant in RFC 3339 format, in UTC with milliseconds. Example: `2026-11-21T04:02:17.570Z`.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        self.format().as_str().to_owned()
    }

    fn format(self) -> Rfc3339 {
        let seconds = self.seconds() - i64::from(MAX_OFFSET.seconds());
        let nanos = self.0.rem_euclid(1_000) as i32 * 1_000_000;
        // Always in range, so the fallback is never used.
        let earlier = jiff::Timestamp::new(seconds, nanos).unwrap_or_default();
        let civil = MAX_OFFSET.to_datetime(earlier);
        let mut text = Rfc3339(*b"0000-00-00T00:00:00.000Z");
        text.put(0..4, civil.year());
        text.put(5..7, civil.month().into());
        text.put(8..10, civil.day().into());
        text.put(11..13, civil.hour().into());
        text.put(14..16, civil.minute().into());
        text.put(17..19, civil.second().into());
        text.put(20..23, civil.millisecond());
        text
    }
}

/// An instant as text. Lists contain many instants, so the digits are written directly instead of with a general
/// formatter.
struct Rfc3339([u8; 24]);

impl Rfc3339 {
    /// Writes the number into the digits, right-aligned and padded with zeros.
    fn put(&mut self, digits: std::ops::Range<usize>, number: i16) {
        let mut left = number.unsigned_abs();
        for digit in self.0[digits].iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.format().as_str())
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.format().as_str())
    }
}

impl<'de> serde::Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse_rfc3339(&text)
            .ok_or_else(|| serde::de::Error::custom("not an RFC 3339 instant"))
    }
}

impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time", "examples": ["2026-01-15T09:30:00.000Z"] })
    }
}

crate::kernel::arbitrary!(Timestamp);

/// An instant whose JSON form is whole Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixSeconds(pub Timestamp);

impl UnixSeconds {
    /// The last second of the year 9999.
    const MAX: i64 = MAX_MILLIS / 1_000;

    /// Serializes an instant as Unix seconds. Use `#[serde(serialize_with = "UnixSeconds::serialize_seconds")]` together with
    /// `#[schemars(with = "UnixSeconds")]`.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize_seconds<S: serde::Serializer>(
        at: &Timestamp,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(at.seconds())
    }

    /// Serializes an optional instant as Unix seconds or `null`; see [`UnixSeconds::serialize_seconds`].
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize_optional_seconds<S: serde::Serializer>(
        at: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serde::Serialize::serialize(&at.map(Timestamp::seconds), serializer)
    }
}

impl serde::Serialize for UnixSeconds {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0.seconds())
    }
}

impl<'de> serde::Deserialize<'de> for UnixSeconds {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = i64::deserialize(deserializer)?;
        if (0..=Self::MAX).contains(&seconds) {
            return Ok(Self(Timestamp::from_seconds(seconds)));
        }
        Err(serde::de::Error::custom(
            "not within the years 1970 to 9999",
        ))
    }
}

impl schemars::JsonSchema for UnixSeconds {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "UnixSeconds".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "integer", "minimum": 0, "maximum": Self::MAX, "examples": [1_768_469_400]
        })
    }
}

/// The clock port: the source of the current time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Returns the current instant.
    fn now(&self) -> Timestamp;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3339_text_has_milliseconds_and_z_and_parses_back() {
        let instant = Timestamp::from_millis(1_795_233_737_570);
        assert_eq!(instant.to_rfc3339(), "2026-11-21T04:02:17.570Z");
        assert_eq!(
            Timestamp::parse_rfc3339(&instant.to_rfc3339()),
            Some(instant)
        );
        assert_eq!(
            Timestamp::from_seconds(1_795_233_737).to_rfc3339(),
            "2026-11-21T04:02:17.000Z"
        );
    }

    proptest::proptest! {
        #[test]
        fn every_instant_formats_like_jiff_and_parses_back(millis in 0..=MAX_MILLIS) {
            let instant = Timestamp::from_millis(millis);
            let text = instant.to_rfc3339();
            let expected = jiff::Timestamp::from_millisecond(millis).unwrap();
            proptest::prop_assert_eq!(&text, &format!("{expected:.3}"));
            proptest::prop_assert_eq!(Timestamp::parse_rfc3339(&text), Some(instant));
        }
    }

    #[test]
    fn instants_at_the_limits_format_and_parse_and_others_are_refused() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (253_402_207_200_999, "9999-12-30T22:00:00.999Z"),
            (253_402_207_201_000, "9999-12-30T22:00:01.000Z"),
            (MAX_MILLIS, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp::from_millis(millis).to_rfc3339(), text);
            assert_eq!(Timestamp::parse_rfc3339(text), Some(Timestamp(millis)));
        }
        let last = Timestamp::from_seconds(i64::MAX);
        let read = Timestamp::parse_rfc3339;
        assert_eq!(read("9999-12-31T23:59:59.9999999Z"), Some(last));
        assert_eq!(read("1970-01-01T01:00:00+01:00"), Some(Timestamp::EPOCH));
        assert_eq!(read("1969-12-31T23:00:00-01:00"), Some(Timestamp::EPOCH));
        for outside in [
            "9999-12-31T23:59:59-00:01",
            "+010000-01-01T00:00:00Z",
            "10000-01-01T00:00:00Z",
            "0000-01-01T00:00:00Z",
            "1969-12-31T23:59:59.9999Z",
            "1970-01-01T00:30:00+01:00",
            "2026-01-01T00:00:00",
            "2026-01-01",
            "2026-02-29T00:00:00Z",
        ] {
            assert_eq!(read(outside), None, "{outside}");
        }
        let seconds = serde_json::from_str::<UnixSeconds>;
        assert_eq!(
            seconds("253402300799").unwrap().0.seconds(),
            253_402_300_799
        );
        for outside in ["253402300800", "-1", "9223372036854775807"] {
            assert!(seconds(outside).is_err(), "{outside}");
        }
    }

    #[test]
    fn arithmetic_stays_in_range() {
        let end = Timestamp::from_millis(i64::MAX);
        assert_eq!(end.plus(Duration::MAX), end);
        assert_eq!(
            Timestamp::EPOCH.minus(Duration::from_secs(5)),
            Timestamp::EPOCH
        );
        assert_eq!(Timestamp::EPOCH.since(end), Duration::ZERO);
    }
}
