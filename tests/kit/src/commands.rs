//! Commands of operators for jobs.

use core_domain::access::{authorize_job, authorize_operator};
use core_domain::kernel::{Context, DlqEntryId, JobId, Result, Stored, permission};
use core_domain::port::{Store, transact};
use core_domain::provisioning::Job;
use core_domain::use_case::provisioning::{self, Kinds};

/// A command of an operator for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobCommand {
    /// Runs a failed or waiting job again.
    Retry,
    /// Cancels the job.
    Cancel,
    /// Declares the job done.
    ForceComplete,
    /// Wakes a job that waits for a signal.
    Signal,
}

/// Runs a command in a transaction. The caller of `cx` must be an operator.
///
/// # Errors
/// If the job does not exist, or its status or kind does not allow the command.
pub async fn run_command(
    store: &dyn Store,
    kinds: &Kinds,
    cx: &Context,
    command: JobCommand,
    job: &JobId,
) -> Result<Stored<Job>> {
    let operator = &authorize_operator(cx)?;
    let done = transact(store, |uow, _| {
        Box::pin(async move {
            match command {
                JobCommand::Retry => provisioning::retry(cx, operator, uow, kinds, job).await,
                JobCommand::Cancel => {
                    provisioning::cancel(cx, operator, uow, kinds, job, None).await
                }
                JobCommand::ForceComplete => {
                    provisioning::force_complete(cx, operator, uow, kinds, job).await
                }
                JobCommand::Signal => {
                    let job = authorize_job::<permission::JobCreate>(cx, uow, job).await?;
                    provisioning::signal(cx, &job, uow, kinds).await
                }
            }
        })
    });
    done.await
}

/// Replays a dead letter: its job is queued again. The caller of `cx` must be an operator.
///
/// # Errors
/// If the entry does not exist, or its job cannot be replayed.
pub async fn replay(
    store: &dyn Store,
    kinds: &Kinds,
    cx: &Context,
    entry: &DlqEntryId,
) -> Result<Stored<Job>> {
    let operator = &authorize_operator(cx)?;
    let replayed = transact(store, |uow, _| {
        Box::pin(provisioning::replay(cx, operator, uow, kinds, entry))
    });
    replayed.await
}
