//! The machine's clock, the one place that reads it.

use std::time::{SystemTime, UNIX_EPOCH};

use core_domain::kernel::{Clock, Timestamp};

/// The machine's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the adapter behind the Clock port"
    )]
    fn now(&self) -> Timestamp {
        // A clock before 1970 reads as 1970.
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }
}
