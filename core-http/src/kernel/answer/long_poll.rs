//! Long polls: a request waits until what it looks at has ended, so that nobody has to ask again and again.
//!
//! No unit of work is open in between, and a look is as cheap as the request itself: the store is asked again after
//! 0.2 s, then less and less often, at least once a second.

use std::time::Duration;

use core_domain::kernel::Result;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use tokio::time::{Instant, sleep_until};

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// No request waits longer, whatever it asks for: a gateway gives up after 30 seconds, and a server that is told to end
/// waits 25 for its requests.
const LONGEST_WAIT: Duration = Duration::from_secs(24);

/// The query parameter `wait`: for how many seconds the request may wait, 1 to 30. It never waits longer than 24.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Wait(pub u64);

impl Wait {
    /// The most seconds a request may ask for.
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

/// The query of a row that [waits](super::Row::waits).
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
pub struct WaitQuery {
    /// Answer when the end is reached, at the latest after this many seconds.
    pub wait: Option<Wait>,
}

/// Looks until what is seen has ended or the time is up; answers what was seen last. Without `wait` it looks once.
///
/// # Errors
/// What the look answers.
pub(crate) async fn look_until<T, L, F>(
    wait: Option<Wait>,
    look: L,
    ended: fn(&T) -> bool,
) -> Result<T>
where
    L: Fn() -> F + Send,
    F: Future<Output = Result<T>> + Send,
{
    // Time that a clock set forth or back does not change.
    let wait = Duration::from_secs(wait.map_or(0, |wait| wait.0));
    let until = Instant::now() + wait.min(LONGEST_WAIT);
    let mut pause = FIRST_PAUSE;
    loop {
        let seen = look().await?;
        let now = Instant::now();
        if now >= until || ended(&seen) {
            return Ok(seen);
        }
        sleep_until(until.min(now + pause)).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use core_domain::kernel::Error;

    use super::*;

    /// How often was looked, what was seen last, and how long it took, when the end is seen at the fourth look.
    async fn waited(wait: Option<Wait>, end: fn(&u32) -> bool) -> (u32, u32, Duration) {
        let looks = AtomicU32::new(0);
        let began = Instant::now();
        let look = || async { Ok(looks.fetch_add(1, Ordering::Relaxed) + 1) };
        let seen = look_until(wait, look, end).await.unwrap();
        (looks.load(Ordering::Relaxed), seen, began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_ended_already_and_who_does_not_wait_are_answered_at_once() {
        assert_eq!(
            waited(Some(Wait(30)), |_| true).await,
            (1, 1, Duration::ZERO)
        );
        assert_eq!(waited(None, |_| false).await, (1, 1, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_is_answered_when_it_is_seen() {
        let (looks, seen, took) = waited(Some(Wait(30)), |seen| *seen >= 4).await;
        assert_eq!((looks, seen), (4, 4));
        assert!(took < Duration::from_millis(1_500), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn without_an_end_the_last_look_is_answered_when_the_time_is_up() {
        let (looks, seen, took) = waited(Some(Wait(5)), |_| false).await;
        assert_eq!(looks, seen);
        assert!((5..=10).contains(&looks), "{looks}");
        let late = took.checked_sub(Duration::from_secs(5)).unwrap();
        assert!(late < Duration::from_millis(10), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_request_waits_so_long_that_a_gateway_gives_it_up() {
        let (_, _, took) = waited(Some(Wait(30)), |_| false).await;
        assert!(took < Duration::from_secs(25), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_ends_the_wait() {
        let look = || async { Err::<(), _>(Error::NotFound("deployment")) };
        let refused = look_until(Some(Wait(30)), look, |()| false).await;
        assert!(matches!(refused, Err(Error::NotFound("deployment"))));
    }
}
