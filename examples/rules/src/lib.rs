//! A rule of an embedding program over the records of the suite. `tests/rules.rs` tests it, and rules of the suite
//! itself, with the strategies of `core-domain` (feature `proptest`): `cargo test -p core-rules`.

use std::time::Duration;

use core_domain::kernel::Timestamp;
use core_domain::registry::{Platform, PlatformStatus};

/// How long a cancelled platform is kept before it may be archived: 90 days.
pub const MIN_ARCHIVE_AGE: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// Returns whether a platform may be archived: its owner cancelled it at least 90 days ago.
#[must_use]
pub fn may_be_archived(platform: &Platform, now: Timestamp) -> bool {
    let given_up = platform.status == PlatformStatus::Cancelled;
    let since = platform.cancelled_at;
    given_up && since.is_some_and(|since| now.since(since) >= MIN_ARCHIVE_AGE)
}
