//! The decision whether a trace is sampled.

use sha2::{Digest, Sha256};

use super::{TraceContext, TraceId};

/// The number of values of a `f64` mantissa, as which a hash is compared with the ratio.
const MANTISSA: u64 = 1 << 53;

/// Decides which traces are sampled. All processes of an installation that have the same ratio and key decide the same
/// for a trace, so a job is sampled together with the request that queued it.
#[derive(Clone, PartialEq)]
pub struct Sampling {
    ratio: f64,
    key: [u8; 32],
}

// The key stays out of logs: a client that knows it can choose a trace id that is always sampled.
impl std::fmt::Debug for Sampling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Sampling");
        shown.field("ratio", &self.ratio).finish_non_exhaustive()
    }
}

impl Sampling {
    /// Samples this share of the traces, from 0 to 1. The key makes the decision unpredictable for clients, which choose
    /// their trace ids.
    #[must_use]
    pub const fn new(ratio: f64, key: [u8; 32]) -> Self {
        Self { ratio, key }
    }

    /// Returns whether the ratio includes a trace.
    #[must_use]
    pub fn is_included(&self, trace: TraceId) -> bool {
        if self.ratio >= 1.0 {
            return true;
        }
        let mut hash = Sha256::new();
        hash.update(self.key);
        hash.update(trace.to_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&hash.finalize()[..8]);
        let position = u64::from_be_bytes(first) % MANTISSA;
        (position as f64) < self.ratio * MANTISSA as f64
    }

    /// Returns whether the trace of a request is sampled. The flag in the `traceparent` decides if its sender is trusted,
    /// otherwise the ratio.
    #[must_use]
    pub fn is_sampled(&self, context: &TraceContext, trusts_sender: bool) -> bool {
        let flag = context.is_parent_sampled().filter(|_| trusts_sender);
        flag.unwrap_or_else(|| self.is_included(context.trace()))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::SeededEntropy;

    use super::*;

    #[test]
    fn the_ratio_is_the_share_of_the_sampled_traces() {
        let entropy = SeededEntropy::new(1);
        for (ratio, expected) in [(0.0, 0..=0), (0.25, 200..=300), (1.0, 1_000..=1_000)] {
            let sampling = Sampling::new(ratio, [7; 32]);
            let traces = (0..1_000).map(|_| TraceId::generate(&entropy));
            let count = traces.filter(|trace| sampling.is_included(*trace)).count();
            assert!(expected.contains(&count), "{ratio}: {count}");
        }
    }

    #[test]
    fn the_key_decides_which_traces_are_sampled() {
        let entropy = SeededEntropy::new(2);
        let traces: Vec<_> = (0..64).map(|_| TraceId::generate(&entropy)).collect();
        let chosen = |key| {
            let sampling = Sampling::new(0.5, [key; 32]);
            let chosen = traces.iter().map(|trace| sampling.is_included(*trace));
            chosen.collect::<Vec<_>>()
        };
        assert_eq!(chosen(1), chosen(1));
        assert_ne!(chosen(1), chosen(2));
    }

    #[test]
    fn only_the_flag_of_a_trusted_sender_decides() {
        let sender = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0";
        for (flag, ratio) in [("0", 1.0), ("1", 0.0)] {
            let traceparent = format!("{sender}{flag}");
            let context = TraceContext::begin(Some(&traceparent), &SeededEntropy::new(3));
            let sampling = Sampling::new(ratio, [7; 32]);
            assert_eq!(sampling.is_sampled(&context, true), flag == "1");
            assert_eq!(sampling.is_sampled(&context, false), flag == "0");
        }
    }
}
