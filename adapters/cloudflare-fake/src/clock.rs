//! The fake's own time and its ids: the same ones in every run.

use jiff::Timestamp;

/// The first second of its time, 2026-11-01.
const EPOCH: u64 = 1_793_491_200;

/// A clock that goes on by a second with each request, so that what is later has a later time.
pub(crate) struct Clock(u64);

impl Clock {
    pub(crate) const fn new() -> Self {
        Self(EPOCH)
    }

    pub(crate) const fn tick(&mut self) {
        self.0 += 1;
    }

    /// Seconds of Unix time.
    pub(crate) const fn seconds(&self) -> u64 {
        self.0
    }

    /// As RFC 3339.
    pub(crate) fn now(&self) -> String {
        let seconds = i64::try_from(self.0).unwrap_or(i64::MAX);
        Timestamp::from_second(seconds)
            .unwrap_or(Timestamp::MAX)
            .to_string()
    }
}

/// Ids that look drawn and are counted.
#[derive(Default)]
pub(crate) struct Ids(u64);

impl Ids {
    /// 32 hex digits.
    pub(crate) fn hex(&mut self) -> String {
        self.0 += 1;
        blake3::hash(&self.0.to_le_bytes()).to_hex()[..32].to_owned()
    }

    /// A UUID of version 4.
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
