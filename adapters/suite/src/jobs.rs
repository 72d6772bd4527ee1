//! Jobs of the program that embeds the suite: kinds of its own, on the engine that provisions.
//!
//! A kind is a type ([`JobKind`]): a name, a typed input and steps that look before they act. Register it with
//! [`SuiteBuilder::job_kind`](crate::SuiteBuilder::job_kind) in every process that shall run its jobs, and queue jobs with
//! [`Jobs::enqueue`]. They are stored, claimed, retried, handed back at a stop and shown to operators as the suite's own
//! are. `examples/jobs` is a whole program.

use std::sync::Arc;
use std::time::Duration;

use core_domain::access::{Covers, OperatorScope, authorize_job, authorize_operator};
use core_domain::kernel::{Caller, Context, Entropy, Error, Reason, Result, grant};
use core_domain::port::{Mode, Store, transact};
use core_domain::use_case::provisioning::{self, Kinds};

pub use core_domain::kernel::{EntityId, Environment, JobId, PlatformId, PlatformOwned, Unowned};
pub use core_domain::port::UnitOfWork;
pub use core_domain::provisioning::{Job, JobStatus, LaneKey};
pub use core_domain::use_case::provisioning::{
    JobContext, JobInput, JobKind, JobStep, JobView, KindError, Observation, StepContext,
    StepError, Steps, Undone,
};

/// How soon a job that is waited for is looked at again, at first and at the latest.
const LOOK_AGAIN: [Duration; 2] = [Duration::from_millis(5), Duration::from_secs(1)];

/// Queues jobs, looks at them and operates them, in the name of the host. Cheap to clone.
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

    /// Queues a job. One with an idempotency key that is known is answered as it stands, and nothing is queued.
    ///
    /// # Errors
    /// `SERVICE_UNAVAILABLE` for a kind that was not registered; when the store failed.
    pub async fn enqueue<K: JobKind>(&self, input: &K::Input) -> Result<JobId>
    where
        OperatorScope: Covers<<K::Input as JobInput>::Owner>,
    {
        if !self.kinds.knows(K::NAME) {
            let unknown = format!("register the kind {} with the builder", K::NAME);
            return Err(Error::Unavailable(unknown));
        }
        let scope = authorize_operator(&self.cx)?;
        transact(self.store.as_ref(), |uow, _| {
            Box::pin(async move {
                let job = provisioning::enqueue::<K>(&self.cx, &scope, uow, input).await?;
                Ok(job.id.clone())
            })
        })
        .await
    }

    /// A job as it stands.
    ///
    /// # Errors
    /// `NOT_FOUND`; when the store failed.
    pub async fn get(&self, job: &JobId) -> Result<JobView> {
        let mut uow = self.store.begin(Mode::Read).await?;
        let scope = authorize_job::<grant::JobRead>(&self.cx, uow.as_mut(), job).await?;
        provisioning::get(&self.cx, &scope, uow.as_mut()).await
    }

    /// The job once it has ended: `COMPLETED`, or `FAILED` and for an operator to see to. Waits as long as that takes;
    /// `tokio::time::timeout` sets a limit.
    ///
    /// # Errors
    /// As [`Jobs::get`].
    pub async fn until_ended(&self, job: &JobId) -> Result<JobView> {
        let [mut pause, longest] = LOOK_AGAIN;
        loop {
            let seen = self.get(job).await?;
            if seen.job.status.is_terminal() {
                return Ok(seen);
            }
            tokio::time::sleep(pause).await;
            pause = longest.min(pause * 2);
        }
    }

    /// Lets a failed job go on at its first unfinished step, or makes a queued or waiting one run now.
    ///
    /// # Errors
    /// `NOT_FOUND`; `INVALID_STATE` when it runs or has completed.
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

    /// Stops a job; what its steps can take back is taken back.
    ///
    /// # Errors
    /// `NOT_FOUND`; `INVALID_STATE` when it has ended.
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
