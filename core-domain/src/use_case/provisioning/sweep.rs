//! What time does to jobs: waits end, leases end, deadlines pass. Any node may do it, as often as it likes.

use super::carry::{By, carry_out};
use crate::kernel::{Context, Error, JobId, Result};
use crate::port::{Record, Store, Stored, UnitOfWork, transact};
use crate::provisioning::{
    Actor, Job, JobLeaseQuery, JobQuery, JobStatus, Kinds, Refusal, Trigger, apply,
};

/// How many jobs one sweep looks at for each reason.
const BATCH: u32 = 100;

/// What a sweep did, in jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Woken from a wait.
    pub woken: usize,
    /// Taken from a worker whose lease had ended.
    pub reaped: usize,
    /// Stopped at their deadline.
    pub overdue: usize,
}

/// Wakes what has waited long enough, takes back what a vanished worker held, stops what is overdue; each job in a
/// unit of work of its own.
///
/// # Errors
/// When the store failed; what was done before stays done.
pub async fn sweep(cx: &Context, store: &dyn Store, kinds: &Kinds) -> Result<Swept> {
    let due = due(store).await?;
    let wake = Trigger::Wake { signalled: false };
    Ok(Swept {
        woken: move_all(cx, store, kinds, &due.to_wake, &wake, Lease::Irrelevant).await?,
        overdue: move_all(
            cx,
            store,
            kinds,
            &due.overdue,
            &Trigger::Deadline,
            Lease::Irrelevant,
        )
        .await?,
        reaped: move_all(
            cx,
            store,
            kinds,
            &due.expired,
            &Trigger::Reap,
            Lease::MustHaveEnded,
        )
        .await?,
    })
}

/// For a store that only this process uses, when it is opened: whatever runs has no worker, so all of it is taken back
/// at once. Answers how many jobs that were.
///
/// # Errors
/// When the store failed.
pub async fn recover(cx: &Context, store: &dyn Store, kinds: &Kinds) -> Result<usize> {
    let mut reaped = 0;
    loop {
        let running = transact(store, |uow, _| {
            Box::pin(async move {
                let leases = uow.job_leases().list(&JobLeaseQuery::All, BATCH).await?;
                Ok(leases.iter().map(|l| l.job_id.clone()).collect::<Vec<_>>())
            })
        })
        .await?;
        if running.is_empty() {
            return Ok(reaped);
        }
        reaped += move_all(
            cx,
            store,
            kinds,
            &running,
            &Trigger::Reap,
            Lease::HolderIsGone,
        )
        .await?;
    }
}

/// Wakes a waiting job because what it waits for has happened.
///
/// # Errors
/// `NOT_FOUND` for an unknown job, `INVALID_STATE` when it does not wait.
pub async fn signal(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    job: &JobId,
) -> Result<Stored<Job>> {
    let now = uow.now().await?;
    let job = uow.jobs().get(job.as_str()).await?;
    let job = job.ok_or(Error::NotFound(Job::KIND))?;
    let trigger = Trigger::Wake { signalled: true };
    let moved = apply(&job, &trigger, now, cx.entropy.as_ref())?;
    let actor = Actor::caller(cx);
    let by = By {
        actor: &actor,
        kinds,
        holder_is_gone: false,
    };
    carry_out(cx, uow, &job, moved, by).await
}

/// Whether a job may be moved while its lease lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lease {
    MustHaveEnded,
    Irrelevant,
    /// Nobody can still act under it: its process was the only one that may use the store, and this one has taken over.
    HolderIsGone,
}

#[derive(Debug)]
struct Due {
    to_wake: Vec<JobId>,
    overdue: Vec<JobId>,
    expired: Vec<JobId>,
}

async fn due(store: &dyn Store) -> Result<Due> {
    let mut uow = store.begin(crate::port::Mode::Read).await?;
    let now = uow.now().await?;
    let ids = |jobs: Vec<Stored<Job>>| jobs.iter().map(|job| job.id.clone()).collect();
    let due = Due {
        to_wake: ids(uow.jobs().list(&JobQuery::WakeAt(now), BATCH).await?),
        overdue: ids(uow.jobs().list(&JobQuery::OverdueAt(now), BATCH).await?),
        expired: uow
            .job_leases()
            .list(&JobLeaseQuery::ExpiredAt(now), BATCH)
            .await?
            .iter()
            .map(|lease| lease.job_id.clone())
            .collect(),
    };
    uow.rollback().await;
    Ok(due)
}

async fn move_all(
    cx: &Context,
    store: &dyn Store,
    kinds: &Kinds,
    jobs: &[JobId],
    trigger: &Trigger,
    lease: Lease,
) -> Result<usize> {
    let mut count = 0;
    for job in jobs {
        let moved = transact(store, |uow, _| {
            Box::pin(move_one(cx, uow, kinds, job, trigger, lease))
        })
        .await?;
        count += usize::from(moved);
    }
    Ok(count)
}

/// Decides again inside the unit: somebody else may have been quicker, or the holder's heartbeat came after all.
async fn move_one(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    job: &JobId,
    trigger: &Trigger,
    lease: Lease,
) -> Result<bool> {
    let now = uow.now().await?;
    let Some(job) = uow.jobs().get(job.as_str()).await? else {
        return Ok(false);
    };
    if lease == Lease::MustHaveEnded {
        let held = uow.job_leases().get(job.id.as_str()).await?;
        if job.status != JobStatus::Running || held.is_none_or(|l| l.lease_until >= now) {
            return Ok(false);
        }
    }
    let moved = match apply(&job, trigger, now, cx.entropy.as_ref()) {
        Ok(moved) => moved,
        Err(Refusal::NotDue | Refusal::Status { .. }) => return Ok(false),
        Err(refusal) => return Err(refusal.into()),
    };
    let actor = Actor::system();
    let by = By {
        actor: &actor,
        kinds,
        holder_is_gone: lease == Lease::HolderIsGone,
    };
    carry_out(cx, uow, &job, moved, by).await?;
    Ok(true)
}
