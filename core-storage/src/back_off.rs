//! The pauses between the runs of a unit of work that meets conflicts.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const FIRST_PAUSE_BOUND: Duration = Duration::from_millis(1);
/// Maximum pause. It is longer than a unit takes on a busy server, so units in conflict drift apart.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// Exponential back-off with equal jitter. Each pause is random in the upper half of its bound, which doubles from 1 ms
/// to 500 ms. Clones share one sequence.
#[derive(Clone, Debug, Default)]
pub(crate) struct BackOff {
    /// The random seed of this process. It differs in every process so that servers on one database do not pause in
    /// step.
    jitter: RandomState,
    pauses: Arc<AtomicU64>,
}

impl BackOff {
    /// Waits before the `run`-th repetition, counted from 1.
    pub(crate) async fn pause(&self, run: u32) {
        let pause = self.pauses.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(duration(run, self.jitter.hash_one(pause))).await;
    }
}

fn duration(run: u32, random: u64) -> Duration {
    let factor = 2_u32.saturating_pow(run.saturating_sub(1));
    let bound = FIRST_PAUSE_BOUND.saturating_mul(factor).min(MAX_PAUSE);
    let half = bound / 2;
    let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX).max(1);
    half + Duration::from_nanos(random % nanos)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pauses_are_in_the_upper_half_of_a_bound_that_doubles_up_to_its_cap(run in 1_u32..=u32::MAX, random: u64) {
            let bound = match run {
                1..=9 => FIRST_PAUSE_BOUND * 2_u32.pow(run - 1),
                _ => MAX_PAUSE,
            };
            let pause = duration(run, random);
            prop_assert!(pause >= bound / 2 && pause < bound, "{pause:?}");
        }
    }
}
