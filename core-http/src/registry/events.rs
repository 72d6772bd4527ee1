//! The change feed as server-sent events. Events are read when the ones before have been sent, so a slow reader costs no
//! memory.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use core_domain::access::SignedInScope;
use core_domain::kernel::{Code, Effect, Error, Result};
use core_domain::shared::ChangeEvent;
use core_domain::use_case::registry::audit::{ChangeFeed, FeedQuery, open_feed};
use futures_util::stream;
use serde_json::json;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep_until};

use crate::kernel::{App, Cx, Draining, Endpoint, Event, EventStream, Input, get, status_of};

/// How long a connection is silent at the most.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How often the caller is let in again while nothing is told, for what another process has changed. What this one changes
/// counts at once, and nobody is told of anything without having been let in again.
const AUTHORIZE: Duration = Duration::from_secs(5);

/// How often is looked for what another process has sealed.
const POLL: Duration = Duration::from_secs(1);

const LAST_EVENT_ID: &str = "last-event-id";

pub(super) fn rows() -> Vec<Endpoint> {
    let position =
        json!({ "type": "string", "description": "The id of the last event that was seen." });
    vec![
        get("/api/v1/events", "followEvents")
            .summary(
                "Follows what changes, as server-sent events; the data of each is a ChangeEvent.",
            )
            .header("Last-Event-ID", position)
            .refuses(&[Code::Forbidden, Code::NotFound])
            .scoped(follow),
    ]
}

async fn follow(
    cx: &Cx,
    scope: SignedInScope,
    input: Input<(), FeedQuery>,
) -> Result<EventStream<ChangeEvent>> {
    let (app, last) = (Arc::clone(&cx.app), cx.header(LAST_EVENT_ID));
    // Taken before the first look, so that nothing sealed or changed in between is missed.
    let (sealed, access) = (app.sealed.subscribe(), app.access.subscribe());
    let feed = open_feed(cx, &scope, app.store.as_ref(), &input.query, last).await?;
    let now = Instant::now();
    let follower = Follower {
        app,
        feed,
        waiting: VecDeque::new(),
        is_live: input.query.follow.unwrap_or(true),
        sealed,
        access,
        draining: cx.extensions.get::<Draining>().cloned(),
        heartbeat_at: now + HEARTBEAT,
        // At once: who called was found out before this listened for changes.
        authorize_at: now,
    };
    let events = stream::unfold(Some(follower), |follower: Option<Follower>| async move {
        follower?.next().await
    });
    Ok(EventStream::new(events))
}

/// Somebody who follows the feed.
struct Follower {
    app: Arc<App>,
    feed: ChangeFeed,
    /// Read and not sent yet.
    waiting: VecDeque<ChangeEvent>,
    /// Whether to stay when there is nothing more.
    is_live: bool,
    sealed: watch::Receiver<()>,
    access: broadcast::Receiver<Effect>,
    draining: Option<Draining>,
    heartbeat_at: Instant,
    authorize_at: Instant,
}

/// What ended a wait.
enum Woken {
    Sealed,
    AccessChanged,
    Silent,
    Draining,
}

impl Follower {
    /// The next event or sign of life; none when the caller's right has ended, or the server ends.
    async fn next(mut self) -> Option<(Result<Event, Error>, Option<Self>)> {
        loop {
            if self.access_changed() || Instant::now() >= self.authorize_at {
                if let Err(error) = self.feed.authorize_again(self.app.store.as_ref()).await {
                    return ended_by(error);
                }
                self.authorize_at = Instant::now() + AUTHORIZE;
            }
            if let Some(event) = self.waiting.pop_front() {
                self.heartbeat_at = Instant::now() + HEARTBEAT;
                return Some((shown(&event), Some(self)));
            }
            self.sealed.mark_unchanged();
            let (events, more) = match self.feed.next(self.app.store.as_ref()).await {
                Ok(read) => read,
                Err(error) => return ended_by(error),
            };
            self.waiting.extend(events);
            if more || !self.waiting.is_empty() {
                continue;
            }
            if !self.is_live {
                return None;
            }
            match self.wait().await {
                Woken::Sealed => {}
                Woken::AccessChanged => self.authorize_at = Instant::now(),
                Woken::Draining => return None,
                Woken::Silent => {
                    self.heartbeat_at = Instant::now() + HEARTBEAT;
                    return Some((Ok(Event::comment()), Some(self)));
                }
            }
        }
    }

    /// Tells whether the caller's access may have changed since they were let in.
    fn access_changed(&mut self) -> bool {
        loop {
            match self.access.try_recv() {
                Ok(effect) if !self.feed.is_concerned_by(&effect) => {}
                Ok(_) | Err(TryRecvError::Lagged(_)) => return true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return false,
            }
        }
    }

    /// Waits for something to look at, or for the time of a sign of life.
    async fn wait(&mut self) -> Woken {
        let draining = async {
            match &mut self.draining {
                Some(draining) => draining.begun().await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = draining => Woken::Draining,
            () = sleep_until(self.heartbeat_at) => Woken::Silent,
            // Nobody announces any more only when the process ends.
            Ok(()) = self.sealed.changed() => Woken::Sealed,
            () = access_changes(&mut self.access, &self.feed) => Woken::AccessChanged,
            () = tokio::time::sleep(POLL) => Woken::Sealed,
        }
    }
}

/// Waits until the access of the feed's caller may have changed.
async fn access_changes(access: &mut broadcast::Receiver<Effect>, feed: &ChangeFeed) {
    loop {
        match access.recv().await {
            Ok(effect) if !feed.is_concerned_by(&effect) => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => pending().await,
        }
    }
}

/// The end for a caller who is let in no more, and the error when it is ours.
fn ended_by(error: Error) -> Option<(Result<Event, Error>, Option<Follower>)> {
    let refused = status_of(error.code()).is_client_error();
    (!refused).then(|| (Err(error), None))
}

fn shown(event: &ChangeEvent) -> Result<Event, Error> {
    let shown = Event::json(event)?;
    Ok(shown.id(event.id.clone()).name(event.event_type.clone()))
}
