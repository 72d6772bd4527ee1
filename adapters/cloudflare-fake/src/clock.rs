//! The clock and the ids of the fake. They are deterministic: equal in every run.

use jiff::Timestamp;

/// The initial time in Unix seconds: 2026-11-01.
const EPOCH: u64 = 1_793_491_200;

/// A clock that advances by one second with each request, so later events have later times.
pub(crate) struct Clock(u64);

impl Clock {
    pub(crate) const fn new() -> Self {
        Self(EPOCH)
    }

    pub(crate) const fn tick(&mut self) {
        self.0 += 1;
    }

    /// Returns the time in RFC 3339 format.
    pub(crate) fn now(&self) -> String {
        let seconds = i64::try_from(self.0).unwrap_or(i64::MAX);
        Timestamp::from_second(seconds)
            .unwrap_or(Timestamp::MAX)
            .to_string()
    }
}

/// A generator of ids that look random but are derived from a counter.
#[derive(Default)]
pub(crate) struct Ids(u64);

impl Ids {
    /// Returns a new id of 32 hexadecimal digits.
    pub(crate) fn hex(&mut self) -> String {
        self.0 += 1;
        blake3::hash(&self.0.to_le_bytes()).to_hex()[..32].to_owned()
    }

    /// Returns a new UUID of version 4.
    pub(crate) fn uuid(&mut self) -> String {
        let hex = self.hex();
        let (a, b, c, d, e) = (
            &hex[..8],
            &hex[8..12],
            &hex[13..16],
            &hex[17..20],
            &hex[20..],
        );
        format!("{a}-{b}-4{c}-8{d}-{e}")
    }
}
