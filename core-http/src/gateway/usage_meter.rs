//! Metering of the requests and bytes that platforms use at the gateway.

use core_domain::kernel::PlatformId;

/// Counts the requests of platforms. It is called for every request, so it must be fast and must not wait.
pub trait UsageMeter: Send + Sync + std::fmt::Debug {
    /// Counts a request of a platform that was forwarded to a service, and the bytes of its response body.
    fn count(&self, platform: &PlatformId, response_bytes: u64);

    /// Returns the exhausted quota of requests of a platform. Returns `None` if the platform can send more requests.
    fn find_exhausted(&self, platform: &PlatformId) -> Option<ExhaustedRequests>;
}

/// A quota of requests that is used up. Only a trial and the tier `free` have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExhaustedRequests {
    /// The number of requests in the current period.
    pub used: u64,
    /// The number of requests that the plan includes.
    pub limit: u64,
}
