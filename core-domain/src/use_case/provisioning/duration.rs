//! How long a job will take, as those before it did.

use std::time::Duration;

use crate::access::unowned;
use crate::kernel::{Result, Stored};
use crate::port::UnitOfWork;
use crate::provisioning::{Job, JobQuery};

/// How many of the newest jobs are looked at.
const SAMPLE: u32 = 20;

/// How long a job of a kind is said to take before there was any.
const FIRST_ESTIMATE: Duration = Duration::from_secs(30);

/// How many seconds a job of one of the [`TIMED_KINDS`](crate::provisioning::TIMED_KINDS) takes from its start to its end,
/// retries and their pauses included: the median of the newest that completed by themselves, rounded up, at least 1.
pub(in crate::use_case) async fn estimated_seconds(
    uow: &mut dyn UnitOfWork,
    kind: &'static str,
) -> Result<i64> {
    let completed = JobQuery::Completed(kind);
    let newest = unowned::<Job>(uow).list(&completed, SAMPLE).await?;
    let run_times = newest.iter().filter_map(run_time).collect();
    Ok(whole_seconds(median(run_times).unwrap_or(FIRST_ESTIMATE)))
}

fn run_time(job: &Stored<Job>) -> Option<Duration> {
    Some(job.finished_at?.since(job.started_at?))
}

/// The one in the middle; the mean of the two in the middle of an even number.
fn median(mut durations: Vec<Duration>) -> Option<Duration> {
    durations.sort_unstable();
    let middle = durations.len() / 2;
    let upper = *durations.get(middle)?;
    if durations.len() % 2 == 1 {
        return Some(upper);
    }
    Some((durations[middle - 1] + upper) / 2)
}

fn whole_seconds(duration: Duration) -> i64 {
    let seconds = duration.as_millis().div_ceil(1_000).max(1);
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_the_median_in_whole_seconds_rounded_up() {
        let estimate = |millis: &[u64]| {
            let durations = millis.iter().copied().map(Duration::from_millis);
            whole_seconds(median(durations.collect()).unwrap_or(FIRST_ESTIMATE))
        };
        assert_eq!(estimate(&[]), 30);
        assert_eq!(estimate(&[0]), 1);
        assert_eq!(estimate(&[9_000, 1_000, 4_001]), 5);
        assert_eq!(estimate(&[3_000, 900_000, 5_000, 1]), 4);
    }
}
