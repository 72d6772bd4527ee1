//! The port to which requests of platforms and visitors of their sites are reported as usage.

use crate::kernel::PlatformId;

/// Counts the requests to platforms and to their sites. It is called for every request, so it must be fast and must not
/// wait.
pub trait TrafficMeter: Send + Sync + std::fmt::Debug {
    /// Counts a request for a platform, and the bytes of the body of its response.
    fn count(&self, platform: &PlatformId, response_bytes: u64);
}
