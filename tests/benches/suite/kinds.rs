//! Job kinds that do nothing, so that only the engine is measured.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use core_domain::access::authorize_operator;
use core_domain::kernel::{Caller, Context, PlatformId, PlatformOwned};
use core_domain::port::{Store, transact};
use core_domain::provisioning::{Job, LaneKey};
use core_domain::testing::{MemoryBlobs, MemoryInfrastructure, named_uuid};
use core_domain::use_case::provisioning::{
    JobInput, JobKind, JobStep, Kinds, Observation, StepContext, StepError, Steps, Worker, enqueue,
};
use core_suite::SystemEntropy;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

const STEPS: [&str; 3] = ["first", "second", "third"];

/// The input of a job, which selects its lane.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    platform_id: PlatformId,
}

impl Order {
    pub(crate) fn in_lane(lane: u32) -> Self {
        let platform_id = PlatformId::parse(&named_uuid(&format!("lane-{lane}"))).unwrap();
        Self { platform_id }
    }
}

impl JobInput for Order {
    type Owner = PlatformOwned;

    fn lane(&self) -> LaneKey {
        LaneKey::platform(&self.platform_id)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.platform_id)
    }
}

/// A job kind whose steps do nothing.
#[derive(Debug)]
pub(crate) struct NoOp<const COUNT: usize>(Arc<AppliedJobs>);

/// The jobs whose last step was applied in this process.
#[derive(Debug)]
pub(crate) struct AppliedJobs {
    jobs: Mutex<Vec<(String, u64)>>,
    count: watch::Sender<usize>,
}

impl Default for AppliedJobs {
    fn default() -> Self {
        Self {
            jobs: Mutex::default(),
            count: watch::channel(0).0,
        }
    }
}

impl AppliedJobs {
    fn add(&self, job: &Job) {
        let mut jobs = self.jobs.lock().unwrap();
        jobs.push((job.id.to_string(), nanoseconds()));
        self.count.send_replace(jobs.len());
    }

    /// Returns a receiver of the current and all later numbers of jobs.
    pub(crate) fn count(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    /// Returns the ids of the jobs, and the times at which they were applied.
    pub(crate) fn jobs(&self) -> Vec<(String, u64)> {
        self.jobs.lock().unwrap().clone()
    }
}

/// Returns the wall-clock time in nanoseconds, which all processes of the machine share.
#[expect(
    clippy::disallowed_methods,
    reason = "compares the times of two processes"
)]
pub(crate) fn nanoseconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_nanos().try_into().unwrap()
}

impl<const COUNT: usize> JobKind for NoOp<COUNT> {
    const HAS_HOOKS: bool = false;
    const NAME: &'static str = if COUNT == 1 {
        "bench.one-step"
    } else {
        "bench.three-steps"
    };
    type Input = Order;

    fn steps() -> Steps<Self> {
        let step = |at| NoOpStep {
            name: STEPS[at],
            is_last: at + 1 == COUNT,
        };
        Steps::new().steps((0..COUNT).map(step))
    }
}

#[derive(Debug)]
struct NoOpStep {
    name: &'static str,
    is_last: bool,
}

#[async_trait]
impl<const COUNT: usize> JobStep<NoOp<COUNT>> for NoOpStep {
    const HAS_RECORD: bool = false;
    type Output = ();

    fn name(&self) -> &'static str {
        self.name
    }

    async fn observe(
        &self,
        _: &StepContext<'_, NoOp<COUNT>>,
    ) -> Result<Observation<()>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, NoOp<COUNT>>) -> Result<(), StepError> {
        if self.is_last {
            cx.kind.0.add(cx.job);
        }
        Ok(())
    }
}

/// Returns a worker that knows these kinds.
pub(crate) fn worker(store: &Arc<dyn Store>, applied: &Arc<AppliedJobs>) -> Worker {
    let kinds = Kinds::new().with(NoOp::<1>(Arc::clone(applied))).unwrap();
    let kinds = kinds.with(NoOp::<3>(Arc::clone(applied))).unwrap();
    Worker::new(
        Arc::clone(store),
        Arc::new(MemoryInfrastructure::default()),
        Arc::new(MemoryBlobs::default()),
        Arc::new(kinds),
        Arc::new(SystemEntropy),
    )
}

/// Returns the context of an operator, who may queue jobs for every platform.
pub(crate) fn operator() -> Context {
    Context {
        caller: Arc::new(Caller::Service {
            name: "operator".into(),
        }),
        ..Context::system(Arc::new(SystemEntropy))
    }
}

/// Queues jobs in one unit of work. Returns their ids.
pub(crate) async fn queue<const COUNT: usize>(store: &dyn Store, orders: &[Order]) -> Vec<String> {
    let cx = &operator();
    let scope = &authorize_operator(cx).unwrap();
    let queued = transact(store, |uow, _| {
        Box::pin(async move {
            let mut ids = Vec::new();
            for order in orders {
                let job = enqueue::<NoOp<COUNT>>(cx, scope, uow, order).await?;
                ids.push(job.id.to_string());
            }
            Ok(ids)
        })
    });
    queued.await.unwrap()
}

/// Queues one job in a unit of work, and counts the runs of the unit.
pub(crate) async fn queue_counting_runs(store: &dyn Store, order: &Order, runs: &AtomicU32) {
    let cx = &operator();
    let scope = &authorize_operator(cx).unwrap();
    let queued = transact(store, |uow, _| {
        Box::pin(async move {
            runs.fetch_add(1, Ordering::Relaxed);
            enqueue::<NoOp<1>>(cx, scope, uow, order).await
        })
    });
    queued.await.unwrap();
}
