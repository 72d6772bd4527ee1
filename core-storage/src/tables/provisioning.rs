//! Tables of provisioning: jobs, their history, lanes, leases, holds, dead letters.

use core_domain::kernel::TextValue;
use core_domain::provisioning::{
    DlqEntry, DlqQuery, DlqStatus, HoldScope, Job, JobEvent, JobEventQuery, JobHold, JobHoldQuery,
    JobLane, JobLaneQuery, JobLease, JobLeaseQuery, JobQuery, JobStatus, LaneKey,
};

use crate::filter::Filter;
use crate::kind::{Bool, Int, Json, Kind, Opt, Text, Time};
use crate::query::Select;
use crate::table::Type;
use crate::{Only, Tabular, Value, table};

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
        steps: Json,
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
        idempotency_key: [idempotency_key],
        running: [lane] only [Only::Is("status", "RUNNING")],
    }
    index {
        [created_at],
        [platform_id, created_at],
        [status, created_at],
        [lane, status, lane_position],
        [status, run_at],
        [deadline_at],
    }
    select jobs
}

fn jobs(query: &JobQuery) -> Select {
    let jobs = Select::of(Job::TABLE);
    let with = |status: &JobStatus| Filter::eq("status", status);
    match query {
        JobQuery::Of {
            platform_id,
            status,
        } => jobs
            .only_if(platform_id.as_ref().map(|id| Filter::eq("platform_id", id)))
            .only_if(status.as_ref().map(with))
            .by_desc("created_at"),
        JobQuery::QueuedInLane(lane) => jobs
            .only(Filter::eq("lane", lane))
            .only(with(&JobStatus::Queued))
            .by("lane_position"),
        JobQuery::IdempotencyKey(key) => jobs.only(Filter::eq("idempotency_key", key)),
        JobQuery::WakeAt(now) => jobs
            .only(with(&JobStatus::Waiting))
            .only(Filter::le("run_at", *now))
            .by("run_at"),
        JobQuery::OverdueAt(now) => {
            let open = JobStatus::ALL.iter().filter(|status| !status.is_terminal());
            jobs.only(Filter::one_of("status", open))
                .only(Filter::lt("deadline_at", *now))
                .by("deadline_at")
        }
    }
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
    match query {
        JobEventQuery::After(job, seq) => Select::of(JobEvent::TABLE)
            .only(Filter::eq("job_id", job))
            .only(Filter::gt("seq", *seq))
            .by("seq"),
    }
}

table! {
    JobLane in "job_lanes" {
        lane: Text,
        running_job_id: Opt<Text>,
        head_job_id: Opt<Text>,
        head_kind: Opt<Text>,
        head_priority: Int,
        ready_at: Opt<Time>,
        not_before: Time,
        last_claimed_at: Time,
        front: Int,
        tail: Int,
    }
    index { [ready_at] }
    select job_lanes
}

fn job_lanes(query: &JobLaneQuery) -> Select {
    match query {
        JobLaneQuery::ReadyAt(now, kinds) => Select::of(JobLane::TABLE)
            .only(Filter::le("ready_at", *now))
            .only(Filter::one_of("head_kind", kinds))
            .by("head_priority")
            .by("last_claimed_at"),
    }
}

table! {
    JobLease in "job_leases" {
        job_id: Text,
        fence: Int,
        owner: Text,
        lease_until: Time,
    }
    index { [lease_until] }
    select job_leases
}

fn job_leases(query: &JobLeaseQuery) -> Select {
    let leases = Select::of(JobLease::TABLE).by("lease_until");
    match query {
        JobLeaseQuery::ExpiredAt(now) => leases.only(Filter::lt("lease_until", *now)),
        JobLeaseQuery::All => leases,
    }
}

/// What a hold is on, as one text: `all`, `kind:` and a kind, `lane:` and a lane.
enum Scope {}

const ALL: &str = "all";
const KIND: &str = "kind:";
const LANE: &str = "lane:";

fn lane_scope(lane: &LaneKey) -> String {
    format!("{LANE}{}", lane.as_str())
}

impl Kind<HoldScope> for Scope {
    const TYPE: Type = Type::Text;

    fn put(scope: &HoldScope) -> Value {
        match scope {
            HoldScope::Kind(kind) => Value::text(&format!("{KIND}{kind}")),
            HoldScope::Lane(lane) => Value::text(&lane_scope(lane)),
            // The enum may grow; what is not known here holds everything rather than nothing.
            _ => Value::text(ALL),
        }
    }

    fn take(value: Value) -> Option<HoldScope> {
        let text = value.as_text()?;
        if text == ALL {
            return Some(HoldScope::All);
        }
        if let Some(kind) = text.strip_prefix(KIND) {
            return Some(HoldScope::Kind(kind.to_owned()));
        }
        LaneKey::from_text(text.strip_prefix(LANE)?).map(HoldScope::Lane)
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
    index { [scope, created_at] }
    select job_holds
}

fn job_holds(query: &JobHoldQuery) -> Select {
    let holds = Select::of(JobHold::TABLE).by("created_at");
    match query {
        JobHoldQuery::OnLane(lane) => holds.only(Filter::eq("scope", &lane_scope(lane))),
        JobHoldQuery::Wide => holds.only(Filter::Or(vec![
            Filter::eq("scope", ALL),
            Filter::Prefix("scope", KIND.to_owned()),
        ])),
    }
}

table! {
    DlqEntry in "dlq_entries" {
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
    unique { open: [job_id] only [Only::OneOf("status", &["PENDING", "REPLAYED"])] }
    index { [created_at], [status, created_at], [job_id] }
    select dlq_entries
}

fn dlq_entries(query: &DlqQuery) -> Select {
    let entries = Select::of(DlqEntry::TABLE).by_desc("created_at");
    match query {
        DlqQuery::WithStatus(status) => {
            entries.only_if(status.as_ref().map(|status| Filter::eq("status", status)))
        }
        DlqQuery::OpenOf(job) => {
            let open = DlqStatus::ALL.iter().filter(|status| status.is_open());
            entries
                .only(Filter::eq("job_id", job))
                .only(Filter::one_of("status", open))
        }
    }
}
