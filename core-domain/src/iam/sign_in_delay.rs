//! How long an account waits after sign-ins that failed, whoever tried them.

use std::time::Duration;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_grows_with_the_failures_up_to_a_quarter_of_an_hour() {
        let seconds = |failures| sign_in_delay(failures).as_secs();
        assert_eq!([0, 4].map(seconds), [0, 0]);
        assert_eq!([5, 6, 7, 8].map(seconds), [1, 2, 4, 8]);
        assert_eq!([14, 15, 16, u32::MAX].map(seconds), [512, 900, 900, 900]);
    }
}
