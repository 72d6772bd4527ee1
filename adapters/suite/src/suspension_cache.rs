//! Caches for a short time whether platforms are suspended, as read from the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use core_domain::access::authorize_service;
use core_domain::kernel::{Clock, Context, PlatformId, Result, Timestamp};
use core_domain::port::{Mode, PlatformSuspensions, Store, SuspensionUnknown, transact_in};
use core_domain::use_case::iam::suspension;

/// How long a cached state is used without reading the store again. Other processes may suspend a platform in this
/// time.
const MAX_FRESH_AGE: Duration = Duration::from_millis(500);
/// How long the last known state is used while the store fails.
const MAX_AGE: Duration = Duration::from_secs(60);
/// Maximum duration of one read.
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(400);

/// Reads suspensions from the store.
#[derive(Debug)]
pub(crate) struct StoredSuspensions {
    /// A weak reference, because the store reports commits to the cache. With a strong one neither would be dropped,
    /// and the database would never be closed.
    pub(crate) store: Weak<dyn Store>,
    pub(crate) cx: Context,
}

impl StoredSuspensions {
    async fn read(&self, store: &dyn Store, platform: &PlatformId) -> Result<bool> {
        let scope = &authorize_service(&self.cx)?;
        transact_in(Mode::Read, store, |uow, _| {
            Box::pin(async move { suspension::is_suspended(scope, uow, platform).await })
        })
        .await
    }
}

#[async_trait]
impl PlatformSuspensions for StoredSuspensions {
    async fn is_suspended(&self, platform: &PlatformId) -> Result<bool, SuspensionUnknown> {
        // The store no longer exists after a shutdown.
        let store = self.store.upgrade().ok_or(SuspensionUnknown)?;
        let read = self.read(store.as_ref(), platform);
        let problem = match tokio::time::timeout(LOOKUP_TIMEOUT, read).await {
            Ok(Ok(is_suspended)) => return Ok(is_suspended),
            Ok(Err(error)) => error.to_string(),
            Err(elapsed) => elapsed.to_string(),
        };
        tracing::warn!(%platform, problem, "the suspension state of a platform could not be read");
        Err(SuspensionUnknown)
    }
}

/// Caches the states of a slower source, one for each platform that has visitors.
#[derive(Debug)]
pub(crate) struct SuspensionCache {
    source: Arc<dyn PlatformSuspensions>,
    clock: Arc<dyn Clock>,
    states: Mutex<States>,
}

#[derive(Debug, Default)]
struct States {
    by_platform: HashMap<PlatformId, State>,
    /// The number of invalidations. A state is not cached if an invalidation came after its read began.
    generation: u64,
}

#[derive(Clone, Copy, Debug)]
struct State {
    is_suspended: bool,
    /// When the read of the state began.
    read_at: Timestamp,
}

impl State {
    /// Returns whether the state is younger than `age`. Returns false if the clock was set back since the read.
    fn is_within(self, age: Duration, now: Timestamp) -> bool {
        now >= self.read_at && now.since(self.read_at) < age
    }
}

impl SuspensionCache {
    pub(crate) fn new(source: Arc<dyn PlatformSuspensions>, clock: Arc<dyn Clock>) -> Self {
        Self {
            source,
            clock,
            states: Mutex::default(),
        }
    }

    /// Removes the cached state of a platform.
    pub(crate) fn invalidate(&self, platform: &PlatformId) {
        let mut states = self.states();
        states.generation += 1;
        states.by_platform.remove(platform);
    }

    /// Removes the cached states of all platforms.
    pub(crate) fn invalidate_all(&self) {
        let mut states = self.states();
        states.generation += 1;
        states.by_platform.clear();
    }

    fn states(&self) -> MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Caches a state unless an invalidation came after its read began.
    fn insert_if_current(&self, platform: &PlatformId, state: State, generation: u64) {
        let mut states = self.states();
        if states.generation == generation {
            states.by_platform.insert(platform.clone(), state);
        }
    }
}

#[async_trait]
impl PlatformSuspensions for SuspensionCache {
    async fn is_suspended(&self, platform: &PlatformId) -> Result<bool, SuspensionUnknown> {
        let read_at = self.clock.now();
        let (known, generation) = {
            let states = self.states();
            (states.by_platform.get(platform).copied(), states.generation)
        };
        if let Some(state) = known.filter(|state| state.is_within(MAX_FRESH_AGE, read_at)) {
            return Ok(state.is_suspended);
        }
        if let Ok(is_suspended) = self.source.is_suspended(platform).await {
            let state = State {
                is_suspended,
                read_at,
            };
            self.insert_if_current(platform, state, generation);
            return Ok(is_suspended);
        }
        // The cache is read again, because an invalidation may have removed the state since.
        let last = self.states().by_platform.get(platform).copied();
        last.filter(|state| state.is_within(MAX_AGE, self.clock.now()))
            .map(|state| state.is_suspended)
            .ok_or(SuspensionUnknown)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use core_domain::testing::{ManualClock, MockPlatformSuspensions};

    use super::*;

    type Answer = Result<bool, SuspensionUnknown>;

    struct World {
        cache: SuspensionCache,
        clock: Arc<ManualClock>,
        source: Arc<Mutex<Answer>>,
        lookups: Arc<AtomicUsize>,
    }

    impl World {
        fn new(first: Answer) -> Self {
            let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
            let (source, lookups) = (Arc::new(Mutex::new(first)), Arc::new(AtomicUsize::new(0)));
            let mut mock = MockPlatformSuspensions::new();
            let (answer, count) = (Arc::clone(&source), Arc::clone(&lookups));
            mock.expect_is_suspended().returning(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
                *answer.lock().unwrap()
            });
            Self {
                cache: SuspensionCache::new(Arc::new(mock), clock.clone()),
                clock,
                source,
                lookups,
            }
        }

        fn set(&self, answer: Answer) {
            *self.source.lock().unwrap() = answer;
        }

        async fn ask(&self) -> Answer {
            self.cache.is_suspended(&platform()).await
        }
    }

    fn platform() -> PlatformId {
        PlatformId::parse("p-1").unwrap()
    }

    #[tokio::test]
    async fn a_suspension_by_another_process_is_seen_within_a_second() {
        let world = World::new(Ok(false));
        assert_eq!(world.ask().await, Ok(false));
        world.set(Ok(true));
        assert_eq!(world.ask().await, Ok(false));
        assert_eq!(world.lookups.load(Ordering::Relaxed), 1);
        world.clock.advance(Duration::from_millis(999));
        assert_eq!(world.ask().await, Ok(true));
    }

    #[tokio::test]
    async fn an_invalidation_applies_at_once_and_only_to_its_platform() {
        let world = World::new(Ok(false));
        assert_eq!(world.ask().await, Ok(false));
        world.set(Ok(true));
        world.cache.invalidate(&PlatformId::parse("p-2").unwrap());
        assert_eq!(world.ask().await, Ok(false));
        world.cache.invalidate(&platform());
        assert_eq!(world.ask().await, Ok(true));
        world.set(Ok(false));
        world.cache.invalidate_all();
        assert_eq!(world.ask().await, Ok(false));
    }

    #[tokio::test]
    async fn the_last_known_state_is_used_for_a_minute_while_the_store_fails() {
        for state in [true, false] {
            let world = World::new(Ok(state));
            assert_eq!(world.ask().await, Ok(state));
            world.set(Err(SuspensionUnknown));
            world.clock.advance(Duration::from_secs(59));
            assert_eq!(world.ask().await, Ok(state));
            world.clock.advance(Duration::from_secs(1));
            assert_eq!(world.ask().await, Err(SuspensionUnknown));
        }
    }

    #[tokio::test]
    async fn an_invalidated_state_is_not_used_when_the_store_fails() {
        let world = World::new(Ok(false));
        assert_eq!(world.ask().await, Ok(false));
        world.set(Err(SuspensionUnknown));
        world.cache.invalidate(&platform());
        assert_eq!(world.ask().await, Err(SuspensionUnknown));
    }

    #[tokio::test]
    async fn a_state_that_was_read_before_an_invalidation_is_not_cached() {
        let world = World::new(Ok(false));
        let generation = world.cache.states().generation;
        world.cache.invalidate(&platform());
        let state = State {
            is_suspended: false,
            read_at: world.clock.now(),
        };
        world
            .cache
            .insert_if_current(&platform(), state, generation);
        world.set(Ok(true));
        assert_eq!(world.ask().await, Ok(true));
    }
}
