//! The breaker: after several failures in a row, no requests are sent for some time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::options::StripeOptions;

/// Counts failures. After the pause, one request is sent as a trial; if it fails, the pause begins again.
#[derive(Debug)]
pub(crate) struct Breaker {
    max_failures: u32,
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of failures since the last success.
    failures: u32,
    /// No request is sent before this time.
    open_until: Option<Instant>,
}

impl Breaker {
    pub(crate) fn new(options: &StripeOptions) -> Self {
        Self {
            max_failures: options.breaker_failures,
            pause: options.breaker_pause,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a request may be sent. The first one after a pause is the trial, during which others are refused.
    pub(crate) fn admits(&self) -> bool {
        let now = Instant::now();
        let mut state = self.state();
        let Some(open_until) = state.open_until else {
            return true;
        };
        if now < open_until {
            return false;
        }
        state.open_until = Some(now + self.pause);
        true
    }

    /// Records a response of the API.
    pub(crate) fn succeed(&self) {
        *self.state() = State::default();
    }

    /// Records a failure.
    pub(crate) fn fail(&self) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        if state.failures >= self.max_failures {
            state.open_until = Some(Instant::now() + self.pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker() -> Breaker {
        Breaker::new(&StripeOptions::default())
    }

    #[tokio::test(start_paused = true)]
    async fn five_failures_in_a_row_stop_requests_for_thirty_seconds() {
        let breaker = breaker();
        for _ in 0..5 {
            assert!(breaker.admits());
            breaker.fail();
        }
        assert!(!breaker.admits());
        tokio::time::advance(Duration::from_secs(29)).await;
        assert!(!breaker.admits());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(breaker.admits());
        // The trial is pending.
        assert!(!breaker.admits());
        breaker.fail();
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(breaker.admits());
        breaker.succeed();
        assert!(breaker.admits() && breaker.admits());
    }

    #[tokio::test(start_paused = true)]
    async fn a_success_resets_the_count() {
        let breaker = breaker();
        for _ in 0..3 {
            for _ in 0..4 {
                breaker.fail();
            }
            breaker.succeed();
        }
        assert!(breaker.admits());
    }
}
