//! The rate limiter of requests. All users of the token in the process share it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::options::CloudflareOptions;

/// The pause after a 429 response that contains no time.
const DEFAULT_PAUSE: Duration = Duration::from_secs(30);

/// Maximum pause after a 429 response.
const MAX_PAUSE: Duration = Duration::from_hours(1);

/// Spreads requests over time. A quarter of the requests of a window can be sent at once and the rest evenly, so no
/// window exceeds its maximum.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    /// The time between two evenly spread requests.
    interval: Duration,
    /// The time by which requests may be ahead of the even schedule.
    tolerance: Duration,
    longest_wait: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The time of the next request in the even schedule.
    next_slot: Instant,
    /// No request is sent before this time.
    paused_until: Instant,
}

impl RateLimiter {
    pub(crate) fn new(options: &CloudflareOptions) -> Self {
        let burst = (options.requests / 4).max(1);
        let interval = options.window / (options.requests - burst).max(1);
        let now = Instant::now();
        Self {
            interval,
            tolerance: interval * (burst - 1),
            longest_wait: options.longest_wait,
            state: Mutex::new(State {
                next_slot: now,
                paused_until: now,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a request may be sent.
    ///
    /// # Errors
    /// The required waiting time, if it is too long.
    pub(crate) async fn acquire(&self) -> Result<(), Duration> {
        let wait = self.reserve(Instant::now())?;
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        // A pause may have started during the wait.
        match self.pause_left(Instant::now()) {
            Duration::ZERO => Ok(()),
            left => Err(left),
        }
    }

    fn reserve(&self, now: Instant) -> Result<Duration, Duration> {
        let paused = self.pause_left(now);
        if !paused.is_zero() {
            return Err(paused);
        }
        let mut state = self.state();
        let due = state.next_slot.max(now);
        let wait = (due - now).saturating_sub(self.tolerance);
        if wait > self.longest_wait {
            return Err(wait);
        }
        state.next_slot = due + self.interval;
        Ok(wait)
    }

    fn pause_left(&self, now: Instant) -> Duration {
        self.state().paused_until.saturating_duration_since(now)
    }

    /// Pauses all requests for the time that a response asked for. Returns the length of the pause.
    pub(crate) fn pause(&self, asked: Option<Duration>) -> Duration {
        let pause = asked.unwrap_or(DEFAULT_PAUSE);
        let pause = pause.clamp(Duration::from_secs(1), MAX_PAUSE);
        let until = Instant::now() + pause;
        let mut state = self.state();
        state.paused_until = state.paused_until.max(until);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(requests: u32, window: u64, longest_wait: u64) -> RateLimiter {
        RateLimiter::new(&CloudflareOptions {
            requests,
            window: Duration::from_secs(window),
            longest_wait: Duration::from_secs(longest_wait),
            ..CloudflareOptions::default()
        })
    }

    #[test]
    fn no_window_exceeds_its_maximum() {
        let limiter = limiter(16, 60, 0);
        let start = Instant::now();
        let mut sent: Vec<u64> = Vec::new();
        for second in 0..600 {
            // Sends all allowed requests, except in a quiet period.
            let quiet = (200..300).contains(&second);
            while !quiet && limiter.reserve(start + Duration::from_secs(second)).is_ok() {
                sent.push(second);
            }
        }
        let most = sent
            .iter()
            .map(|from| {
                sent.iter()
                    .filter(|at| (*from..from + 60).contains(at))
                    .count()
            })
            .max();
        assert!(matches!(most, Some(15 | 16)), "{most:?}");
        assert!(sent.len() >= 100, "{}", sent.len());
    }

    #[test]
    fn request_waits_briefly_or_fails_with_the_waiting_time() {
        let limiter = limiter(8, 60, 15);
        let now = Instant::now();
        let waits: Vec<_> = (0..4).map(|_| limiter.reserve(now)).collect();
        let seconds = |s| Duration::from_secs(s);
        let expected = [
            Ok(seconds(0)),
            Ok(seconds(0)),
            Ok(seconds(10)),
            Err(seconds(20)),
        ];
        assert_eq!(waits[..], expected);
        // The refused request did not use a slot.
        assert_eq!(limiter.reserve(now + seconds(10)), Ok(seconds(10)));
    }

    #[tokio::test]
    async fn no_request_is_sent_during_a_pause() {
        let limiter = limiter(100, 60, 15);
        let asked = Duration::from_secs(7);
        assert_eq!(limiter.pause(Some(asked)), asked);
        // A shorter pause does not end a longer one.
        limiter.pause(Some(Duration::ZERO));
        let left = limiter.acquire().await.unwrap_err();
        assert!(left > Duration::from_secs(5) && left <= asked, "{left:?}");
        assert_eq!(limiter.pause(None), DEFAULT_PAUSE);
        assert_eq!(limiter.pause(Some(Duration::MAX)), MAX_PAUSE);
    }
}
