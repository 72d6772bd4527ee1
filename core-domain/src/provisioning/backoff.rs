//! The delay before a failed step is tried again.

use std::time::Duration;

use crate::kernel::{Entropy, Timestamp, random_up_to};

/// Delay after the first failure, in milliseconds.
const MIN_DELAY_MS: u64 = 2_000;

/// Maximum delay without a request of the provider, in milliseconds.
const MAX_DELAY_MS: u64 = 300_000;

/// Maximum delay that a provider can request.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60 * 60);

/// Returns the delay after the n-th failure before jitter, in milliseconds: 2 s, doubled with each failure, at most 5
/// min.
fn delay_ms(failures: i64) -> u64 {
    let doublings = failures.saturating_sub(1).clamp(0, 20);
    MIN_DELAY_MS
        .saturating_mul(1_u64 << doublings)
        .min(MAX_DELAY_MS)
}

/// Returns the time of the next attempt after the n-th failure. Jitter shortens the delay to between 50 % and 100 %. A
/// `retry_after` of the provider is a lower bound, up to one hour.
#[must_use]
pub fn retry_at(
    now: Timestamp,
    failures: i64,
    retry_after: Duration,
    entropy: &dyn Entropy,
) -> Timestamp {
    let half = delay_ms(failures) / 2;
    let ours = now.plus(Duration::from_millis(half + random_up_to(entropy, half)));
    ours.max(now.plus(retry_after.min(MAX_RETRY_AFTER)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SeededEntropy;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn retry_delay_is_half_to_all_of_a_doubling_delay(seed: u64, failures in 1_i64..100) {
            let now = Timestamp::from_seconds(1_000);
            let at = retry_at(now, failures, Duration::ZERO, &SeededEntropy::new(seed));
            let full = delay_ms(failures);
            prop_assert!(at >= now.plus(Duration::from_millis(full / 2)));
            prop_assert!(at <= now.plus(Duration::from_millis(full)));
            prop_assert!(delay_ms(failures) <= delay_ms(failures + 1));
        }

        #[test]
        fn provider_can_request_a_longer_delay_up_to_one_hour(seed: u64, asked in 0_u64..100_000) {
            let now = Timestamp::EPOCH;
            let at = retry_at(now, 1, Duration::from_secs(asked), &SeededEntropy::new(seed));
            prop_assert!(at >= now.plus(Duration::from_secs(asked.min(3_600))));
            prop_assert!(at <= now.plus(Duration::from_secs(asked.clamp(2, 3_600))));
        }
    }

    #[test]
    fn sum_of_all_retry_delays_is_about_four_minutes() {
        let total: u64 = (1..super::super::MAX_ATTEMPTS).map(delay_ms).sum();
        assert_eq!(total, 254_000);
        assert_eq!(delay_ms(i64::MAX), MAX_DELAY_MS);
    }
}
