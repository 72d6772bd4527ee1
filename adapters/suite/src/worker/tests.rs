//! Workers over a store whose calls panic for some time. The clock of tokio advances when every task waits.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{Entropy, JobId, PlatformId, StoreError, Timestamp, Unowned};
use core_domain::port::{Mode, Store, UnitOfWork};
use core_domain::provisioning::{JobStatus, LaneKey};
use core_domain::testing::{
    ManualClock, MemoryBlobs, MemoryInfrastructure, SeededEntropy, named_uuid,
};
use core_domain::use_case::provisioning::{
    JobInput, JobKind, JobStep, Kinds, Observation, StepContext, StepError, Steps,
};
use core_storage::memory::{MemoryConfig, open};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::*;
use crate::jobs::Jobs;

/// The duration of the step. It is longer than a lease, so it ends only if the lease is extended.
const STEP_DURATION: Duration = Duration::from_secs(50);

/// A store that panics between two instants, given as times since the start.
#[derive(Debug)]
struct PanickingStore {
    inner: Arc<dyn Store>,
    begun: Instant,
    panics: [Duration; 2],
}

#[async_trait]
impl Store for PanickingStore {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError> {
        let [from, until] = self.panics;
        let now = self.begun.elapsed();
        assert!(now < from || now >= until, "the store panics");
        self.inner.begin(mode).await
    }

    async fn back_off(&self, _: u32) {}
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Order {
    platform_id: PlatformId,
}

impl JobInput for Order {
    type Owner = Unowned;

    fn lane(&self) -> LaneKey {
        LaneKey::platform(&self.platform_id)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.platform_id)
    }
}

/// A kind of job whose only step takes [`STEP_DURATION`].
#[derive(Debug)]
struct Long;

impl JobKind for Long {
    const NAME: &'static str = "long";
    const HAS_HOOKS: bool = false;
    type Input = Order;

    fn steps() -> Steps<Self> {
        Steps::new().step(Sleep)
    }
}

#[derive(Debug)]
struct Sleep;

#[async_trait]
impl JobStep<Long> for Sleep {
    const HAS_RECORD: bool = false;
    type Output = ();

    fn name(&self) -> &'static str {
        "sleep"
    }

    async fn observe(&self, _: &StepContext<'_, Long>) -> Result<Observation<()>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, _: &StepContext<'_, Long>) -> Result<(), StepError> {
        sleep(STEP_DURATION).await;
        Ok(())
    }
}

/// A running worker with one job.
struct World {
    jobs: Jobs,
    job: JobId,
    metrics: Metrics,
    handle: WorkerHandle,
}

impl World {
    /// Starts a worker whose store panics between two instants, given in milliseconds since the start.
    async fn start(sole_user: bool, panics: [u64; 2]) -> Self {
        let inner = open(MemoryConfig {
            clock: Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000))),
            cursor_key: [1; 32].into(),
        });
        let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::new(1));
        let kinds = Arc::new(Kinds::new().with(Long).unwrap());
        let jobs = Jobs::new(Arc::clone(&inner), Arc::clone(&kinds), Arc::clone(&entropy));
        let platform_id = PlatformId::parse(&named_uuid("p1")).unwrap();
        let job = jobs.enqueue::<Long>(&Order { platform_id }).await.unwrap();
        let worker = Worker::new(
            Arc::new(PanickingStore {
                inner,
                begun: Instant::now(),
                panics: panics.map(Duration::from_millis),
            }),
            Arc::new(MemoryInfrastructure::default()),
            Arc::new(MemoryBlobs::default()),
            kinds,
            entropy,
        );
        let options = WorkerOptions {
            slots: 1,
            sole_user,
            ..WorkerOptions::default()
        };
        let metrics = Metrics::new();
        let wake = WorkerWake::default();
        let handle = start_metered_worker(worker, &wake, options, &metrics, None);
        Self {
            jobs,
            job,
            metrics,
            handle,
        }
    }

    async fn status(&self) -> JobStatus {
        self.jobs.get(&self.job).await.unwrap().job.status
    }

    fn has_sample(&self, sample: &str) -> bool {
        let text = self.metrics.render();
        text.lines().any(|line| line == sample)
    }

    fn has_panics(&self, task: &str, number: u32) -> bool {
        let series = format!("core_background_task_panics_total{{task=\"{task}\"}}");
        self.has_sample(&format!("{series} {number}"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_outlasts_panics_of_the_heartbeats() {
    for sole_user in [true, false] {
        // The heartbeats follow each other after ten seconds. A step is aborted after twenty seconds without one.
        let world = World::start(sole_user, [9_500, 11_500]).await;
        sleep(Duration::from_secs(45)).await;
        assert_eq!(world.status().await, JobStatus::Running);
        sleep(Duration::from_secs(10)).await;
        assert_eq!(world.status().await, JobStatus::Completed);
        assert!(
            world.has_panics("worker-heartbeats", 2),
            "{}",
            world.metrics.render()
        );
        assert!(!world.has_panics("worker-timers", 0));
        assert!(world.has_panics("worker", 0));
        assert!(world.has_sample("core_job_leases_lost_total 0"));
        world.handle.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_panics_is_started_again() {
    let world = World::start(true, [0, 500]).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(world.status().await, JobStatus::Completed);
    assert!(world.has_panics("worker", 1), "{}", world.metrics.render());
    assert!(world.has_sample("core_worker_slots{state=\"free\"} 1.0"));
    world.handle.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_always_panics_stops_at_once() {
    let world = World::start(true, [0, u64::MAX]).await;
    sleep(Duration::from_millis(2_500)).await;
    let asked = Instant::now();
    world.handle.stop().await;
    assert!(asked.elapsed() < Duration::from_millis(10));
}
