//! What the tests of several crates share: the stores that they run on, their clock, and the commands of operators for
//! jobs.
//!
//! A world, which is the environment of one crate's tests, belongs to that crate. Only what two worlds need is here.

#![expect(
    clippy::unwrap_used,
    reason = "a test whose environment cannot be created fails"
)]

mod commands;
mod stores;

use std::sync::Arc;

use core_domain::kernel::Timestamp;
use core_domain::testing::ManualClock;

pub use commands::{JobCommand, replay, run_command};
pub use stores::{Backend, OpenStore, StoreLocation, sqlx_pool};

/// Returns the clock of every test, set to 2027-01-15T08:00:00Z. It moves only when a test advances it.
#[must_use]
pub fn manual_clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)))
}
