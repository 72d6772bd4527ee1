//! How many uploads there are at a time. Receiving one costs a file and a connection for as long as its sender likes;
//! checking and storing it costs processor time. So the two are counted apart, and the costly one only once a body is whole.

use std::time::Duration;

use core_domain::kernel::{Code, Error, PlatformId, Result, duration_text};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::fair_slots::{Capacity, FairSlots, Slot};

/// How long an upload waits, unread, until it may be received.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a received upload waits until it is checked; well below the time a gateway waits for an answer.
const CHECK_TIMEOUT: Duration = Duration::from_secs(15);

/// When a refused client should come back, in seconds.
const RETRY_AFTER: u64 = 5;

/// How many uploads there may be at a time, and how long one may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UploadLimits {
    /// Uploads that are received at a time, over all platforms. 64 by default.
    pub spools: usize,
    /// Uploads of one platform that are received at a time. 4 by default. When all [`Self::spools`] are taken, platforms
    /// that have none get one from those that have several.
    pub spools_per_platform: usize,
    /// Bytes on the disk of all uploads that are being received; one that does not tell its length counts as the largest
    /// there may be. 4 GiB by default.
    pub spool_bytes: u64,
    /// Uploads that are checked and stored at a time, each with some processor time and up to 32 MiB. Default: 2.
    pub permits: usize,
    /// How long a client may pause in the middle of its upload. 60 s by default.
    #[serde(with = "duration_text")]
    pub idle_timeout: Duration,
    /// How long receiving an upload may take in all: 100 MiB at one megabit a second, 15 min by default.
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

/// Lets uploads in. Clones share what they count.
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

    /// Waits until an upload of so many bytes may be received.
    ///
    /// # Errors
    /// `SERVICE_UNAVAILABLE` with `Retry-After` when there was no room for it meanwhile.
    pub(super) async fn receive(&self, platform: &PlatformId, bytes: u64) -> Result<Slot> {
        let slot = self.spools.acquire(platform, bytes, RECEIVE_TIMEOUT);
        slot.await.ok_or_else(too_many)
    }

    /// Waits until a received upload may be checked and stored.
    ///
    /// # Errors
    /// `SERVICE_UNAVAILABLE` with `Retry-After` when others needed that long.
    pub(super) async fn check(&self, platform: &PlatformId) -> Result<Slot> {
        let permit = self.permits.acquire(platform, 0, CHECK_TIMEOUT);
        let mut permit = permit.await.ok_or_else(too_many)?;
        permit.settle();
        Ok(permit)
    }
}

/// Refuses an upload for now.
pub(super) fn too_many() -> Error {
    Error::Refused {
        code: Code::ServiceUnavailable,
        message: "Too many sites are being uploaded at the moment.".to_owned(),
        details: json!({ "retryAfter": RETRY_AFTER }),
    }
}
