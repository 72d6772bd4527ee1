//! The system clock. No other module reads the time.

use std::time::{SystemTime, UNIX_EPOCH};

use core_domain::kernel::{Clock, Timestamp};

/// The system's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the adapter behind the Clock port"
    )]
    fn now(&self) -> Timestamp {
        // A clock that is set before 1970 reads as 1970.
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }
}
