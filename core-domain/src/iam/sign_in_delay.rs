//! How long an account waits after sign-ins that failed, whoever tried them.

use std::time::Duration;

use crate::kernel::Timestamp;

/// How many sign-ins may fail before the account waits: more than its owner mistypes.
const FREE_FAILURES: u32 = 5;

/// The longest an account waits: whoever wants to keep its owner out must go on trying, and sessions go on meanwhile.
const LONGEST_DELAY: Duration = Duration::from_secs(15 * 60);

/// After how long without a failure they are forgotten.
pub const FAILURES_FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// How long after its last failure an account takes no password, right or wrong: nothing at first, then a second, and
/// twice as long after each further failure, up to 15 minutes.
#[must_use]
pub fn sign_in_delay(failures: u32) -> Duration {
    let Some(doublings) = failures.checked_sub(FREE_FAILURES) else {
        return Duration::ZERO;
    };
    // 2^10 seconds are more than the longest.
    let seconds = 1_u64 << doublings.min(10);
    Duration::from_secs(seconds).min(LONGEST_DELAY)
}

/// The failed attempts that make further attempts wait: those of strangers at an account, of a browser that has signed in to
/// it before, or of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedAttempts {
    /// Attempts that failed, and those whose outcome is not known yet. At least 1.
    pub count: u32,
    /// When the last one began.
    pub last: Timestamp,
    /// Whether an attempt was refused since then.
    pub refused: bool,
}

/// The refusal of an attempt that comes too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptRefusal {
    /// Failed attempts before this one.
    pub failures: u32,
    /// The time until the next attempt is allowed.
    pub left: Duration,
    /// Whether this is the first refusal since the last attempt, which the audit records.
    pub is_first: bool,
}

impl FailedAttempts {
    /// Counts an attempt that begins now as failed, unless it comes too early. Returns what to keep, and the refusal.
    ///
    /// Attempts are counted before their outcome is known, so that many at once are counted too.
    #[must_use]
    pub fn begin(known: Option<Self>, now: Timestamp) -> (Self, Option<AttemptRefusal>) {
        let known = known.filter(|known| now.since(known.last) < FAILURES_FORGOTTEN_AFTER);
        let Some(known) = known else {
            return (Self::new(1, now), None);
        };
        let allowed_at = known.last.plus(sign_in_delay(known.count));
        if now >= allowed_at {
            return (Self::new(known.count.saturating_add(1), now), None);
        }
        let refusal = AttemptRefusal {
            failures: known.count,
            left: allowed_at.since(now),
            is_first: !known.refused,
        };
        let refused = Self {
            refused: true,
            ..known
        };
        (refused, Some(refusal))
    }

    const fn new(count: u32, last: Timestamp) -> Self {
        Self {
            count,
            last,
            refused: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_wait_after_five_failures_and_the_first_refusal_is_told_of() {
        let at = |seconds: i64| Timestamp::from_millis(1_000_000 + seconds * 1_000);
        let mut failed = None;
        for _ in 0..5 {
            let (next, refusal) = FailedAttempts::begin(failed, at(0));
            assert_eq!(refusal, None);
            failed = Some(next);
        }
        let (refused, first) = FailedAttempts::begin(failed, at(0));
        let (refused, second) = FailedAttempts::begin(Some(refused), at(0));
        let told = [first, second].map(|refusal| refusal.unwrap().is_first);
        assert_eq!(told, [true, false]);
        let (sixth, refusal) = FailedAttempts::begin(Some(refused), at(1));
        assert_eq!((sixth.count, sixth.refused, refusal), (6, false, None));
        let day_later = at(1).plus(FAILURES_FORGOTTEN_AFTER);
        assert_eq!(FailedAttempts::begin(Some(sixth), day_later).0.count, 1);
    }

    #[test]
    fn the_delay_grows_with_the_failures_up_to_a_quarter_of_an_hour() {
        let seconds = |failures| sign_in_delay(failures).as_secs();
        assert_eq!([0, 4].map(seconds), [0, 0]);
        assert_eq!([5, 6, 7, 8].map(seconds), [1, 2, 4, 8]);
        assert_eq!([14, 15, 16, u32::MAX].map(seconds), [512, 900, 900, 900]);
    }
}
