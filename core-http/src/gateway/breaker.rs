//! The circuit breaker of an upstream, and the budget for repeated requests.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The number of consecutive failures after which the breaker opens.
const MAX_FAILURES: u32 = 5;

/// How long an open breaker refuses requests before it lets one through. An upstream has one address, so refusing it for
/// longer would prolong an outage that has ended.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// Refuses requests to an upstream that cannot be reached, so that they fail at once instead of after a time-out.
///
/// The breaker opens after [`MAX_FAILURES`] consecutive failures to get a response. A response of any status is a
/// success. While the breaker is open, one request per [`PROBE_INTERVAL`] is let through. If it succeeds, the breaker
/// closes.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The number of failures since the last success.
    failures: u32,
    /// The time at which the next request is let through; `None` if the breaker is closed.
    next_probe: Option<Instant>,
}

/// The outcome of a request for the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The upstream responded.
    Answered,
    /// The upstream could not be reached, or did not respond in time.
    Failed,
}

impl Breaker {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a request may be sent now. If the breaker is open, the request is the probe of this interval.
    pub(super) fn admits(&self, now: Instant) -> bool {
        let mut state = self.state();
        match state.next_probe {
            None => true,
            Some(next) if now < next => false,
            // A probe without an outcome, because its client left, is followed by the probe of the next interval.
            Some(_) => {
                state.next_probe = Some(now + PROBE_INTERVAL);
                true
            }
        }
    }

    /// Records the outcome of a request. Returns `true` if the breaker opened or closed by it.
    pub(super) fn record(&self, attempt: Attempt, now: Instant) -> bool {
        let mut state = self.state();
        if attempt == Attempt::Answered {
            state.failures = 0;
            return state.next_probe.take().is_some();
        }
        state.failures = state.failures.saturating_add(1);
        if state.failures < MAX_FAILURES {
            return false;
        }
        state.next_probe.replace(now + PROBE_INTERVAL).is_none()
    }

    /// Returns whether requests are refused.
    pub(super) fn is_open(&self) -> bool {
        self.state().next_probe.is_some()
    }
}

/// The units that a retry costs. Each request earns one, so retries are at most a fifth of the requests.
const RETRY_COST: u32 = 5;

/// Maximum number of units, for 10 retries in a row.
const MAX_UNITS: u32 = 10 * RETRY_COST;

/// Limits the repeated requests to an upstream, so that they do not add load during an outage.
#[derive(Debug)]
pub(super) struct RetryBudget(Mutex<u32>);

impl Default for RetryBudget {
    /// Returns a full budget.
    fn default() -> Self {
        Self(Mutex::new(MAX_UNITS))
    }
}

impl RetryBudget {
    fn units(&self) -> MutexGuard<'_, u32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the unit that a request earns.
    pub(super) fn earn(&self) {
        let mut units = self.units();
        *units = (*units + 1).min(MAX_UNITS);
    }

    /// Takes the cost of a retry. Returns `false` if the budget is used up.
    pub(super) fn spend(&self) -> bool {
        let mut units = self.units();
        let Some(left) = units.checked_sub(RETRY_COST) else {
            return false;
        };
        *units = left;
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn line_53_the_breaker_opens_after_five_consecutive_failures_and_probes_once_per_interval() {
        let breaker = Breaker::default();
        let start = Instant::now();
        for _ in 0..2 {
            for _ in 0..MAX_FAILURES - 1 {
                assert!(breaker.admits(start));
                assert!(!breaker.record(Attempt::Failed, start));
            }
            assert!(!breaker.record(Attempt::Answered, start));
        }
        for failure in 1..=MAX_FAILURES {
            assert!(breaker.admits(start));
            assert_eq!(
                breaker.record(Attempt::Failed, start),
                failure == MAX_FAILURES
            );
        }
        assert!(breaker.is_open());
        assert!(!breaker.admits(start));
        let later = start + PROBE_INTERVAL;
        assert!(breaker.admits(later), "one probe passes");
        assert!(!breaker.admits(later), "a second one does not");
        assert!(!breaker.record(Attempt::Failed, later), "it stays open");
        let last = later + PROBE_INTERVAL;
        assert!(breaker.admits(last));
        assert!(breaker.record(Attempt::Answered, last));
        assert!(!breaker.is_open() && breaker.admits(last));
    }

    proptest! {
        #[test]
        fn line_52_retries_never_exceed_a_fifth_of_the_requests(
            requests in prop::collection::vec(any::<bool>(), 0..500),
        ) {
            let budget = RetryBudget::default();
            let mut retries = 0;
            for (sent, fails) in requests.into_iter().enumerate() {
                budget.earn();
                retries += usize::from(fails && budget.spend());
                prop_assert!(retries <= 10 + (sent + 1) / 5);
            }
        }
    }
}
