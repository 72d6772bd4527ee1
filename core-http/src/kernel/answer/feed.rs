//! Feeds: lists of events that grow, sent as server-sent events.
//!
//! - [`Feed`] reads the events. [`Listening`] turns a feed into an [`EventStream`].
//! - [`AccessSignal`] and [`SealSignal`] announce changes of this process to open streams.
//! - [`OpenStreams`] limits the number of open streams per caller.
//!
//! Events are read from the store after the earlier ones have been sent, so a slow reader needs no memory. The caller
//! is authorized again in the same state of the store in which events are read, so no event is sent after the access
//! has ended.

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use core_domain::kernel::{Caller, Code, Effect, Error, OrganizationId, Result, UserId};
use core_domain::port::Store;
use futures_util::stream;
use serde_json::json;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::envelope::status_of;
use super::media::{Event, EventStream};
use crate::kernel::endpoint::context::Cx;
use crate::kernel::endpoint::service::App;
use crate::kernel::request::draining::Draining;

/// The maximum time for which an event stream sends nothing. A comment is then sent, so that proxies keep the
/// connection open.
pub const EVENT_HEARTBEAT: Duration = Duration::from_secs(15);

/// The interval at which an idle stream authorizes its caller again. It limits the delay after a change by another
/// process; a change by this process takes effect at once.
const AUTHORIZE: Duration = Duration::from_secs(5);

/// The interval at which a stream looks for events that other processes have written.
const POLL: Duration = Duration::from_secs(1);

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
    fn next(&mut self, store: &dyn Store)
    -> impl Future<Output = Result<News<Self::Event>>> + Send;

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
    fn shown(event: &Self::Event) -> Result<Event>;
}

/// The events that a feed has read.
#[derive(Debug)]
pub struct News<T> {
    /// The events in their order; empty if there are none.
    pub events: Vec<T>,
    /// The time of further events, if there are any.
    pub then: Then,
}

/// The continuation of a feed after the events that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
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
pub struct Listening {
    app: Arc<App>,
    access: broadcast::Receiver<Effect>,
    news: Option<watch::Receiver<()>>,
    draining: Option<Draining>,
    _permit: StreamPermit,
}

impl Listening {
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
    listening: Listening,
    /// Events that were read and not yet sent.
    waiting: VecDeque<F::Event>,
    /// `true` if there are no events after the waiting ones.
    has_ended: bool,
    heartbeat_at: Instant,
    authorize_at: Instant,
}

/// The reason why a wait has ended.
enum Woken {
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
                    return ours(error).map(|error| (Err(error), None));
                }
                self.authorize_at = Instant::now() + AUTHORIZE;
            }
            if let Some(event) = self.waiting.pop_front() {
                self.heartbeat_at = Instant::now() + EVENT_HEARTBEAT;
                return Some((F::shown(&event), Some(self)));
            }
            if self.has_ended {
                return None;
            }
            if let Some(news) = &mut self.listening.news {
                news.mark_unchanged();
            }
            let store = self.listening.app.store.as_ref();
            let News { events, then } = match self.feed.next(store).await {
                Ok(news) => news,
                Err(error) => return ours(error).map(|error| (Err(error), None)),
            };
            self.waiting.extend(events);
            self.has_ended = then == Then::End;
            if then != Then::Later || !self.waiting.is_empty() {
                continue;
            }
            match self.wait().await {
                Woken::News => {}
                Woken::AccessChanged => self.authorize_at = Instant::now(),
                Woken::Draining => return None,
                Woken::Silent => {
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
                Ok(effect) if !self.feed.is_concerned_by(&effect) => {}
                Ok(_) | Err(TryRecvError::Lagged(_)) => return true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return false,
            }
        }
    }

    /// Waits for a signal, for the next poll, or for the time of the next heartbeat.
    async fn wait(&mut self) -> Woken {
        let Listening {
            access,
            news,
            draining,
            ..
        } = &mut self.listening;
        let draining = async {
            match draining {
                Some(draining) => draining.begun().await,
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
            () = draining => Woken::Draining,
            () = sleep_until(self.heartbeat_at) => Woken::Silent,
            true = news => Woken::News,
            () = access_changes(access, &self.feed) => Woken::AccessChanged,
            () = sleep(POLL) => Woken::News,
        }
    }
}

/// Waits until the access of the feed's caller may have changed.
async fn access_changes(access: &mut broadcast::Receiver<Effect>, feed: &impl Feed) {
    loop {
        match access.recv().await {
            Ok(effect) if !feed.is_concerned_by(&effect) => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => pending().await,
        }
    }
}

/// Returns the error that ends a stream; `None` for a refusal of the caller, which ends the stream without an error.
fn ours(error: Error) -> Option<Error> {
    let refused = status_of(error.code()).is_client_error();
    (!refused).then_some(error)
}

/// The number of changes that are buffered for a slow receiver. A receiver that misses some assumes that its access
/// has changed.
const CAPACITY: usize = 256;

/// Announces committed changes of access to the event streams of this process. It is only a hint: other processes
/// commit changes as well, so receivers also poll. Clones share their state.
#[derive(Clone, Debug)]
pub struct AccessSignal(broadcast::Sender<Effect>);

impl Default for AccessSignal {
    fn default() -> Self {
        Self(broadcast::Sender::new(CAPACITY))
    }
}

impl AccessSignal {
    /// Announces a change of access.
    pub fn announce(&self, effect: &Effect) {
        if self.0.receiver_count() > 0 {
            // Sending fails only if the last receiver was dropped in the meantime.
            let _ = self.0.send(effect.clone());
        }
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Effect> {
        self.0.subscribe()
    }
}

/// Announces sealed audit entries to the event streams of this process. It is only a hint: other processes seal entries
/// as well, so receivers also poll. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct SealSignal(Arc<watch::Sender<()>>);

impl SealSignal {
    /// Announces that audit entries were sealed.
    pub fn announce(&self) {
        self.0.send_replace(());
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }
}

/// The `Retry-After` of a refused stream, in seconds. It is an estimate, because a stream lasts as long as its reader
/// likes.
const RETRY_AFTER: u64 = 5;

/// The owner of event streams that count together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum StreamOwner {
    /// A person, with all their sessions and API keys.
    Person(UserId),
    /// An organization, with all its API keys.
    Organization(OrganizationId),
    /// A service, by its name.
    Service(String),
    /// All callers without an identity.
    Unnamed,
}

impl StreamOwner {
    fn of(caller: &Caller) -> Self {
        if let Some(person) = caller.user_id() {
            return Self::Person(person.clone());
        }
        match (caller, caller.membership()) {
            (Caller::Service { name }, _) => Self::Service(name.clone()),
            (_, Some(membership)) => Self::Organization(membership.organization_id.clone()),
            _ => Self::Unnamed,
        }
    }
}

/// Counts the open event streams by caller. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct OpenStreams(Arc<Mutex<HashMap<StreamOwner, usize>>>);

impl OpenStreams {
    fn lock(&self) -> MutexGuard<'_, HashMap<StreamOwner, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a stream of the caller until the permit is dropped.
    ///
    /// # Errors
    /// `RATE_LIMITED` if the caller has reached the limit.
    pub(crate) fn acquire(&self, caller: &Caller, limit: usize) -> Result<StreamPermit> {
        let owner = StreamOwner::of(caller);
        let mut open = self.lock();
        let count = open.get(&owner).copied().unwrap_or_default();
        if count >= limit {
            return Err(Error::Refused {
                code: Code::RateLimited,
                message: format!("You have {count} event streams open; close one of them first."),
                details: json!({ "limit": limit, "retryAfter": RETRY_AFTER }),
            });
        }
        open.insert(owner.clone(), count + 1);
        Ok(StreamPermit {
            streams: self.clone(),
            owner,
        })
    }
}

/// Counts one stream of its owner until it is dropped.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    streams: OpenStreams,
    owner: StreamOwner,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        match open.get_mut(&self.owner) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                open.remove(&self.owner);
            }
        }
    }
}
