//! Creating jobs in the caller's unit of work.

use std::collections::{BTreeMap, BTreeSet};

use super::kind::{JobInput, JobKind, split_name};
use super::lane::{Lanes, notify_ready};
use super::step_error::to_json;
use crate::access::{Covers, ensure_below, unaudited, unowned_records};
use crate::kernel::{Context, Error, JobEventId, JobId, Result, Stored, Timestamp};
use crate::port::UnitOfWork;
use crate::provisioning::{
    Actor, Job, JobEvent, JobKey, JobLane, JobQuery, JobStatus, LanePlace, MAX_ATTEMPTS, Step,
};

/// Creates and queues a job. The kind defines its steps, version and place; the input defines its lane. Returns the
/// existing job if one of the same kind and platform has the same idempotency key.
///
/// # Errors
/// - `LIMIT_REACHED` if the platform has the maximum number of queued jobs and the caller is not an operator.
/// - [`Error::Internal`] if the scope does not cover the platform of the input.
pub async fn enqueue<K: JobKind>(
    cx: &Context,
    scope: &impl Covers<<K::Input as JobInput>::Owner>,
    uow: &mut dyn UnitOfWork,
    input: &K::Input,
) -> Result<Stored<Job>> {
    enqueue_child::<K>(cx, scope, uow, input, None).await
}

/// Works like [`enqueue`], for a job that `parent` queues.
///
/// # Errors
/// Those of [`enqueue`].
pub async fn enqueue_child<K: JobKind>(
    cx: &Context,
    scope: &impl Covers<<K::Input as JobInput>::Owner>,
    uow: &mut dyn UnitOfWork,
    input: &K::Input,
    parent: Option<&JobId>,
) -> Result<Stored<Job>> {
    let queued = enqueue_all::<K>(cx, scope, uow, std::slice::from_ref(input), parent).await?;
    let queued = queued.into_iter().next();
    queued.ok_or_else(|| Error::Internal(format!("a job {} was not queued", K::NAME)))
}

/// Works like [`enqueue`], for many jobs of a kind. The number of statements does not depend on the number of jobs.
/// Jobs of the same lane keep the order of their inputs. Returns one job for each input.
///
/// # Errors
/// Those of [`enqueue`]; the caller must roll back then.
pub async fn enqueue_many<K: JobKind>(
    cx: &Context,
    scope: &impl Covers<<K::Input as JobInput>::Owner>,
    uow: &mut dyn UnitOfWork,
    inputs: &[K::Input],
) -> Result<Vec<Stored<Job>>> {
    enqueue_all::<K>(cx, scope, uow, inputs, None).await
}

async fn enqueue_all<K: JobKind>(
    cx: &Context,
    scope: &impl Covers<<K::Input as JobInput>::Owner>,
    uow: &mut dyn UnitOfWork,
    inputs: &[K::Input],
    parent: Option<&JobId>,
) -> Result<Vec<Stored<Job>>> {
    for input in inputs {
        check_scope::<K>(scope, input)?;
    }
    let mut all = find_by_keys::<K>(uow, inputs).await?;
    let key_of = |(at, job): (usize, &Stored<Job>)| {
        let key = job.idempotency_key.as_ref()?.key();
        Some((JobKey::new(&job.kind, job.platform_id.as_ref(), key), at))
    };
    let mut by_key: BTreeMap<JobKey, usize> = all.iter().enumerate().filter_map(key_of).collect();
    let (mut new, mut answers) = (Vec::new(), Vec::with_capacity(inputs.len()));
    for input in inputs {
        let next = all.len() + new.len();
        let at = match key_of_input::<K>(input) {
            Some(key) => *by_key.entry(key).or_insert(next),
            None => next,
        };
        if at == next {
            new.push(input);
        }
        answers.push(at);
    }
    all.extend(insert::<K>(cx, uow, &new, parent).await?);
    Ok(answers.into_iter().map(|at| all[at].clone()).collect())
}

fn check_scope<K: JobKind>(
    scope: &impl Covers<<K::Input as JobInput>::Owner>,
    input: &K::Input,
) -> Result<()> {
    match scope.covered_platform() {
        Some(covered) if input.platform_id() != Some(covered) => Err(Error::Internal(format!(
            "cannot queue a job {} for a platform outside the scope",
            K::NAME
        ))),
        _ => Ok(()),
    }
}

fn key_of_input<K: JobKind>(input: &K::Input) -> Option<JobKey> {
    let key = input.idempotency_key()?;
    Some(JobKey::new(K::NAME, input.platform_id(), &key))
}

/// Returns the jobs with the keys of these inputs. Includes jobs of other kinds whose keys have no scope.
async fn find_by_keys<K: JobKind>(
    uow: &mut dyn UnitOfWork,
    inputs: &[K::Input],
) -> Result<Vec<Stored<Job>>> {
    let keys = inputs.iter().filter_map(key_of_input::<K>);
    let keys: Vec<String> = keys
        .flat_map(|key| [key.key().to_owned(), key.as_str().to_owned()])
        .collect();
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let limit = u32::try_from(keys.len()).unwrap_or(u32::MAX);
    let known = JobQuery::IdempotencyKeys(keys);
    unowned_records::<Job>(uow).list(&known, limit).await
}

/// Creates jobs for these inputs and inserts them with [`insert_jobs`].
async fn insert<K: JobKind>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    inputs: &[&K::Input],
    parent: Option<&JobId>,
) -> Result<Vec<Stored<Job>>> {
    if inputs.is_empty() {
        return Ok(Vec::new());
    }
    let now = uow.now().await?;
    let mut jobs = Vec::with_capacity(inputs.len());
    for input in inputs {
        let mut job = new_job::<K>(cx, input, now)?;
        job.parent_job_id = parent.cloned();
        jobs.push(job);
    }
    insert_jobs(cx, uow, jobs, K::PLACE, now).await
}

/// Inserts new jobs with their first events at this place in their lanes, and assigns their positions. Locks the lanes,
/// and writes jobs, events and lanes last, so that a remote store can send them together with the commit. If a
/// concurrent unit creates the same job, this unit runs again and finds it.
pub(super) async fn insert_jobs(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    mut jobs: Vec<Job>,
    place: LanePlace,
    now: Timestamp,
) -> Result<Vec<Stored<Job>>> {
    let mut lanes = Lanes::load_locked(uow, jobs.iter().map(|job| job.lane.clone())).await?;
    for job in &mut jobs {
        if let Some(lane) = lanes.get_mut(&job.lane) {
            if place == LanePlace::Tail && job.parent_job_id.is_none() {
                ensure_room_in(cx, lane)?;
            }
            job.lane_position = lane.position_at(place);
            lane.update_job(None, job, now);
        }
    }
    let created = jobs.iter().map(|job| creation_of(cx, job)).collect();
    let ready = lanes.store(uow, now).await?;
    notify_ready(uow, &ready);
    let stored = unaudited::append_stored(uow, jobs).await?;
    unaudited::append_many(uow, created).await?;
    Ok(stored)
}

/// Checks that the lane can take one more job at its tail. Operators and services are exempt. Uses the lane's count of
/// queued jobs, so that no query is necessary.
fn ensure_room_in(cx: &Context, lane: &JobLane) -> Result<()> {
    if cx.caller.is_operator() {
        return Ok(());
    }
    let queued = u64::try_from(lane.queued).unwrap_or(0);
    let message =
        "The platform has the maximum number of queued jobs. Try again when some have ended.";
    ensure_below(queued, cx.limits.jobs_per_platform, message)
}

/// Returns a new job without a position in its lane.
fn new_job<K: JobKind>(cx: &Context, input: &K::Input, now: Timestamp) -> Result<Job> {
    if let Some(owner) = input.lane().owner()
        && input.platform_id() != Some(&owner)
    {
        return Err(Error::Internal(format!(
            "a job {} in a lane of a platform does not work for the platform",
            K::NAME
        )));
    }
    Ok(Job {
        id: JobId::generate(now, cx.entropy.as_ref()),
        kind: K::NAME.to_owned(),
        definition_version: K::VERSION,
        platform_id: input.platform_id().cloned(),
        entity_id: input.entity_id().cloned(),
        environment: input.environment(),
        lane: input.lane(),
        lane_position: 0,
        priority: 0,
        status: JobStatus::Queued,
        reason: None,
        failure_kind: None,
        error: None,
        input: to_json(input)?,
        output: None,
        steps: steps_of::<K>(input)?,
        attempts: 0,
        max_attempts: MAX_ATTEMPTS,
        lost_leases: 0,
        run_at: now,
        deadline_at: now.plus(K::DEADLINE),
        waiting_for: None,
        forced: false,
        replay_count: 0,
        dlq_entry_id: None,
        parent_job_id: None,
        idempotency_key: key_of_input::<K>(input),
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

/// Returns the steps of a job with this input.
fn steps_of<K: JobKind>(input: &K::Input) -> Result<Vec<Step>> {
    let (steps, names) = (K::steps().names(), K::plan(input));
    let distinct: BTreeSet<&String> = names.iter().collect();
    let known = names.iter().all(|name| steps.contains(&split_name(name).0));
    if !known || distinct.len() < names.len() {
        let kind = K::NAME;
        return Err(Error::Internal(format!(
            "unknown or duplicate steps of {kind}: {names:?}"
        )));
    }
    Ok(names.into_iter().map(Step::new).collect())
}

/// Returns the first event of the job's history.
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
