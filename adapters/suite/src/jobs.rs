//! Jobs of the program that embeds the suite: its own job kinds, run by the provisioning engine.
//!
//! A job kind is a type that implements [`JobKind`]: a name, a typed input, and steps that observe before they act.
//! Register it with [`SuiteBuilder::job_kind`](crate::SuiteBuilder::job_kind) in every process that should run its
//! jobs, and queue jobs with [`Jobs::enqueue`]. These jobs are stored, claimed, retried, handed over at a stop and
//! shown to operators like the suite's own jobs. `examples/jobs` is a complete program.

use std::sync::Arc;
use std::time::Duration;

use core_domain::access::{Covers, OperatorScope, authorize_job, authorize_operator};
use core_domain::kernel::{Caller, Context, Entropy, Error, Reason, Result, permission};
use core_domain::port::{Mode, Store, transact};
use core_domain::use_case::provisioning::{self, Kinds};

use crate::units::Units;

pub use core_domain::kernel::{EntityId, Environment, JobId, PlatformId, PlatformOwned, Unowned};
pub use core_domain::port::UnitOfWork;
pub use core_domain::provisioning::{Job, JobStatus, LaneKey};
pub use core_domain::use_case::provisioning::{
    JobContext, JobInput, JobKind, JobStep, JobView, KindError, Observation, StepContext,
    StepError, Steps, Undone,
};

/// The first and the longest pause between two polls for the end of a job.
const POLL_PAUSES: [Duration; 2] = [Duration::from_millis(5), Duration::from_secs(1)];

/// Queues, reads and operates jobs on behalf of the host program. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Jobs {
    store: Arc<dyn Store>,
    kinds: Arc<Kinds>,
    cx: Context,
}

impl Jobs {
    pub(crate) fn new(store: Arc<dyn Store>, kinds: Arc<Kinds>, entropy: Arc<dyn Entropy>) -> Self {
        let caller = Caller::Service {
            name: "host".to_owned(),
        };
        let cx = Context {
            caller: Arc::new(caller),
            ..Context::system(entropy)
        };
        Self { store, kinds, cx }
    }

    /// Queues a job. If a job with the same idempotency key exists, returns that job's id and queues nothing.
    ///
    /// # Errors
    /// `SERVICE_UNAVAILABLE` if the kind is not registered.
    pub async fn enqueue<K: JobKind>(&self, input: &K::Input) -> Result<JobId>
    where
        OperatorScope: Covers<<K::Input as JobInput>::Owner>,
    {
        transact(self.store.as_ref(), |uow, _| {
            Box::pin(self.enqueue_in::<K>(uow, input))
        })
        .await
    }

    /// Queues a job in a unit of work of the host program, see [`crate::units`]. The job exists if the unit is committed.
    ///
    /// # Errors
    /// Those of [`Jobs::enqueue`].
    pub async fn enqueue_in<K: JobKind>(
        &self,
        unit: &mut dyn UnitOfWork,
        input: &K::Input,
    ) -> Result<JobId>
    where
        OperatorScope: Covers<<K::Input as JobInput>::Owner>,
    {
        if !self.kinds.contains(K::NAME) {
            let unknown = format!("register the kind {} with the builder", K::NAME);
            return Err(Error::Unavailable(unknown));
        }
        let scope = authorize_operator(&self.cx)?;
        let job = provisioning::enqueue::<K>(&self.cx, &scope, unit, input).await?;
        Ok(job.id.clone())
    }

    /// Returns units of work with the same caller.
    pub(crate) fn units(&self) -> Units {
        Units::new(Arc::clone(&self.store), self.cx.clone())
    }

    /// Returns a job with its current state.
    ///
    /// # Errors
    /// `NOT_FOUND` if the job does not exist.
    pub async fn get(&self, job: &JobId) -> Result<JobView> {
        let mut uow = self.store.begin(Mode::Read).await?;
        let scope = authorize_job::<permission::JobRead>(&self.cx, uow.as_mut(), job).await?;
        provisioning::get(&self.cx, &scope, uow.as_mut()).await
    }

    /// Waits until the job has ended, as `COMPLETED` or `FAILED`, and returns it. The wait has no limit; use
    /// `tokio::time::timeout` to set one.
    ///
    /// # Errors
    /// `NOT_FOUND` if the job does not exist.
    pub async fn wait_until_ended(&self, job: &JobId) -> Result<JobView> {
        let [mut pause, longest] = POLL_PAUSES;
        loop {
            let seen = self.get(job).await?;
            if seen.job.status.is_terminal() {
                return Ok(seen);
            }
            tokio::time::sleep(pause).await;
            pause = longest.min(pause * 2);
        }
    }

    /// Retries a failed job from its first unfinished step, or makes a queued or waiting job run now.
    ///
    /// # Errors
    /// `NOT_FOUND` if the job does not exist; `INVALID_STATE` if it is running or has completed.
    pub async fn retry(&self, job: &JobId) -> Result<()> {
        let scope = authorize_operator(&self.cx)?;
        transact(self.store.as_ref(), |uow, _| {
            Box::pin(async move {
                let kinds = self.kinds.as_ref();
                let retried = provisioning::retry(&self.cx, &scope, uow, kinds, job);
                retried.await.map(drop)
            })
        })
        .await
    }

    /// Cancels a job and undoes those of its steps that can be undone.
    ///
    /// # Errors
    /// `NOT_FOUND` if the job does not exist; `INVALID_STATE` if it has ended.
    pub async fn cancel(&self, job: &JobId, reason: Option<&Reason>) -> Result<()> {
        let scope = authorize_operator(&self.cx)?;
        transact(self.store.as_ref(), |uow, _| {
            Box::pin(async move {
                let kinds = self.kinds.as_ref();
                let cancelled = provisioning::cancel(&self.cx, &scope, uow, kinds, job, reason);
                cancelled.await.map(drop)
            })
        })
        .await
    }
}
