//! Random values: idempotency keys, and the jitter of pauses.

use std::time::Duration;

use uuid::Uuid;

#[expect(
    clippy::disallowed_methods,
    reason = "a client runs outside of the suite and has no Entropy port"
)]
fn random_id() -> Uuid {
    Uuid::new_v4()
}

/// Returns a new idempotency key.
pub(crate) fn idempotency_key() -> String {
    random_id().to_string()
}

/// Returns a random duration between half of `most` and `most`, so that clients do not return at the same time.
pub(crate) fn jitter(most: Duration) -> Duration {
    let [first, second, ..] = random_id().into_bytes();
    let share = f64::from(u16::from_be_bytes([first, second])) / f64::from(u16::MAX);
    most.mul_f64(0.5 + share / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_between_half_and_the_whole() {
        for _ in 0..100 {
            let pause = jitter(Duration::from_secs(8));
            assert!((Duration::from_secs(4)..=Duration::from_secs(8)).contains(&pause));
        }
    }

    #[test]
    fn two_idempotency_keys_differ() {
        assert_ne!(idempotency_key(), idempotency_key());
    }
}
