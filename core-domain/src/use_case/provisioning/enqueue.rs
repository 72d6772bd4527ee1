//! Queueing a job, in the unit of work of what causes it.

use serde_json::Value;

use super::carry::{lane_of, refresh_lane};
use crate::kernel::{
    Context, EntityId, Environment, Error, JobEventId, JobId, PlatformId, Result, Timestamp,
};
use crate::port::{StoreError, Stored, UnitOfWork};
use crate::provisioning::{
    Actor, DEADLINE, Job, JobEvent, JobQuery, JobStatus, LaneKey, MAX_ATTEMPTS, Step,
};

/// A job to be queued.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    /// What it does; names a [`crate::provisioning::JobKind`].
    pub kind: &'static str,
    /// The version of the kind's list of steps.
    pub definition_version: i64,
    /// Names of its steps, in order, each once.
    pub steps: Vec<String>,
    /// The platform it works for.
    pub platform_id: Option<PlatformId>,
    /// The entity it works for.
    pub entity_id: Option<EntityId>,
    /// The environment it works in.
    pub environment: Option<Environment>,
    /// What it is asked to do; no secrets.
    pub input: Value,
    /// The lane it runs in.
    pub lane: LaneKey,
    /// Whether it goes before everything queued in its lane.
    pub front: bool,
    /// What makes a second creation the same job, if anything does.
    pub idempotency_key: Option<String>,
    /// The job that queues it, if one does.
    pub parent_job_id: Option<JobId>,
}

impl NewJob {
    /// A job for a platform, at the tail of the platform's lane.
    #[must_use]
    pub fn for_platform(kind: &'static str, platform: PlatformId, steps: &[&str]) -> Self {
        Self {
            kind,
            definition_version: 1,
            steps: steps.iter().map(|s| (*s).to_owned()).collect(),
            lane: LaneKey::platform(&platform),
            platform_id: Some(platform),
            entity_id: None,
            environment: None,
            input: Value::Object(serde_json::Map::new()),
            front: false,
            idempotency_key: None,
            parent_job_id: None,
        }
    }
}

/// Queues a job. The caller of the use case behind it has been asked for permission; nothing is checked here. A job
/// with a known idempotency key is answered as it stands, and nothing is queued.
///
/// Wake the workers after the commit.
///
/// # Errors
/// When two steps have one name, or the store failed.
pub async fn enqueue(cx: &Context, uow: &mut dyn UnitOfWork, new: NewJob) -> Result<Stored<Job>> {
    if let Some(key) = &new.idempotency_key {
        let query = JobQuery::IdempotencyKey(key.clone());
        if let Some(job) = uow.jobs().first(&query).await? {
            return Ok(job);
        }
    }
    if has_duplicates(&new.steps) {
        return Err(Error::Internal(format!(
            "{}: a step name occurs twice",
            new.kind
        )));
    }
    let now = uow.now().await?;
    let mut lane = lane_of(uow, &new.lane).await?;
    let place = if new.front {
        lane.first_place()
    } else {
        lane.next_place()
    };
    let job = queued(cx, new, place, now);
    let created = creation_of(cx, &job);
    let stored = match uow.jobs().insert(job).await {
        // The same creation was faster: run again, its job is the answer.
        Err(StoreError::Conflict {
            index: "idempotency_key",
            ..
        }) => return Err(StoreError::Retry("the job was queued elsewhere".into()).into()),
        outcome => outcome?,
    };
    uow.job_events().insert(created).await?;
    refresh_lane(uow, lane).await?;
    Ok(stored)
}

/// The job as it stands right after its creation, at this place of its lane.
fn queued(cx: &Context, new: NewJob, place: i64, now: Timestamp) -> Job {
    Job {
        id: JobId::generate(now, cx.entropy.as_ref()),
        kind: new.kind.to_owned(),
        definition_version: new.definition_version,
        platform_id: new.platform_id,
        entity_id: new.entity_id,
        environment: new.environment,
        lane: new.lane,
        lane_position: place,
        priority: 0,
        status: JobStatus::Queued,
        reason: None,
        failure_kind: None,
        error: None,
        input: new.input,
        output: None,
        steps: new.steps.into_iter().map(Step::new).collect(),
        attempts: 0,
        max_attempts: MAX_ATTEMPTS,
        lost_leases: 0,
        run_at: now,
        deadline_at: now.plus(DEADLINE),
        waiting_for: None,
        forced: false,
        replay_count: 0,
        dlq_entry_id: None,
        parent_job_id: new.parent_job_id,
        idempotency_key: new.idempotency_key,
        request_id: cx.request.request_id.clone(),
        trace_id: cx.request.trace_id.clone(),
        created_by: Actor::caller(cx),
        fence: 0,
        event_count: 1,
        created_at: now,
        started_at: None,
        finished_at: None,
        updated_at: now,
    }
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

fn has_duplicates(names: &[String]) -> bool {
    names
        .iter()
        .enumerate()
        .any(|(i, name)| names[..i].contains(name))
}
