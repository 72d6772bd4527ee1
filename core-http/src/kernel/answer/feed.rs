//! Feeds: lists of events that grow, sent as server-sent events.
//!
//! - [`Feed`] reads the events. [`FeedSubscription`] turns a feed into an [`EventStream`].
//!
//! Events are read from the store after the earlier ones have been sent, so a slow reader needs no memory. The caller
//! is authorized again in the same state of the store in which events are read, so no event is sent after the access
//! has ended.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Effect, Error, Notice, Result};
use core_domain::port::Store;
use futures_util::stream;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::envelope::status_of;
use super::media::{Event, EventStream};
use crate::kernel::process::app::App;
use crate::kernel::process::open_streams::StreamPermit;
use crate::kernel::request::context::Cx;
use crate::kernel::request::draining::Draining;

/// The maximum time for which an event stream sends nothing. A comment is then sent, so that proxies keep the
/// connection open.
pub const EVENT_HEARTBEAT: Duration = Duration::from_secs(15);

/// The interval at which an idle stream authorizes its caller again. It limits the delay after a change by another
/// process whose notice is lost; other changes take effect at once.
const AUTHORIZE_INTERVAL: Duration = Duration::from_secs(5);

/// The interval at which a stream looks for events without a signal, because notices of other processes can be lost.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The header with the id of the last event that a client has received before it lost the connection.
pub const LAST_EVENT_ID: &str = "last-event-id";

/// A position in a list of events that grows.
pub trait Feed: Send + Sync + 'static {
    /// The type of an event.
    type Event: Send + 'static;

    /// Reads the next events and moves the position. The caller is authorized in the same state of the store.
    ///
    /// # Errors
    /// The refusal of the caller, if the access has ended.
    fn next(
        &mut self,
        store: &dyn Store,
    ) -> impl Future<Output = Result<EventBatch<Self::Event>>> + Send;

    /// Authorizes the caller again.
    ///
    /// # Errors
    /// The refusal of the caller, if the access has ended.
    fn authorize_again(&self, store: &dyn Store) -> impl Future<Output = Result<()>> + Send;

    /// Returns whether this effect of a commit can end the access of the caller.
    fn is_concerned_by(&self, effect: &Effect) -> bool;

    /// Returns the server-sent event for an event.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if the event cannot be written as JSON.
    fn to_event(event: &Self::Event) -> Result<Event>;
}

/// The events that a feed has read.
#[derive(Debug)]
pub struct EventBatch<T> {
    /// The events in their order; empty if there are none.
    pub events: Vec<T>,
    /// The time of further events, if there are any.
    pub then: FeedState,
}

/// The continuation of a feed after the events that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedState {
    /// Further events may already exist; read again at once.
    More,
    /// All existing events were read; read again later.
    Later,
    /// The feed has ended; there will be no further events.
    End,
}

/// The signals that an event stream listens to. Create it before the feed is opened, so that no change in between is
/// missed.
#[derive(Debug)]
pub struct FeedSubscription {
    app: Arc<App>,
    access: broadcast::Receiver<Notice>,
    news: Option<watch::Receiver<()>>,
    draining: Option<Draining>,
    _permit: StreamPermit,
}

impl FeedSubscription {
    /// Subscribes to changes of access, to the shutdown of the server, and to `news`: a signal of this process that the
    /// feed may have new events. Without `news`, new events are found by polling.
    ///
    /// # Errors
    /// `RATE_LIMITED` if the caller has too many open event streams.
    pub fn of(cx: &Cx, news: Option<watch::Receiver<()>>) -> Result<Self> {
        let limit = cx.app.options.streams_per_caller;
        Ok(Self {
            _permit: cx.app.streams.acquire(&cx.caller, limit)?,
            app: Arc::clone(&cx.app),
            access: cx.app.access.subscribe(),
            news,
            draining: cx.extensions.get::<Draining>().cloned(),
        })
    }

    /// Returns the feed as a stream of events. It ends with the feed, with the caller's access, or with the server.
    #[must_use]
    pub fn follow<F: Feed>(self, feed: F) -> EventStream<F::Event> {
        let now = Instant::now();
        let follower = Follower {
            feed,
            listening: self,
            waiting: VecDeque::new(),
            has_ended: false,
            heartbeat_at: now + EVENT_HEARTBEAT,
            // Authorize at once: the caller was authenticated before this stream listened for changes.
            authorize_at: now,
        };
        let events = stream::unfold(Some(follower), |follower: Option<Follower<F>>| async move {
            follower?.next().await
        });
        EventStream::new(events)
    }
}

/// The state of an open event stream.
struct Follower<F: Feed> {
    feed: F,
    listening: FeedSubscription,
    /// Events that were read and not yet sent.
    waiting: VecDeque<F::Event>,
    /// `true` if there are no events after the waiting ones.
    has_ended: bool,
    heartbeat_at: Instant,
    authorize_at: Instant,
}

/// The reason why a wait has ended.
enum WakeReason {
    /// There may be new events.
    News,
    /// The access of the caller may have changed.
    AccessChanged,
    /// Nothing was sent for the heartbeat time.
    Silent,
    /// The server shuts down.
    Draining,
}

impl<F: Feed> Follower<F> {
    /// Returns the next event or heartbeat, with the state after it; `None` at the end of the stream.
    async fn next(mut self) -> Option<(Result<Event, Error>, Option<Self>)> {
        loop {
            if self.access_changed() || Instant::now() >= self.authorize_at {
                let store = self.listening.app.store.as_ref();
                if let Err(error) = self.feed.authorize_again(store).await {
                    return server_error(error).map(|error| (Err(error), None));
                }
                self.authorize_at = Instant::now() + AUTHORIZE_INTERVAL;
            }
            if let Some(event) = self.waiting.pop_front() {
                self.heartbeat_at = Instant::now() + EVENT_HEARTBEAT;
                return Some((F::to_event(&event), Some(self)));
            }
            if self.has_ended {
                return None;
            }
            if let Some(news) = &mut self.listening.news {
                news.mark_unchanged();
            }
            let store = self.listening.app.store.as_ref();
            let EventBatch { events, then } = match self.feed.next(store).await {
                Ok(news) => news,
                Err(error) => return server_error(error).map(|error| (Err(error), None)),
            };
            self.waiting.extend(events);
            self.has_ended = then == FeedState::End;
            if then != FeedState::Later || !self.waiting.is_empty() {
                continue;
            }
            match self.wait().await {
                WakeReason::News => {}
                WakeReason::AccessChanged => self.authorize_at = Instant::now(),
                WakeReason::Draining => return None,
                WakeReason::Silent => {
                    self.heartbeat_at = Instant::now() + EVENT_HEARTBEAT;
                    return Some((Ok(Event::comment()), Some(self)));
                }
            }
        }
    }

    /// Returns whether the caller's access may have changed since the last authorization.
    fn access_changed(&mut self) -> bool {
        loop {
            match self.listening.access.try_recv() {
                Ok(Notice::Effect(effect)) if !self.feed.is_concerned_by(&effect) => {}
                Ok(_) | Err(TryRecvError::Lagged(_)) => return true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return false,
            }
        }
    }

    /// Waits for a signal, for the next poll, or for the time of the next heartbeat.
    async fn wait(&mut self) -> WakeReason {
        let FeedSubscription {
            access,
            news,
            draining,
            ..
        } = &mut self.listening;
        let draining = async {
            match draining {
                Some(draining) => draining.wait().await,
                None => pending().await,
            }
        };
        let news = async {
            match news {
                // The sender is dropped only when the process ends.
                Some(news) => news.changed().await.is_ok(),
                None => pending().await,
            }
        };
        tokio::select! {
            () = draining => WakeReason::Draining,
            () = sleep_until(self.heartbeat_at) => WakeReason::Silent,
            true = news => WakeReason::News,
            () = access_changes(access, &self.feed) => WakeReason::AccessChanged,
            () = sleep(POLL_INTERVAL) => WakeReason::News,
        }
    }
}

/// Waits until the access of the feed's caller may have changed.
async fn access_changes(access: &mut broadcast::Receiver<Notice>, feed: &impl Feed) {
    loop {
        match access.recv().await {
            Ok(Notice::Effect(effect)) if !feed.is_concerned_by(&effect) => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => pending().await,
        }
    }
}

/// Returns the error that ends a stream; `None` for a refusal of the caller, which ends the stream without an error.
fn server_error(error: Error) -> Option<Error> {
    let refused = status_of(error.code()).is_client_error();
    (!refused).then_some(error)
}
