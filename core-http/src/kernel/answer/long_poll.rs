//! Long polls: a request waits until the observed record reaches an end state, so that clients need not poll.
//!
//! The store is read again as soon as this process hears of an event of the job that the record waits for. Because notices
//! of other processes can be late, it is also read after 0.2 seconds, then at growing intervals of up to one second. No
//! unit of work is open between two reads.

use std::time::Duration;

use core_domain::kernel::{JobId, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::kernel::process::signals::JobSignal;

/// The time between the first two reads. Later pauses are twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The maximum time between two reads.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The maximum waiting time, whatever the request asks for. It is below the 30 seconds after which a gateway reports a
/// timeout, and the 25 seconds that a server waits for its requests during shutdown.
const MAX_WAIT: Duration = Duration::from_secs(24);

/// The query parameter `wait`: the maximum waiting time in seconds, 1 to 30. The server waits at most 24 seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Wait(pub u64);

impl Wait {
    /// The maximum number of seconds that a request can ask for.
    pub const MAX_SECONDS: u64 = 30;
}

impl JsonSchema for Wait {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Wait".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": Self::MAX_SECONDS })
    }
}

/// The change that a long poll waits for after a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitTarget {
    /// Nothing: the answer is final.
    Nothing,
    /// The next event of a job. Its notice ends the pause before the next read.
    JobEvent(JobId),
    /// A change that is not announced. It is found by reading again.
    Change,
}

/// The query of a long poll, see [`Row::waits`](crate::kernel::Row::waits).
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
pub struct WaitQuery {
    /// Maximum time in seconds to wait until the operation has ended, 1 to 30. The server waits at most 24 seconds.
    /// Without it, the response comes at once.
    pub wait: Option<Wait>,
}

/// Calls `look` until its result waits for nothing or the time is up, and returns the last result. Without `wait`, calls
/// it once.
///
/// # Errors
/// The first error of `look`.
pub(crate) async fn poll_until<T, L, F>(
    wait: Option<Wait>,
    jobs: &JobSignal,
    look: L,
    wait_target: fn(&T) -> &WaitTarget,
) -> Result<T>
where
    L: Fn() -> F + Send,
    F: Future<Output = Result<T>> + Send,
{
    // A monotonic clock, so that changes of the system time have no influence.
    let wait = Duration::from_secs(wait.map_or(0, |wait| wait.0));
    let until = Instant::now() + wait.min(MAX_WAIT);
    let mut pause = FIRST_PAUSE;
    // An event between the first read and the subscription is found after the first pause.
    let mut news: Option<watch::Receiver<()>> = None;
    loop {
        let seen = look().await?;
        let now = Instant::now();
        match wait_target(&seen) {
            _ if now >= until => return Ok(seen),
            WaitTarget::Nothing => return Ok(seen),
            WaitTarget::JobEvent(job) if news.is_none() => news = Some(jobs.subscribe(job)),
            WaitTarget::JobEvent(_) | WaitTarget::Change => {}
        }
        tokio::select! {
            () = sleep_until(until.min(now + pause)) => pause = MAX_PAUSE.min(pause * 2),
            () = next_event(news.as_mut()) => {}
        }
    }
}

/// Waits for the next event of the job; without a job, forever.
async fn next_event(news: Option<&mut watch::Receiver<()>>) {
    if let Some(news) = news
        && news.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use core_domain::kernel::Error;

    use super::*;

    /// The number of a read of a test, and the change that the long poll waits for after it.
    type Look = (u32, WaitTarget);

    fn wait_target(look: &Look) -> &WaitTarget {
        &look.1
    }

    fn job() -> JobId {
        JobId::parse("job-1").unwrap()
    }

    /// Runs a long poll whose reads return 1, 2, 3 and so on, and find the end in the read `end`. Returns the number of
    /// reads, the last result and the time.
    async fn run_long_poll(wait: Option<Wait>, jobs: &JobSignal, end: u32) -> (u32, u32, Duration) {
        let looks = AtomicU32::new(0);
        let began = Instant::now();
        let look = || async {
            let number = looks.fetch_add(1, Ordering::Relaxed) + 1;
            let ended = number >= end;
            Ok((
                number,
                if ended {
                    WaitTarget::Nothing
                } else {
                    WaitTarget::JobEvent(job())
                },
            ))
        };
        let (seen, _) = poll_until(wait, jobs, look, wait_target).await.unwrap();
        (looks.load(Ordering::Relaxed), seen, began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn ended_operations_and_requests_without_wait_get_a_response_at_once() {
        let jobs = JobSignal::default();
        for (wait, end) in [(Some(Wait(30)), 1), (None, u32::MAX)] {
            assert_eq!(
                run_long_poll(wait, &jobs, end).await,
                (1, 1, Duration::ZERO)
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_response_comes_as_soon_as_the_end_is_seen() {
        let (looks, seen, took) = run_long_poll(Some(Wait(30)), &JobSignal::default(), 4).await;
        assert_eq!((looks, seen), (4, 4));
        assert!(took < Duration::from_millis(1_500), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_of_the_job_ends_the_pause() {
        let jobs = JobSignal::default();
        let polled = run_long_poll(Some(Wait(30)), &jobs, 2);
        let notified = async {
            tokio::task::yield_now().await;
            jobs.notify(&JobId::parse("job-2").unwrap());
            jobs.notify(&job());
        };
        let (polled, ()) = tokio::join!(polled, notified);
        assert_eq!(polled, (2, 2, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn without_an_end_the_last_result_is_returned_when_the_time_is_up() {
        let jobs = JobSignal::default();
        let (looks, seen, took) = run_long_poll(Some(Wait(5)), &jobs, u32::MAX).await;
        assert_eq!(looks, seen);
        assert!((5..=10).contains(&looks), "{looks}");
        let late = took.checked_sub(Duration::from_secs(5)).unwrap();
        assert!(late < Duration::from_millis(10), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_request_waits_until_the_timeout_of_a_gateway() {
        let jobs = JobSignal::default();
        let (_, _, took) = run_long_poll(Some(Wait(30)), &jobs, u32::MAX).await;
        assert!(took < Duration::from_secs(25), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn errors_end_the_wait() {
        let look = || async { Err::<Look, _>(Error::NotFound("deployment")) };
        let refused = poll_until(Some(Wait(30)), &JobSignal::default(), look, wait_target).await;
        assert!(matches!(refused, Err(Error::NotFound("deployment"))));
    }
}
