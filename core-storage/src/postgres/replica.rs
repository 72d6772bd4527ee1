//! Reads from a standby that is not too far behind.
//!
//! A task samples the position of the primary in the write-ahead log. The statement that opens a unit on the standby also
//! returns the position that the standby has replayed. If that is not before a sample, the standby lacks only commits after
//! the sample. The clocks of the servers are not involved, and each unit checks the server that it runs on.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use core_domain::kernel::StoreError;
use core_domain::port::{Mode, PoolState};
use futures_util::FutureExt;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::pool::Pool;
use super::position::Position;
use super::unit::PostgresTx;
use super::{PostgresConfig, ReplicaConfig};

/// The position of a primary. The timeline changes when a standby is promoted.
const PRIMARY_POSITION: &str = "SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int, \
                                (pg_current_wal_lsn() - '0/0')::bigint";

/// The position that a standby has replayed; no row on a server that is not a standby. The timeline is that of its last
/// restart point, so a standby is not used for some time after a promotion.
const STANDBY_POSITION: &str = "SELECT timeline_id, (pg_last_wal_replay_lsn() - '0/0')::bigint \
                                FROM pg_control_checkpoint() WHERE pg_is_in_recovery()";

/// The time after which the standby is tried again, or the task that samples the primary is started again.
const PAUSE: Duration = Duration::from_secs(1);

/// Maximum time to open a unit on the standby. Then the primary is read.
const OPEN_TIMEOUT: Duration = Duration::from_millis(500);

/// The number of samples of the primary within the maximum staleness.
const SAMPLES: u32 = 4;

/// Minimum time between two samples.
const MIN_SAMPLE_PAUSE: Duration = Duration::from_millis(50);

/// The last positions of the primary, with the instants before which they were read. The oldest is first.
#[derive(Debug, Default)]
struct Samples(Mutex<VecDeque<(Instant, Position)>>);

impl Samples {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Instant, Position)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a position that was read after this instant.
    fn add(&self, since: Instant, position: Position) {
        self.lock().push_back((since, position));
    }

    /// Removes the samples that are older than this, and returns the oldest of the others.
    fn oldest_within(&self, max_age: Duration) -> Option<Position> {
        let mut samples = self.lock();
        while let Some((since, position)) = samples.front() {
            if since.elapsed() <= max_age {
                return Some(*position);
            }
            samples.pop_front();
        }
        None
    }
}

/// The use of the standby.
#[derive(Clone, Copy, Debug)]
enum Use {
    /// Units run on it.
    On,
    /// It is tried again at this time.
    Off(Instant),
}

/// A standby for reads that may be stale.
pub(super) struct Replica {
    pool: Arc<Pool>,
    /// The statement that opens a unit and returns the position of the standby.
    opening: Arc<str>,
    max_staleness: Duration,
    samples: Arc<Samples>,
    usage: Mutex<Use>,
    sampler: JoinHandle<()>,
}

impl std::fmt::Debug for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replica")
            .field("max_staleness", &self.max_staleness)
            .finish_non_exhaustive()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.sampler.abort();
    }
}

/// Runs a task until it returns. After a panic, it starts the task again.
async fn run_despite_panics<F: Future<Output = ()>>(mut task: impl FnMut() -> F) {
    while AssertUnwindSafe(task()).catch_unwind().await.is_err() {
        tracing::error!("the task that samples the position of the primary panicked");
        sleep(PAUSE).await;
    }
}

/// Samples the position of the primary until the value is dropped.
async fn sample(primary: Weak<Pool>, samples: Weak<Samples>, max_staleness: Duration) {
    loop {
        let (Some(pool), Some(samples)) = (primary.upgrade(), samples.upgrade()) else {
            return;
        };
        let since = Instant::now();
        // Without samples the standby is not used.
        if let Ok(Some(position)) = read_position(&pool, PRIMARY_POSITION).await {
            samples.oldest_within(max_staleness);
            samples.add(since, position);
        }
        drop((pool, samples));
        sleep((max_staleness / SAMPLES).max(MIN_SAMPLE_PAUSE)).await;
    }
}

async fn read_position(pool: &Arc<Pool>, text: &str) -> Result<Option<Position>, StoreError> {
    let mut lease = pool.acquire().await?;
    lease.read_position(text).await
}

impl Replica {
    /// Prepares the use of a standby, without connections. Must be called in a Tokio runtime.
    pub(super) fn start(
        primary: &Arc<Pool>,
        replica: &ReplicaConfig,
        config: &PostgresConfig,
    ) -> Result<Self, StoreError> {
        let pool = Pool::replica(config, &replica.url)?;
        let opening = pool.openings.of(Mode::Read, false).unwrap_or_default();
        let samples = Arc::<Samples>::default();
        let max_staleness = replica.max_staleness;
        let (of_primary, of_samples) = (Arc::downgrade(primary), Arc::downgrade(&samples));
        let sampling = run_despite_panics(move || {
            sample(of_primary.clone(), of_samples.clone(), max_staleness)
        });
        Ok(Self {
            opening: format!("{opening}; {STANDBY_POSITION}").into(),
            pool,
            max_staleness,
            samples,
            usage: Mutex::new(Use::On),
            sampler: tokio::spawn(sampling),
        })
    }

    /// Opens a unit on the standby. Returns `None` if the standby is too far behind or cannot be reached.
    pub(super) async fn begin(&self) -> Option<PostgresTx> {
        let oldest = self.samples.oldest_within(self.max_staleness)?;
        if !self.may_try() {
            return None;
        }
        // A task of its own, so that a connection that takes longer is there for the next unit.
        let (pool, opening) = (Arc::clone(&self.pool), Arc::clone(&self.opening));
        let opened = tokio::spawn(PostgresTx::begin_on_standby(pool, opening));
        let problem = match timeout(OPEN_TIMEOUT, opened).await {
            Ok(Ok(Ok((unit, Some(position))))) if position.includes(oldest) => {
                self.switch_on();
                return Some(unit);
            }
            Ok(Ok(Ok((_, Some(_))))) => "it is too far behind".to_owned(),
            Ok(Ok(Ok((_, None)))) => "it is not a standby".to_owned(),
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(_)) | Err(_) => "it does not respond in time".to_owned(),
        };
        self.switch_off(&problem);
        None
    }

    /// Returns the use of the connections to the standby.
    pub(super) fn state(&self) -> PoolState {
        self.pool.state()
    }

    fn usage(&self) -> MutexGuard<'_, Use> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a unit may try the standby. After a failure, one unit tries it per pause.
    fn may_try(&self) -> bool {
        let mut usage = self.usage();
        let Use::Off(until) = *usage else {
            return true;
        };
        let now = Instant::now();
        if now < until {
            return false;
        }
        *usage = Use::Off(now + PAUSE);
        true
    }

    fn switch_on(&self) {
        let before = std::mem::replace(&mut *self.usage(), Use::On);
        if matches!(before, Use::Off(_)) {
            tracing::info!("lists read the replica again");
        }
    }

    fn switch_off(&self, problem: &str) {
        let off = Use::Off(Instant::now() + PAUSE);
        let before = std::mem::replace(&mut *self.usage(), off);
        if matches!(before, Use::On) {
            tracing::warn!(
                problem,
                "the replica cannot be used; lists read the primary"
            );
        }
    }
}

/// Returns the number of bytes of the write-ahead log by which the standby of this configuration is behind; `None` without
/// a standby.
///
/// # Errors
/// [`StoreError::Unavailable`] if a server cannot be reached. [`StoreError::Backend`] if the server is not a standby of the
/// primary.
pub async fn measure_replica_lag(config: PostgresConfig) -> Result<Option<u64>, StoreError> {
    let Some(replica) = &config.replica else {
        return Ok(None);
    };
    let primary = Pool::direct(&config)?;
    let standby = Pool::replica(&config, &replica.url)?;
    let written = read_position(&primary, PRIMARY_POSITION).await?;
    let replayed = read_position(&standby, STANDBY_POSITION).await?;
    let (Some(written), Some(replayed)) = (written, replayed) else {
        return Err(StoreError::backend("the server is not a standby"));
    };
    if written.timeline != replayed.timeline {
        let text =
            "the standby has not followed the last promotion of a primary up to a restart point";
        return Err(StoreError::backend(text));
    }
    Ok(u64::try_from(written.bytes - replayed.bytes)
        .ok()
        .or(Some(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_sample_that_is_young_enough_decides() {
        let samples = Samples::default();
        let now = Instant::now();
        for (age, bytes) in [(300, 1), (30, 2), (1, 3)] {
            let position = Position { timeline: 1, bytes };
            samples.add(now - Duration::from_secs(age), position);
        }
        let oldest = |age| samples.oldest_within(Duration::from_secs(age));
        assert_eq!(oldest(400).map(|found| found.bytes), Some(1));
        assert_eq!(oldest(60).map(|found| found.bytes), Some(2));
        assert_eq!(oldest(0), None);
    }

    #[tokio::test]
    async fn a_task_that_panics_is_started_again() {
        let mut starts = 0;
        run_despite_panics(|| {
            starts += 1;
            let is_first = starts == 1;
            async move { assert!(!is_first, "the first run panics") }
        })
        .await;
        assert_eq!(starts, 2);
    }
}
