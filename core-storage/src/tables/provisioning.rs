//! The tables of provisioning: jobs, job events, lanes, leases, holds, dead letters.

use core_domain::kernel::TextValue;
use core_domain::provisioning::{
    DeadLetter, DlqQuery, DlqStatus, FailureKind, HoldScope, Job, JobEvent, JobEventQuery, JobHold,
    JobHoldQuery, JobLane, JobLaneQuery, JobLease, JobLeaseQuery, JobQuery, JobStatus, LaneKey,
    LaneState, Step, TIMED_KINDS,
};

use crate::codec::{Bool, ColumnCodec, DecodeError, Int, Json, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::table::Type;
use crate::{IndexPredicate, Tabular, Value, ValueRef, table};

const QUEUED: IndexPredicate = IndexPredicate::Is("status", "QUEUED");
const WAITING: IndexPredicate = IndexPredicate::Is("status", "WAITING");
const COMPLETED: IndexPredicate = IndexPredicate::Is("status", "COMPLETED");
const TIMED: IndexPredicate = IndexPredicate::OneOf("kind", TIMED_KINDS);
const READY: IndexPredicate = IndexPredicate::Is("state", "READY");

table! {
    Job in "jobs" {
        id: Text,
        kind: Text,
        definition_version: Int,
        platform_id: Opt<Text>,
        entity_id: Opt<Text>,
        environment: Opt<Text>,
        lane: Text,
        lane_position: Int,
        priority: Int,
        status: Text,
        reason: Opt<Text>,
        failure_kind: Opt<Text>,
        error: Opt<Json>,
        input: Json,
        output: Opt<Json>,
        steps: Steps,
        attempts: Int,
        max_attempts: Int,
        lost_leases: Int,
        run_at: Time,
        deadline_at: Time,
        waiting_for: Opt<Text>,
        forced: Bool,
        replay_count: Int,
        dlq_entry_id: Opt<Text>,
        parent_job_id: Opt<Text>,
        idempotency_key: Opt<Text>,
        request_id: Text,
        trace_id: Opt<Text>,
        created_by: Json,
        fence: Int,
        event_count: Int,
        created_at: Time,
        started_at: Opt<Time>,
        finished_at: Opt<Time>,
        updated_at: Time,
    }
    unique {
        idempotency_key: [idempotency_key] where [IndexPredicate::NotNull("idempotency_key")],
        running: [lane] where [IndexPredicate::Is("status", "RUNNING")],
    }
    index {
        [created_at],
        [platform_id, created_at],
        [status, created_at],
        [lane, lane_position] where [QUEUED],
        [run_at] where [WAITING],
        [lane] where [WAITING],
        [deadline_at] where [IndexPredicate::OneOf("status", &["QUEUED", "RUNNING", "WAITING"])],
        // For statistics of run times. It covers completed jobs of few kinds, so other jobs never write to it. Its
        // columns change only when a job completes, which changes other indexes as well, so no other change becomes
        // more expensive. (Postgres updates a row in place if no indexed column changes.)
        [kind, created_at] where [COMPLETED, TIMED],
        [parent_job_id] where [IndexPredicate::NotNull("parent_job_id")],
    }
    select jobs
}

/// Encodes the steps of a job as JSON, including the first observations that their serialized form omits.
enum Steps {}

impl ColumnCodec<Vec<Step>> for Steps {
    const TYPE: Type = Type::Json;

    fn encode(steps: &Vec<Step>) -> Value {
        if steps.iter().all(|step| step.first_look.is_none()) {
            return Json::encode(steps);
        }
        let complete: Vec<serde_json::Value> = steps.iter().map(complete_json).collect();
        Json::encode(&complete)
    }

    fn decode(value: ValueRef<'_>) -> Result<Vec<Step>, DecodeError> {
        Json::decode(value)
    }
}

fn complete_json(step: &Step) -> serde_json::Value {
    // A step that cannot be serialized is a mistake in its type. It becomes `null`, which is refused when it is read
    // back.
    let mut json = serde_json::to_value(step).unwrap_or_default();
    if let Some((first_look, members)) = step.first_look.zip(json.as_object_mut()) {
        members.insert("firstLook".to_owned(), first_look.as_str().into());
    }
    json
}

fn jobs(query: &JobQuery) -> Select {
    let jobs = Select::of(Job::TABLE);
    let with = |status: &JobStatus| Filter::eq("status", status);
    match query {
        JobQuery::Of {
            platform_id,
            status,
        } => jobs
            .filter_if(platform_id.as_ref().map(|id| Filter::eq("platform_id", id)))
            .filter_if(status.as_ref().map(with))
            .order_by_desc("created_at"),
        JobQuery::QueuedInLane(lane) => jobs
            .filter(Filter::eq("lane", lane))
            .filter(with(&JobStatus::Queued))
            .order_by("lane_position"),
        JobQuery::WaitingInLanes(lanes) => jobs
            .filter(Filter::one_of("lane", lanes))
            .filter(with(&JobStatus::Waiting)),
        JobQuery::IdempotencyKeys(keys) => jobs.filter(Filter::one_of(
            "idempotency_key",
            keys.iter().map(String::as_str),
        )),
        JobQuery::OfKind(platform, kind) => jobs
            .filter(Filter::eq("platform_id", platform))
            .filter(Filter::eq("kind", kind))
            .order_by_desc("created_at"),
        JobQuery::Completed(kind) => jobs
            .filter(with(&JobStatus::Completed))
            .filter(Filter::of_index(TIMED))
            .filter(Filter::eq("kind", *kind))
            .filter(Filter::eq("forced", false))
            .order_by_desc("created_at")
            // They are samples.
            .skip_unreachable(),
        JobQuery::Unfinished(platform) => jobs
            .filter(Filter::eq("platform_id", platform))
            .filter(unfinished_status())
            .order_by("created_at"),
        JobQuery::QueuedBy {
            parent,
            platform_id,
        } => jobs
            .filter(Filter::one_of("lane", &LaneKey::of_platform(platform_id)))
            .filter(Filter::eq("parent_job_id", parent))
            .order_by_desc("created_at"),
        JobQuery::Undoing { parent, kind, lane } => jobs
            .filter(Filter::eq("lane", lane))
            .filter(Filter::eq("parent_job_id", parent))
            .filter(Filter::eq("kind", kind))
            .order_by_desc("created_at"),
        JobQuery::WakeAt(now) => jobs
            .filter(with(&JobStatus::Waiting))
            .filter(Filter::le("run_at", *now))
            .order_by("run_at")
            .skip_unreachable(),
        JobQuery::EndedBefore(instant) => jobs
            .filter(Filter::Or(vec![
                with(&JobStatus::Completed),
                with(&JobStatus::Failed).and(Filter::eq("failure_kind", &FailureKind::Cancelled)),
            ]))
            .filter(Filter::lt("created_at", *instant))
            .filter(Filter::lt("updated_at", *instant))
            .order_by("created_at"),
        JobQuery::OverdueAt(now) => jobs
            .filter(unfinished_status())
            .filter(Filter::lt("deadline_at", *now))
            .order_by("deadline_at")
            .skip_unreachable(),
    }
}

fn unfinished_status() -> Filter {
    let unfinished = JobStatus::ALL.iter().filter(|status| !status.is_terminal());
    Filter::one_of("status", unfinished)
}

table! {
    JobEvent in "job_events" {
        id: Text,
        job_id: Text,
        seq: Int,
        at: Time,
        event_type: Text,
        from_status: Opt<Text>,
        to_status: Text,
        step: Opt<Text>,
        fence: Int,
        actor: Json,
        reason: Opt<Text>,
        request_id: Opt<Text>,
    }
    unique { seq: [job_id, seq] }
    select job_events
}

fn job_events(query: &JobEventQuery) -> Select {
    let of = |job| Select::of(JobEvent::TABLE).filter(Filter::eq("job_id", job));
    match query {
        JobEventQuery::After(job, seq) => of(job).filter(Filter::gt("seq", *seq)).order_by("seq"),
        JobEventQuery::Of(job) => of(job).order_by_desc("seq"),
    }
}

table! {
    JobLane in "job_lanes" {
        lane: Text,
        running_job_id: Opt<Text>,
        state: Text,
        ready_at: Time,
        not_before: Time,
        last_claimed_at: Time,
        front: Int,
        tail: Int,
        queued: Int,
        cached_jobs: Json,
        held_by: Json,
    }
    computed {
        head_kind: Opt<Text> = JobLane::head_kind,
        head_priority: Int = JobLane::head_priority,
    }
    index {
        [head_priority, last_claimed_at] where [READY],
        [head_kind, head_priority, last_claimed_at] where [READY],
        [ready_at] where [IndexPredicate::Is("state", "LATER")],
    }
    select job_lanes
}

fn job_lanes(query: &JobLaneQuery) -> Select {
    let with = |state: LaneState| Select::of(JobLane::TABLE).filter(Filter::eq("state", &state));
    match query {
        JobLaneQuery::Ready => with(LaneState::Ready)
            .order_by("head_priority")
            .order_by("last_claimed_at"),
        JobLaneQuery::ReadyOfKind(kind) => with(LaneState::Ready)
            .filter(Filter::eq("head_kind", kind))
            .order_by("head_priority")
            .order_by("last_claimed_at"),
        JobLaneQuery::DueAt(now) => with(LaneState::Scheduled)
            .filter(Filter::le("ready_at", *now))
            .order_by("ready_at")
            .skip_unreachable(),
        JobLaneQuery::Of(lanes) => Select::of(JobLane::TABLE).filter(Filter::one_of("lane", lanes)),
    }
}

table! {
    JobLease in "job_leases" {
        job_id: Text,
        fence: Int,
        owner: Text,
        lease_until: Time,
    }
    select job_leases
}

fn job_leases(query: &JobLeaseQuery) -> Select {
    let leases = Select::of(JobLease::TABLE).order_by("lease_until");
    match query {
        JobLeaseQuery::ExpiredAt(now) => leases
            .filter(Filter::lt("lease_until", *now))
            .skip_unreachable(),
        JobLeaseQuery::All => leases,
        JobLeaseQuery::OfJobs(jobs) => leases.filter(Filter::one_of("job_id", jobs)),
    }
}

/// Encodes the scope of a hold as text: `all`, `kind:` and a kind, `lane:` and a lane.
enum Scope {}

const ALL: &str = "all";
const KIND: &str = "kind:";
const LANE: &str = "lane:";

impl ColumnCodec<HoldScope> for Scope {
    const TYPE: Type = Type::Text;

    fn encode(scope: &HoldScope) -> Value {
        match scope {
            HoldScope::Kind(kind) => Value::text(&format!("{KIND}{kind}")),
            HoldScope::Lane(lane) => Value::text(&format!("{LANE}{}", lane.as_str())),
            // The enum may grow. An unknown scope is stored as `all`, so that it holds too much rather than nothing.
            _ => Value::text(ALL),
        }
    }

    fn decode(value: ValueRef<'_>) -> Result<HoldScope, DecodeError> {
        let text = value.as_text().ok_or(DecodeError::Type(Type::Text))?;
        if text == ALL {
            return Ok(HoldScope::All);
        }
        if let Some(kind) = text.strip_prefix(KIND) {
            return Ok(HoldScope::Kind(kind.to_owned()));
        }
        let lane = text.strip_prefix(LANE).and_then(LaneKey::from_text);
        lane.map(HoldScope::Lane)
            .ok_or(DecodeError::Text("HoldScope"))
    }
}

table! {
    JobHold in "job_holds" {
        id: Text,
        scope: Scope,
        source: Text,
        reason: Opt<Text>,
        actor: Text,
        created_at: Time,
    }
    unique { source: [scope, source] }
    index { [scope, created_at], [created_at] }
    select job_holds
}

fn job_holds(query: &JobHoldQuery) -> Select {
    let holds = Select::of(JobHold::TABLE);
    match query {
        JobHoldQuery::On(scopes) => {
            let scopes = scopes.iter().map(Scope::encode).collect();
            let on = Filter::In("scope", scopes);
            holds.filter(on).order_by("created_at")
        }
        JobHoldQuery::Wide => {
            let kinds = Filter::Prefix("scope", KIND.to_owned());
            let wide = Filter::Or(vec![Filter::eq("scope", ALL), kinds]);
            holds.filter(wide).order_by("created_at")
        }
        JobHoldQuery::All => holds.order_by_desc("created_at"),
    }
}

table! {
    DeadLetter in "dlq_entries" {
        id: Text,
        job_id: Text,
        platform_id: Opt<Text>,
        kind: Text,
        environment: Opt<Text>,
        status: Text,
        failure_kind: Text,
        failed_step: Opt<Text>,
        error: Opt<Json>,
        attempts: Int,
        input: Json,
        request_id: Text,
        trace_id: Opt<Text>,
        replay_count: Int,
        replayed_at: Opt<Time>,
        replayed_by: Opt<Text>,
        resolved_at: Opt<Time>,
        created_at: Time,
        updated_at: Time,
    }
    unique { open: [job_id] where [IndexPredicate::OneOf("status", &["PENDING", "REPLAYED"])] }
    index {
        [created_at],
        [status, created_at],
        [platform_id, created_at],
        [kind, created_at],
        [job_id],
    }
    select dlq_entries
}

fn dlq_entries(query: &DlqQuery) -> Select {
    let entries = Select::of(DeadLetter::TABLE).order_by_desc("created_at");
    match query {
        DlqQuery::ClosedBefore(instant) => {
            let closed = DlqStatus::ALL.iter().filter(|status| !status.is_open());
            Select::of(DeadLetter::TABLE)
                .filter(Filter::one_of("status", closed))
                .filter(Filter::lt("created_at", *instant))
                .filter(Filter::lt("updated_at", *instant))
                .order_by("created_at")
        }
        DlqQuery::Of {
            status,
            platform_id,
            kind,
        } => entries
            .filter_if(status.as_ref().map(|status| Filter::eq("status", status)))
            .filter_if(platform_id.as_ref().map(|id| Filter::eq("platform_id", id)))
            .filter_if(kind.as_deref().map(|kind| Filter::eq("kind", kind))),
        DlqQuery::OpenOf {
            job_id,
            platform_id,
        } => {
            let open = DlqStatus::ALL.iter().filter(|status| status.is_open());
            entries
                .filter(Filter::eq("job_id", job_id))
                .filter(Filter::eq_or_null("platform_id", platform_id.as_ref()))
                .filter(Filter::one_of("status", open))
        }
    }
}
