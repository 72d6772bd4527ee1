//! Metering of the requests and bytes that platforms use at the gateway.

use core_domain::kernel::PlatformId;
use core_domain::port::TrafficMeter;

/// Counts the requests of platforms that were forwarded to a service, and knows which platforms may send no more. It is
/// called for every request, so it must be fast and must not wait.
pub trait UsageMeter: TrafficMeter {
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
