//! Limits the number of concurrent uploads.
//!
//! Receiving an upload costs a file and a connection for as long as the client takes. Checking and storing it costs
//! processor time. The two are therefore limited separately, and the second limit only applies once a body is complete.

use std::time::Duration;

use core_domain::kernel::{Code, Error, PlatformId, Result, duration_text};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::fair_slots::{Capacity, FairSlots, Slot};

/// Maximum time that an upload waits, unread, until it may be received.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time that a received upload waits until it may be checked. Well below the response timeout of a gateway.
const CHECK_TIMEOUT: Duration = Duration::from_secs(15);

/// The time after which a refused client may retry, in seconds.
const RETRY_AFTER: u64 = 5;

/// Limits on concurrent uploads, and on the duration of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UploadLimits {
    /// Maximum number of uploads that are received at the same time, over all platforms. Default: 64.
    pub spools: usize,
    /// Maximum number of uploads of one platform that are received at the same time. When all [`Self::spools`] are
    /// taken, platforms that have several lose one to platforms that have none. Default: 4.
    pub spools_per_platform: usize,
    /// Maximum disk space for uploads that are being received, in bytes. An upload without `Content-Length` counts with
    /// the maximum size. Default: 4 GiB.
    pub spool_bytes: u64,
    /// Maximum number of uploads that are checked and stored at the same time. Each needs processor time and up to 32
    /// MiB of memory. Default: 2.
    pub permits: usize,
    /// Maximum pause of a client during its upload. Default: 60 seconds.
    #[serde(with = "duration_text")]
    pub idle_timeout: Duration,
    /// Maximum total time for receiving an upload. Default: 15 minutes, enough for 100 MiB at one megabit per second.
    #[serde(with = "duration_text")]
    pub upload_timeout: Duration,
}

impl Default for UploadLimits {
    fn default() -> Self {
        Self {
            spools: 64,
            spools_per_platform: 4,
            spool_bytes: 4 * 1024 * 1024 * 1024,
            permits: 2,
            idle_timeout: Duration::from_secs(60),
            upload_timeout: Duration::from_secs(15 * 60),
        }
    }
}

/// Limits concurrent uploads. Clones share the counts.
#[derive(Clone, Debug)]
pub(super) struct UploadLimiter {
    spools: FairSlots,
    permits: FairSlots,
}

impl UploadLimiter {
    pub(super) fn new(limits: UploadLimits) -> Self {
        Self {
            spools: FairSlots::new(Capacity {
                slots: limits.spools,
                per_platform: limits.spools_per_platform,
                bytes: limits.spool_bytes,
            }),
            permits: FairSlots::new(Capacity {
                slots: limits.permits,
                per_platform: limits.permits,
                bytes: 0,
            }),
        }
    }

    /// Waits until an upload of at most `bytes` may be received.
    ///
    /// # Errors
    /// `SERVICE_UNAVAILABLE` with `Retry-After` if there is no room for it within 5 seconds.
    pub(super) async fn receive(&self, platform: &PlatformId, bytes: u64) -> Result<Slot> {
        let slot = self.spools.acquire(platform, bytes, RECEIVE_TIMEOUT);
        slot.await.ok_or_else(too_many)
    }

    /// Waits until a received upload may be checked and stored.
    ///
    /// # Errors
    /// `SERVICE_UNAVAILABLE` with `Retry-After` if no permit is free within 15 seconds.
    pub(super) async fn check(&self, platform: &PlatformId) -> Result<Slot> {
        let permit = self.permits.acquire(platform, 0, CHECK_TIMEOUT);
        let mut permit = permit.await.ok_or_else(too_many)?;
        permit.make_permanent();
        Ok(permit)
    }
}

/// Returns the error for an upload that exceeds the limits at the moment.
pub(super) fn too_many() -> Error {
    Error::Refused {
        code: Code::ServiceUnavailable,
        message: "Too many sites are being uploaded at the moment.".to_owned(),
        details: json!({ "retryAfter": RETRY_AFTER }),
    }
}
