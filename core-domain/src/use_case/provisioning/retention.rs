//! Removing old jobs with their events, and old dead letters.

use std::time::Duration;

use super::super::shared::{MAX_SLICE, remove_first};
use crate::access::{unaudited, unowned_records};
use crate::kernel::{Result, Stored};
use crate::port::UnitOfWork;
use crate::provisioning::{DeadLetter, DlqQuery, Job, JobEvent, JobEventQuery, JobQuery};

/// Removes jobs that ended longer ago than `retention`, oldest first, with their events: at most `limit` records, but at
/// least one job. A job with an open dead letter stays, because an operator may still continue it. Returns the number of
/// removed records; 0 means that none is left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_old_jobs(
    uow: &mut dyn UnitOfWork,
    retention: Duration,
    limit: u32,
) -> Result<u64> {
    let ended = JobQuery::EndedBefore(uow.now().await?.minus(retention));
    let limit = limit.min(MAX_SLICE);
    let jobs = unowned_records::<Job>(uow).claim(&ended, limit).await?;
    let mut removed = 0;
    for job in jobs {
        let records = u64::try_from(job.event_count).unwrap_or(0) + 1;
        if removed > 0 && removed + records > u64::from(limit) {
            break;
        }
        removed += remove_job(uow, &job).await?;
    }
    Ok(removed)
}

/// Removes a job and its events. Returns their number.
async fn remove_job(uow: &mut dyn UnitOfWork, job: &Stored<Job>) -> Result<u64> {
    let events = JobEventQuery::Of(job.id.clone());
    let events = unowned_records::<JobEvent>(uow).remove_all(&events).await?;
    unaudited::remove(uow, job).await?;
    Ok(events + 1)
}

/// Removes at most `limit` dead letters that were resolved or discarded longer ago than `retention`, oldest first.
/// Returns the number of removed dead letters; 0 means that none is left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_old_dead_letters(
    uow: &mut dyn UnitOfWork,
    retention: Duration,
    limit: u32,
) -> Result<u64> {
    let closed = DlqQuery::ClosedBefore(uow.now().await?.minus(retention));
    remove_first::<DeadLetter>(uow, &closed, limit).await
}
