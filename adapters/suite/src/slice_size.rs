//! Adapts the size of the slices of a sweep to the time that they take.

use std::time::Duration;

use crate::sweep_options::SweepOptions;

/// The size of the first slice: small, because its cost is not known yet.
const FIRST: u32 = 50;

/// Maximum growth factor from one slice to the next.
const MAX_GROWTH: u32 = 2;

/// The number of records of the next slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SliceSize {
    records: u32,
    max: u32,
    time: Duration,
}

impl SliceSize {
    /// Returns the size of the first slice of a kind of records.
    pub(crate) fn first(options: &SweepOptions) -> Self {
        Self {
            records: FIRST.min(options.slice),
            max: options.slice,
            time: options.slice_time,
        }
    }

    pub(crate) const fn records(self) -> u32 {
        self.records
    }

    /// Sets the size of the next slice to the number of records that fit into the time, based on the last slice.
    pub(crate) fn adapt(&mut self, removed: u64, took: Duration) {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let fitting = removed.saturating_mul(micros(self.time)) / micros(took).max(1);
        let fitting = u32::try_from(fitting).unwrap_or(u32::MAX);
        let most = self.records.saturating_mul(MAX_GROWTH).min(self.max);
        self.records = fitting.clamp(1, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn slices_grow_step_by_step_while_there_is_time_and_never_above_the_maximum() {
        let mut size = SliceSize::first(&SweepOptions::default());
        let mut sizes = vec![size.records()];
        for _ in 0..6 {
            size.adapt(size.records().into(), MS(1));
            sizes.push(size.records());
        }
        assert_eq!(sizes, [50, 100, 200, 400, 800, 1_000, 1_000]);
    }

    #[test]
    fn a_slice_that_took_too_long_makes_the_next_one_fit_into_the_time() {
        let mut size = SliceSize::first(&SweepOptions::default());
        size.adapt(50, MS(100));
        assert_eq!(size.records(), 12);
        size.adapt(12, MS(60_000));
        assert_eq!(size.records(), 1, "a sweep always goes on");
        size.adapt(1, Duration::ZERO);
        assert_eq!(size.records(), 2);
    }
}
