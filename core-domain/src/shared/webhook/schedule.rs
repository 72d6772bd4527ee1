//! When a message is tried again that was not taken.

use std::time::Duration;

use crate::kernel::{Entropy, Timestamp, random_up_to};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// The pauses after the first, the second, .. attempt, in seconds; after the last of them comes the last attempt.
const PAUSES: [u64; 9] = [
    5,
    5 * MINUTE,
    30 * MINUTE,
    2 * HOUR,
    5 * HOUR,
    10 * HOUR,
    14 * HOUR,
    20 * HOUR,
    24 * HOUR,
];

/// The longest pause a receiver can ask for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(HOUR);

/// The instant of the attempt after this many; `None` when there is none. A tenth of the pause may be added, so that
/// messages that failed together do not come back together; and it is not before the receiver allows.
pub(super) fn next_attempt(
    attempts: i64,
    now: Timestamp,
    retry_after: Duration,
    entropy: &dyn Entropy,
) -> Option<Timestamp> {
    let pause = PAUSES.get(usize::try_from(attempts).ok()?.checked_sub(1)?)?;
    let jitter = random_up_to(entropy, pause * 100);
    let ours = now.plus(Duration::from_millis(pause * 1_000 + jitter));
    Some(ours.max(now.plus(retry_after.min(LONGEST_RETRY_AFTER))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::retry_after;
    use crate::testing::SeededEntropy;

    proptest! {
        #[test]
        fn a_pause_is_that_of_the_list_and_at_most_a_tenth_more(seed: u64, attempts in 1_usize..10) {
            let (now, entropy) = (Timestamp::from_seconds(1_000), SeededEntropy::new(seed));
            let at = next_attempt(attempts.try_into().unwrap(), now, Duration::ZERO, &entropy).unwrap();
            let pause = Duration::from_secs(PAUSES[attempts - 1]);
            prop_assert!(at >= now.plus(pause) && at <= now.plus(pause * 11 / 10));
        }
    }

    #[test]
    fn after_ten_attempts_there_is_no_other() {
        let next = |attempts| {
            next_attempt(
                attempts,
                Timestamp::EPOCH,
                Duration::ZERO,
                &SeededEntropy::new(1),
            )
        };
        for attempts in [0, 10, 11, -1, i64::MAX] {
            assert_eq!(next(attempts), None, "{attempts}");
        }
        assert_eq!(PAUSES.iter().sum::<u64>(), 75 * HOUR + 35 * MINUTE + 5);
    }

    #[test]
    fn a_receiver_may_ask_for_a_longer_pause_of_up_to_an_hour() {
        let now = Timestamp::from_seconds(1_800_000_000);
        let next = |attempts, header| {
            let wanted = retry_after(header, now);
            next_attempt(attempts, now, wanted, &SeededEntropy::new(1))
                .unwrap()
                .since(now)
        };
        assert_eq!(next(1, "120"), Duration::from_secs(120));
        assert_eq!(
            next(1, "Fri, 15 Jan 2027 08:02:00 GMT"),
            Duration::from_secs(120)
        );
        assert_eq!(next(1, "86400"), Duration::from_secs(HOUR));
        assert!(next(2, "120") >= Duration::from_secs(300));
        for nothing in ["", "soon", "-5", "Thu, 14 Jan 2027 08:00:00 GMT"] {
            assert!(next(1, nothing) < Duration::from_secs(6), "{nothing}");
        }
    }
}
