//! The delay of sign-ins after failed attempts.

use std::time::Duration;

use crate::kernel::Timestamp;

/// Number of failed attempts without a delay, so that owners can mistype their password.
const FAILURES_WITHOUT_DELAY: u32 = 5;

/// Maximum delay. An attacker must keep trying to lock the owner out, and existing sessions stay valid.
const MAX_DELAY: Duration = Duration::from_secs(15 * 60);

/// Time after the last failure at which all failures are forgotten.
pub const FAILURE_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns the time after the last failure during which no password is accepted, not even the right one. The delay is
/// zero for up to 4 failures and 1 second for 5. It doubles with each further failure, up to 15 minutes.
#[must_use]
pub fn sign_in_delay(failures: u32) -> Duration {
    let Some(doublings) = failures.checked_sub(FAILURES_WITHOUT_DELAY) else {
        return Duration::ZERO;
    };
    // 2^10 seconds are more than the maximum delay.
    let seconds = 1_u64 << doublings.min(10);
    Duration::from_secs(seconds).min(MAX_DELAY)
}

/// Returns the delays of [`sign_in_delay`] after 0, 1, 2 and more failures, up to the first one that is the maximum. More
/// failures have the last delay. Counters outside of this process use the list.
#[must_use]
pub fn sign_in_delays() -> Vec<Duration> {
    let growing = (0..)
        .map(sign_in_delay)
        .take_while(|delay| *delay < MAX_DELAY);
    growing.chain([MAX_DELAY]).collect()
}

/// The failed attempts that delay further attempts. They are counted per account, per known browser of an account, or
/// per session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedAttempts {
    /// Number of attempts that failed or whose outcome is not known yet. At least 1.
    pub count: u32,
    /// The time at which the last counted attempt started.
    pub last_attempt_at: Timestamp,
    /// Whether an attempt was refused since the last counted one.
    pub has_refused: bool,
}

/// The refusal of an attempt that comes too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptRefusal {
    /// Number of failed attempts before this one.
    pub failures: u32,
    /// Time until the next attempt is allowed.
    pub retry_after: Duration,
    /// Whether the attempt is the first one that was refused since the last counted attempt. Only the first one is recorded in the audit
    /// log.
    pub is_first: bool,
}

impl FailedAttempts {
    /// Counts an attempt that starts now as failed, unless it comes too early. Returns the new state, and the refusal
    /// if there is one.
    ///
    /// Attempts are counted before their outcome is known, so that concurrent attempts are counted too.
    #[must_use]
    pub fn register(known: Option<Self>, now: Timestamp) -> (Self, Option<AttemptRefusal>) {
        let known = known.filter(|known| now.since(known.last_attempt_at) < FAILURE_RETENTION);
        let Some(known) = known else {
            return (Self::new(1, now), None);
        };
        let allowed_at = known.last_attempt_at.plus(sign_in_delay(known.count));
        if now >= allowed_at {
            return (Self::new(known.count.saturating_add(1), now), None);
        }
        let refusal = AttemptRefusal {
            failures: known.count,
            retry_after: allowed_at.since(now),
            is_first: !known.has_refused,
        };
        let refused = Self {
            has_refused: true,
            ..known
        };
        (refused, Some(refusal))
    }

    const fn new(count: u32, last: Timestamp) -> Self {
        Self {
            count,
            last_attempt_at: last,
            has_refused: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_delayed_after_five_failures_and_the_first_refusal_is_marked() {
        let at = |seconds: i64| Timestamp::from_millis(1_000_000 + seconds * 1_000);
        let mut failed = None;
        for _ in 0..5 {
            let (next, refusal) = FailedAttempts::register(failed, at(0));
            assert_eq!(refusal, None);
            failed = Some(next);
        }
        let (refused, first) = FailedAttempts::register(failed, at(0));
        let (refused, second) = FailedAttempts::register(Some(refused), at(0));
        let told = [first, second].map(|refusal| refusal.unwrap().is_first);
        assert_eq!(told, [true, false]);
        let (sixth, refusal) = FailedAttempts::register(Some(refused), at(1));
        assert_eq!((sixth.count, sixth.has_refused, refusal), (6, false, None));
        let day_later = at(1).plus(FAILURE_RETENTION);
        assert_eq!(FailedAttempts::register(Some(sixth), day_later).0.count, 1);
    }

    #[test]
    fn delay_doubles_with_each_failure_up_to_fifteen_minutes() {
        let seconds = |failures| sign_in_delay(failures).as_secs();
        assert_eq!([0, 4].map(seconds), [0, 0]);
        assert_eq!([5, 6, 7, 8].map(seconds), [1, 2, 4, 8]);
        assert_eq!([14, 15, 16, u32::MAX].map(seconds), [512, 900, 900, 900]);
        let delays = sign_in_delays();
        assert_eq!(delays.len(), 16);
        for (failures, delay) in (0..).zip(&delays) {
            assert_eq!(*delay, sign_in_delay(failures));
        }
    }
}
