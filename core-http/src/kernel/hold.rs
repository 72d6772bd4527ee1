//! Holding a request until what it looks at has ended, so that nobody has to ask again and again.
//!
//! No unit of work is open in between, and a look is as cheap as the request itself: the store is asked again after
//! 0.2 s, then less and less often, at least once a second.

use std::time::Duration;

use core_domain::kernel::Result;
use core_domain::port::{Mode, Scope, Store, UnitOfWork, Work};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use tokio::time::{Instant, sleep_until};

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// No request is held longer, whatever it asks for: a gateway gives up after 30 seconds, and a server that is told to end
/// waits 25 for its requests.
const LONGEST_WAIT: Duration = Duration::from_secs(24);

/// The query parameter `wait`: for how many seconds the request may be held, 1 to 30. It is never held longer than 24.
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

/// The query of a route that can hold its requests.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub struct HowLong {
    /// Hold the request until the end is reached, at most this many seconds.
    pub wait: Option<Wait>,
}

/// Looks, in a unit of its own each time, until what is seen has ended or the time is up; answers what was seen last.
/// Without `wait` it looks once. For `plain` handlers:
///
/// ```
/// # use core_domain::{kernel::Result, port::UnitOfWork};
/// # use core_http::kernel::{Cx, Wait, hold};
/// # async fn find(_: &Cx, _: &mut dyn UnitOfWork, _: &str) -> Result<String> { Ok("done".to_owned()) }
/// async fn show(cx: &Cx, id: &str, wait: Option<Wait>) -> Result<String> {
///     hold(cx.app.store.as_ref(), wait, |uow, _| Box::pin(find(cx, uow, id)), |found| found == "done").await
/// }
/// ```
///
/// # Errors
/// What the look answers, or why no unit could be opened.
pub async fn hold<'env, T, L, E>(
    store: &dyn Store,
    wait: Option<Wait>,
    look: L,
    ended: E,
) -> Result<T>
where
    L: for<'unit> Fn(&'unit mut dyn UnitOfWork, Scope<'unit, 'env>) -> Work<'unit, T> + Send + Sync,
    E: Fn(&T) -> bool + Send,
{
    // Time that a clock set forth or back does not change.
    let wait = Duration::from_secs(wait.map_or(0, |wait| wait.0));
    let until = Instant::now() + wait.min(LONGEST_WAIT);
    let mut pause = FIRST_PAUSE;
    loop {
        let seen = look_once(store, &look).await?;
        let now = Instant::now();
        if now >= until || ended(&seen) {
            return Ok(seen);
        }
        sleep_until(until.min(now + pause)).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

async fn look_once<'env, T, L>(store: &dyn Store, look: &L) -> Result<T>
where
    L: for<'unit> Fn(&'unit mut dyn UnitOfWork, Scope<'unit, 'env>) -> Work<'unit, T> + Send + Sync,
{
    let mut uow = store.begin(Mode::Read).await?;
    let seen = look(uow.as_mut(), std::marker::PhantomData).await;
    uow.rollback().await;
    seen
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use core_domain::kernel::{Error, ManualClock, Timestamp};
    use core_storage::memory::{MemoryConfig, open};

    use super::*;

    /// How often was looked, what was seen last, and how long it took, when the end is seen at the `end`th look.
    async fn held(wait: Option<Wait>, end: u32) -> (u32, u32, Duration) {
        let store = open(MemoryConfig {
            clock: Arc::new(ManualClock::at(Timestamp::EPOCH)),
            cursor_key: [7; 32].into(),
        });
        let looks = &AtomicU32::new(0);
        let began = Instant::now();
        let seen = hold(
            store.as_ref(),
            wait,
            |uow, _| {
                Box::pin(async move {
                    uow.now().await?;
                    Ok(looks.fetch_add(1, Ordering::Relaxed) + 1)
                })
            },
            |seen| *seen >= end,
        );
        let seen = seen.await.unwrap();
        (looks.load(Ordering::Relaxed), seen, began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_ended_already_and_who_does_not_wait_are_answered_at_once() {
        assert_eq!(held(Some(Wait(30)), 1).await, (1, 1, Duration::ZERO));
        assert_eq!(held(None, 2).await, (1, 1, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_is_answered_when_it_is_seen() {
        let (looks, seen, took) = held(Some(Wait(30)), 4).await;
        assert_eq!((looks, seen), (4, 4));
        assert!(took < Duration::from_millis(1_500), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn without_an_end_the_last_look_is_answered_when_the_time_is_up() {
        let (looks, seen, took) = held(Some(Wait(5)), 1_000).await;
        assert_eq!(looks, seen);
        assert!((5..=10).contains(&looks), "{looks}");
        let late = took.checked_sub(Duration::from_secs(5)).unwrap();
        assert!(late < Duration::from_millis(10), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_request_is_held_so_long_that_a_gateway_gives_it_up() {
        let (_, _, took) = held(Some(Wait(30)), 1_000).await;
        assert!(took < Duration::from_secs(25), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_ends_the_wait() {
        let store = open(MemoryConfig {
            clock: Arc::new(ManualClock::at(Timestamp::EPOCH)),
            cursor_key: [7; 32].into(),
        });
        let refused: Result<()> = hold(
            store.as_ref(),
            Some(Wait(30)),
            |_, _| Box::pin(async { Err(Error::NotFound("deployment")) }),
            |()| false,
        )
        .await;
        assert!(matches!(refused, Err(Error::NotFound("deployment"))));
    }
}
