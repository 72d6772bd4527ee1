//! Lanes: one running job each, first in, first out. The lane is what workers claim.

use super::{Job, JobStatus, LaneKey};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{JobId, Timestamp, record};

/// A lane.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct JobLane {
    /// Its name.
    pub lane: LaneKey,
    /// The job that runs, if any.
    pub running_job_id: Option<JobId>,
    /// The queued job to run next, if any.
    pub head_job_id: Option<JobId>,
    /// What kind it is; a worker claims only kinds it knows.
    pub head_kind: Option<String>,
    /// Lower goes first among lanes.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub head_priority: i64,
    /// When the head may be claimed; `None` when it cannot: none queued, one running, or held.
    pub ready_at: Option<Timestamp>,
    /// No claim before this instant: an earlier holder may not have heard yet that its job was taken away.
    pub not_before: Timestamp,
    /// When a job of it was last claimed; the longest unserved lane goes first.
    pub last_claimed_at: Timestamp,
    /// The lowest position given to a job of it.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub front: i64,
    /// The highest position given to a job of it.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub tail: i64,
}

impl JobLane {
    /// A lane without jobs.
    #[must_use]
    pub const fn new(lane: LaneKey) -> Self {
        Self {
            lane,
            running_job_id: None,
            head_job_id: None,
            head_kind: None,
            head_priority: 0,
            ready_at: None,
            not_before: Timestamp::EPOCH,
            last_claimed_at: Timestamp::EPOCH,
            front: 0,
            tail: 0,
        }
    }

    /// A position behind all others.
    pub const fn tail_position(&mut self) -> i64 {
        self.tail += 1;
        self.tail
    }

    /// A position before all others.
    pub const fn front_position(&mut self) -> i64 {
        self.front -= 1;
        self.front
    }

    /// Follows a move of one of its jobs: who runs. The head follows with [`JobLane::set_head`].
    pub fn follow(&mut self, job: &Job, now: Timestamp) {
        if job.status == JobStatus::Running {
            if self.running_job_id.as_ref() != Some(&job.id) {
                self.last_claimed_at = now;
            }
            self.running_job_id = Some(job.id.clone());
        } else if self.running_job_id.as_ref() == Some(&job.id) {
            self.running_job_id = None;
        }
    }

    /// Takes the job to run next, and whether something holds it.
    pub fn set_head(&mut self, head: Option<&Job>, held: bool) {
        self.head_job_id = head.map(|job| job.id.clone());
        self.head_kind = head.map(|job| job.kind.clone());
        self.head_priority = head.map_or(0, |job| job.priority);
        let claimable = self.running_job_id.is_none() && !held;
        self.ready_at = head
            .filter(|_| claimable)
            .map(|job| job.run_at.max(self.not_before));
    }
}

record! {
    JobLane as "job lane" by lane, asked JobLaneQuery;
}

/// Questions about lanes.
#[derive(Clone, Debug, PartialEq)]
pub enum JobLaneQuery {
    /// Those whose head is of one of these kinds and can be claimed at this instant: by priority, then the longest
    /// unserved first.
    ReadyAt(Timestamp, Vec<String>),
}
