//! The seed of all random values in tests.
//!
//! `PROPTEST_RNG_SEED` is the only seed: proptest reads it itself, and simulations get it from [`seeds`].
//! `PROPTEST_CASES` scales the number of cases of every test. With 256, the default of proptest, a test runs its usual
//! number of cases.

use std::ops::Range;

/// The seed of a run without `PROPTEST_RNG_SEED`. `.cargo/config.toml` sets the same one for proptest.
const DEFAULT_SEED: u64 = 1;

/// The number of cases that proptest runs by default.
const DEFAULT_CASES: u64 = 256;

/// Returns the seeds of a simulation that usually tries `usual` seeds. The first one is `PROPTEST_RNG_SEED`, so that a
/// run with a failing seed starts with it.
#[must_use]
pub fn seeds(usual: u32) -> Range<u64> {
    let first = variable("PROPTEST_RNG_SEED").unwrap_or(DEFAULT_SEED);
    first..first.saturating_add(u64::from(cases(usual)))
}

/// Returns the number of cases of a test that usually runs `usual` cases, scaled by `PROPTEST_CASES`; at least 1.
#[must_use]
pub fn cases(usual: u32) -> u32 {
    let wanted = variable("PROPTEST_CASES").unwrap_or(DEFAULT_CASES);
    scale_cases(usual, wanted)
}

fn scale_cases(usual: u32, wanted: u64) -> u32 {
    let cases = u64::from(usual).saturating_mul(wanted) / DEFAULT_CASES;
    u32::try_from(cases).unwrap_or(u32::MAX).max(1)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment of a test run sets its seed"
)]
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_cases_scales_with_proptest_cases_and_is_at_least_one() {
        assert_eq!(scale_cases(2_000, 256), 2_000);
        assert_eq!(scale_cases(2_000, 1_024), 8_000);
        assert_eq!((scale_cases(4, 1), scale_cases(0, 256)), (1, 1));
        assert_eq!(scale_cases(u32::MAX, u64::MAX), u32::MAX);
    }
}
