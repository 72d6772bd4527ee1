//! Queueing a job, in the unit of work of what causes it.

use super::kind::{JobInput, JobKind, to_json};
use super::lane::{lane_of, refresh_lane};
use crate::access::{Covers, unaudited, unowned};
use crate::kernel::{Context, Error, JobEventId, JobId, Result, StoreError, Stored, Timestamp};
use crate::port::UnitOfWork;
use crate::provisioning::{
    Actor, DEADLINE, Job, JobEvent, JobQuery, JobStatus, LanePlace, MAX_ATTEMPTS, Step,
};

/// Queues a job of a kind. Lane, order, steps and version are the kind's; a job with a known idempotency key is answered
/// as it stands, and nothing is queued.
///
/// # Errors
/// When the input is of another platform than the scope, or the store failed.
pub async fn enqueue<K: JobKind>(
    cx: &Context,
    scope: &impl Covers<<K::Input as JobInput>::Owner>,
    uow: &mut dyn UnitOfWork,
    input: &K::Input,
) -> Result<Stored<Job>> {
    enqueue_child::<K>(cx, scope, uow, input, None).await
}

/// As [`enqueue`], for a job that queues another one.
///
/// # Errors
/// As [`enqueue`].
pub async fn enqueue_child<K: JobKind>(
    cx: &Context,
    scope: &impl Covers<<K::Input as JobInput>::Owner>,
    uow: &mut dyn UnitOfWork,
    input: &K::Input,
    parent: Option<&JobId>,
) -> Result<Stored<Job>> {
    if let Some(covered) = scope.covered_platform()
        && input.platform_id() != Some(covered)
    {
        let what = format!(
            "a job {} of another platform was about to be queued",
            K::NAME
        );
        return Err(Error::Internal(what));
    }
    if let Some(key) = input.idempotency_key() {
        let query = JobQuery::IdempotencyKey(key);
        if let Some(job) = unowned::<Job>(uow).first(&query).await? {
            return Ok(job);
        }
    }
    let now = uow.now().await?;
    let mut lane = lane_of(uow, &input.lane()).await?;
    let position = match K::PLACE {
        LanePlace::Front => lane.front_position(),
        LanePlace::Tail | LanePlace::AsNew => lane.tail_position(),
    };
    let mut job = queued::<K>(cx, input, position, now)?;
    job.parent_job_id = parent.cloned();
    let created = creation_of(cx, &job);
    let stored = match unaudited::insert(uow, job).await {
        // The same creation was faster: run again, its job is the answer.
        Err(Error::Store(StoreError::Conflict {
            index: "idempotency_key",
            ..
        })) => return Err(StoreError::retry("the job was queued elsewhere").into()),
        outcome => outcome?,
    };
    unaudited::insert(uow, created).await?;
    refresh_lane(uow, lane).await?;
    Ok(stored)
}

/// The job as it stands right after its creation, at this position of its lane.
fn queued<K: JobKind>(
    cx: &Context,
    input: &K::Input,
    position: i64,
    now: Timestamp,
) -> Result<Job> {
    Ok(Job {
        id: JobId::generate(now, cx.entropy.as_ref()),
        kind: K::NAME.to_owned(),
        definition_version: K::VERSION,
        platform_id: input.platform_id().cloned(),
        entity_id: input.entity_id().cloned(),
        environment: input.environment(),
        lane: input.lane(),
        lane_position: position,
        priority: 0,
        status: JobStatus::Queued,
        reason: None,
        failure_kind: None,
        error: None,
        input: to_json(input)?,
        output: None,
        steps: K::steps().names().into_iter().map(Step::new).collect(),
        attempts: 0,
        max_attempts: MAX_ATTEMPTS,
        lost_leases: 0,
        run_at: now,
        deadline_at: now.plus(DEADLINE),
        waiting_for: None,
        forced: false,
        replay_count: 0,
        dlq_entry_id: None,
        parent_job_id: None,
        idempotency_key: input.idempotency_key(),
        request_id: cx.request.request_id.clone(),
        trace_id: cx.request.trace_id.clone(),
        created_by: Actor::caller(cx),
        fence: 0,
        event_count: 1,
        created_at: now,
        started_at: None,
        finished_at: None,
        updated_at: now,
    })
}

/// The first entry of its history.
fn creation_of(cx: &Context, job: &Job) -> JobEvent {
    JobEvent {
        id: JobEventId::generate(job.created_at, cx.entropy.as_ref()),
        job_id: job.id.clone(),
        seq: 1,
        at: job.created_at,
        event_type: "job.created".to_owned(),
        from_status: None,
        to_status: JobStatus::Queued,
        step: None,
        fence: 0,
        actor: job.created_by.clone(),
        reason: None,
        request_id: Some(job.request_id.clone()).filter(|id| !id.is_empty()),
    }
}
