//! Feeds as server-sent events. Events are read when the ones before have been sent, so a slow reader costs no memory; and
//! nobody is told of anything without having been let in again.

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

/// The longest time for which an event stream sends nothing.
pub const EVENT_HEARTBEAT: Duration = Duration::from_secs(15);

/// How often the caller is let in again while nothing is told, for what another process has changed. What this one changes
/// counts at once.
const AUTHORIZE: Duration = Duration::from_secs(5);

/// How often is looked for what another process has written.
const POLL: Duration = Duration::from_secs(1);

/// The header in which a client that lost the connection says where it was.
pub const LAST_EVENT_ID: &str = "last-event-id";

/// What is followed: a place in a list of events that grows.
pub trait Feed: Send + Sync + 'static {
    /// An event.
    type Event: Send + 'static;

    /// Reads what comes next, for a caller who is let in again in the state of the store it is read in.
    ///
    /// # Errors
    /// When the caller may read no more, or the store failed.
    fn next(&mut self, store: &dyn Store)
    -> impl Future<Output = Result<News<Self::Event>>> + Send;

    /// Lets the caller in once more.
    ///
    /// # Errors
    /// When they may read no more, or the store failed.
    fn authorize_again(&self, store: &dyn Store) -> impl Future<Output = Result<()>> + Send;

    /// Tells whether the caller may no longer be let in because of this.
    fn is_concerned_by(&self, effect: &Effect) -> bool;

    /// The event as it is sent.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when it cannot be written.
    fn shown(event: &Self::Event) -> Result<Event>;
}

/// What a feed told.
#[derive(Debug)]
pub struct News<T> {
    /// The events, in order.
    pub events: Vec<T>,
    /// What comes after them.
    pub then: Then,
}

/// What comes after the events that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// There may be more at once.
    More,
    /// More may come later.
    Later,
    /// Nothing.
    End,
}

/// What somebody who follows a feed listens to. Made before the feed is opened, so that nothing that happens in between is
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
    /// To changes of access and the end of the server; and to `news`, a hint that the feed may have something to tell,
    /// where this process gives one.
    ///
    /// # Errors
    /// `RATE_LIMITED` when the caller has too many event streams.
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

    /// The feed as an answer: until the caller's right or the feed ends, or the server.
    #[must_use]
    pub fn follow<F: Feed>(self, feed: F) -> EventStream<F::Event> {
        let now = Instant::now();
        let follower = Follower {
            feed,
            listening: self,
            waiting: VecDeque::new(),
            has_ended: false,
            heartbeat_at: now + EVENT_HEARTBEAT,
            // At once: who called was found out before this listened for changes.
            authorize_at: now,
        };
        let events = stream::unfold(Some(follower), |follower: Option<Follower<F>>| async move {
            follower?.next().await
        });
        EventStream::new(events)
    }
}

/// Somebody who follows a feed.
struct Follower<F: Feed> {
    feed: F,
    listening: Listening,
    /// Read and not sent yet.
    waiting: VecDeque<F::Event>,
    /// Whether nothing comes behind those.
    has_ended: bool,
    heartbeat_at: Instant,
    authorize_at: Instant,
}

/// What ended a wait.
enum Woken {
    News,
    AccessChanged,
    Silent,
    Draining,
}

impl<F: Feed> Follower<F> {
    /// The next event or sign of life; none at the end.
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

    /// Tells whether the caller's access may have changed since they were let in.
    fn access_changed(&mut self) -> bool {
        loop {
            match self.listening.access.try_recv() {
                Ok(effect) if !self.feed.is_concerned_by(&effect) => {}
                Ok(_) | Err(TryRecvError::Lagged(_)) => return true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return false,
            }
        }
    }

    /// Waits for something to look at, or for the time of a sign of life.
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
                // Nobody announces any more only when the process ends.
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

/// The error that ended a feed, unless the caller is let in no more.
fn ours(error: Error) -> Option<Error> {
    let refused = status_of(error.code()).is_client_error();
    (!refused).then_some(error)
}

/// How many changes are kept for a receiver that is late; one that missed some has to expect that they concerned it.
const CAPACITY: usize = 256;

/// Told of the changes of access that were committed. A hint only: other processes commit as well, so whoever waits also
/// polls.
#[derive(Clone, Debug)]
pub struct AccessSignal(broadcast::Sender<Effect>);

impl Default for AccessSignal {
    fn default() -> Self {
        Self(broadcast::Sender::new(CAPACITY))
    }
}

impl AccessSignal {
    /// What somebody may do has changed.
    pub fn announce(&self, effect: &Effect) {
        if self.0.receiver_count() > 0 {
            // Whoever received may just have gone.
            let _ = self.0.send(effect.clone());
        }
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Effect> {
        self.0.subscribe()
    }
}

/// Told when entries of the audit were sealed. A hint only: other processes seal as well, so whoever waits also polls.
#[derive(Clone, Debug, Default)]
pub struct SealSignal(Arc<watch::Sender<()>>);

impl SealSignal {
    /// Entries were sealed.
    pub fn announce(&self) {
        self.0.send_replace(());
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }
}

/// When a refused client may try again, in seconds. It is a guess: a stream ends when its reader ends it.
const RETRY_AFTER: u64 = 5;

/// An account whose streams are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum StreamOwner {
    /// A person, with all their sessions and API keys.
    Person(UserId),
    /// An organization, with all its API keys.
    Organization(OrganizationId),
    /// A service, by its name.
    Service(String),
    /// Callers without a name.
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

/// The number of open event streams by caller. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct OpenStreams(Arc<Mutex<HashMap<StreamOwner, usize>>>);

impl OpenStreams {
    fn lock(&self) -> MutexGuard<'_, HashMap<StreamOwner, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a stream of the caller until the permit is dropped.
    ///
    /// # Errors
    /// `RATE_LIMITED` when the caller has as many streams as the limit.
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

/// A stream that is counted.
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
