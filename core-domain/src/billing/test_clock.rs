//! The test clock of billing, which an operator moves forward.

use std::time::Duration;

use crate::kernel::{Timestamp, record};

/// How far the clock of billing is ahead of that of the store. There is at most one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct TestClock {
    /// Always [`TestClock::ID`].
    #[cfg_attr(any(test, feature = "proptest"), proptest(regex = "[a-z]{1,8}"))]
    pub id: String,
    /// The lead in milliseconds, never negative.
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(strategy = "0_i64..1_i64 << 40")
    )]
    pub ahead_ms: i64,
}

record! {
    TestClock as "test clock" by id, asked TestClockQuery;
}

impl TestClock {
    /// The id of the only record.
    pub const ID: &'static str = "clock";

    /// Returns the instant of this clock for an instant of the store.
    #[must_use]
    pub fn at(&self, store: Timestamp) -> Timestamp {
        store.plus(Duration::from_millis(self.ahead_ms.unsigned_abs()))
    }
}

/// Queries for test clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestClockQuery {
    /// The only one.
    All,
}
