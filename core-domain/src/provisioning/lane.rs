//! Lanes. Workers claim lanes: at most one job of a lane runs at a time, and its jobs run in order of their positions.

use serde::{Deserialize, Serialize};

use super::{HoldSource, Job, JobStatus, LaneKey, LanePlace};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{count, few};
use crate::kernel::{JobId, Timestamp, record, text_enum};

/// Maximum number of queued jobs that a lane caches.
const MAX_CACHED_JOBS: usize = 4;

text_enum! {
    /// Whether the first queued job of a lane can be claimed.
    pub enum LaneState {
        /// The lane can be claimed now.
        Ready = "READY",
        /// The lane can be claimed from `ready_at` on.
        Scheduled = "LATER",
        /// The lane cannot be claimed: no job is queued, a job runs, or the first queued job is held.
        Idle = "IDLE",
    }
}

/// The data of a queued job that its lane caches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct QueuedJob {
    /// The id of the queued job.
    pub job_id: JobId,
    /// The kind of the job. A worker claims only jobs of kinds that it has registered.
    pub kind: String,
    /// The priority of the job. Among lanes, lower numbers are claimed first.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub priority: i64,
    /// The position of the job in the lane.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub position: i64,
    /// The earliest time at which the job can be claimed.
    pub run_at: Timestamp,
}

impl From<&Job> for QueuedJob {
    fn from(job: &Job) -> Self {
        Self {
            job_id: job.id.clone(),
            kind: job.kind.clone(),
            priority: job.priority,
            position: job.lane_position,
            run_at: job.run_at,
        }
    }
}

/// A lane. It is written whenever one of its jobs enters or leaves `QUEUED` or `RUNNING`. So a check of its version
/// also detects concurrent changes of these jobs.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct JobLane {
    /// The key of the lane.
    pub lane: LaneKey,
    /// The id of the running job; `None` if no job of the lane runs.
    pub running_job_id: Option<JobId>,
    /// Whether the first queued job can be claimed.
    pub state: LaneState,
    /// The time from which the first queued job can be claimed. Has no meaning while the lane is idle.
    pub ready_at: Timestamp,
    /// The earliest time of the next claim. Until then, the holder of a job that was taken away may still be working.
    pub not_before: Timestamp,
    /// The time of the latest claim. Among ready lanes of equal priority, the one with the earliest time is claimed
    /// first.
    pub last_claimed_at: Timestamp,
    /// The lowest position assigned to a job of the lane.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub front: i64,
    /// The highest position assigned to a job of the lane.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub tail: i64,
    /// The number of queued jobs, including those that are not cached.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub queued: i64,
    /// The first queued jobs, in order of position. The cache makes the next head available without a query.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub cached_jobs: Vec<QueuedJob>,
    /// The sources of the holds on this lane. Every change of a hold on the lane updates this list, so that a unit of
    /// work need not read the holds.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub held_by: Vec<HoldSource>,
}

impl JobLane {
    /// Creates a lane without jobs.
    #[must_use]
    pub const fn new(lane: LaneKey) -> Self {
        Self {
            lane,
            running_job_id: None,
            state: LaneState::Idle,
            ready_at: Timestamp::EPOCH,
            not_before: Timestamp::EPOCH,
            last_claimed_at: Timestamp::EPOCH,
            front: 0,
            tail: 0,
            queued: 0,
            cached_jobs: Vec::new(),
            held_by: Vec::new(),
        }
    }

    /// Returns the queued job to run next, if any.
    #[must_use]
    pub fn head(&self) -> Option<&QueuedJob> {
        self.cached_jobs.first()
    }

    /// Returns the kind of the head.
    #[must_use]
    pub fn head_kind(&self) -> Option<String> {
        self.head().map(|head| head.kind.clone())
    }

    /// Returns the priority of the lane, which is that of its head; 0 if no job is queued.
    #[must_use]
    pub fn head_priority(&self) -> i64 {
        self.head().map_or(0, |head| head.priority)
    }

    /// Assigns a position after all others.
    pub const fn tail_position(&mut self) -> i64 {
        self.tail += 1;
        self.tail
    }

    /// Assigns a position before all others.
    pub const fn front_position(&mut self) -> i64 {
        self.front -= 1;
        self.front
    }

    /// Assigns a position at this place.
    pub const fn position_at(&mut self, place: LanePlace) -> i64 {
        match place {
            LanePlace::Front => self.front_position(),
            LanePlace::Tail | LanePlace::KindDefault => self.tail_position(),
        }
    }

    /// Updates the queued and running jobs after a transition or the creation of a job. `before` is `None` for a
    /// creation. Call [`JobLane::update_state`] afterwards to update the state.
    pub fn update_job(&mut self, before: Option<&Job>, after: &Job, now: Timestamp) {
        let was_queued = before.is_some_and(|job| job.status == JobStatus::Queued);
        if was_queued {
            self.queued -= 1;
            self.cached_jobs.retain(|queued| queued.job_id != after.id);
        }
        if after.status == JobStatus::Queued {
            self.add(after.into());
        }
        if after.status == JobStatus::Running {
            if self.running_job_id.as_ref() != Some(&after.id) {
                self.last_claimed_at = now;
            }
            self.running_job_id = Some(after.id.clone());
        } else if self.running_job_id.as_ref() == Some(&after.id) {
            self.running_job_id = None;
        }
    }

    fn add(&mut self, job: QueuedJob) {
        let all_known = !self.has_uncached_jobs();
        let at = self
            .cached_jobs
            .partition_point(|queued| queued.position < job.position);
        self.queued += 1;
        // A job after the last cached one must not be cached: there may be uncached jobs between the two.
        if at < self.cached_jobs.len() || all_known {
            self.cached_jobs.insert(at, job);
            self.cached_jobs.truncate(MAX_CACHED_JOBS);
        }
    }

    /// Returns whether the lane has queued jobs that are not cached.
    fn has_uncached_jobs(&self) -> bool {
        usize::try_from(self.queued).is_ok_and(|queued| queued > self.cached_jobs.len())
    }

    /// Returns whether the cache must be refilled with [`JobLane::refill`] before one of the jobs moves.
    #[must_use]
    pub fn needs_refill(&self) -> bool {
        self.cached_jobs.len() <= 1 && self.has_uncached_jobs()
    }

    /// Returns the number of queued jobs to pass to [`JobLane::refill`].
    #[must_use]
    pub const fn cache_size() -> u32 {
        MAX_CACHED_JOBS as u32
    }

    /// Replaces the cache with the first [`JobLane::cache_size`] queued jobs, in order of position.
    pub fn refill(&mut self, first: impl IntoIterator<Item = QueuedJob>) {
        self.cached_jobs = first.into_iter().take(MAX_CACHED_JOBS).collect();
        let known = i64::try_from(self.cached_jobs.len()).unwrap_or(i64::MAX);
        // If there are fewer jobs than requested, these are all queued jobs.
        if self.cached_jobs.len() < MAX_CACHED_JOBS || self.queued < known {
            self.queued = known;
        }
    }

    /// Returns whether a hold on the lane prevents its head from being claimed.
    #[must_use]
    pub fn is_held(&self) -> bool {
        let holds_head = |head: &QueuedJob| self.held_by.iter().any(|by| by.holds(&head.kind));
        self.head().is_some_and(holds_head)
    }

    /// Updates the state: whether and from when the head can be claimed.
    pub fn update_state(&mut self, now: Timestamp) {
        let free = self.running_job_id.is_none() && !self.is_held();
        let Some(run_at) = self.head().filter(|_| free).map(|head| head.run_at) else {
            self.state = LaneState::Idle;
            return;
        };
        self.ready_at = run_at.max(self.not_before);
        self.state = if self.ready_at <= now {
            LaneState::Ready
        } else {
            LaneState::Scheduled
        };
    }
}

record! {
    JobLane as "job lane" by lane, asked JobLaneQuery;
}

/// Queries for lanes.
#[derive(Clone, Debug, PartialEq)]
pub enum JobLaneQuery {
    /// The lanes that can be claimed, ordered by priority, then by the time of the latest claim, earliest first.
    Ready,
    /// The lanes that can be claimed and whose head is of this kind, in the order of `Ready`.
    ReadyOfKind(String),
    /// The lanes in the state `LATER` whose `ready_at` is at or before this time, earliest first.
    DueAt(Timestamp),
    /// The lanes with these keys.
    Of(Vec<LaneKey>),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::kernel::PlatformId;

    use super::*;

    const NOW: Timestamp = Timestamp::from_seconds(1_000);

    fn lane() -> JobLane {
        JobLane::new(LaneKey::platform(&PlatformId::parse("p").unwrap()))
    }

    fn queued_job(position: i64) -> QueuedJob {
        QueuedJob {
            job_id: JobId::parse(&format!("j{position}")).unwrap(),
            kind: "work".to_owned(),
            priority: 0,
            position,
            run_at: NOW,
        }
    }

    /// A change to the queue of a lane.
    #[derive(Clone, Copy, Debug)]
    enum QueueEvent {
        Tail,
        Front,
        /// Removes the job at this index from the queue.
        Leaves(usize),
    }

    fn queue_events() -> impl Strategy<Value = QueueEvent> {
        prop_oneof![
            4 => Just(QueueEvent::Tail),
            1 => Just(QueueEvent::Front),
            4 => (0_usize..3).prop_map(QueueEvent::Leaves),
            2 => (0_usize..40).prop_map(QueueEvent::Leaves),
        ]
    }

    /// Compares the lane after each event with the complete queue. The lane reads the queue only when it must refill
    /// its cache.
    fn assert_lane_knows_the_first_jobs(events: Vec<QueueEvent>) {
        let (mut lane, mut queue) = (lane(), Vec::<QueuedJob>::new());
        for event in events {
            if lane.needs_refill() {
                lane.refill(queue.iter().cloned());
            }
            match event {
                QueueEvent::Tail => {
                    let job = queued_job(lane.tail_position());
                    queue.push(job.clone());
                    lane.add(job);
                }
                QueueEvent::Front => {
                    let job = queued_job(lane.front_position());
                    queue.insert(0, job.clone());
                    lane.add(job);
                }
                QueueEvent::Leaves(at) if at < queue.len() => {
                    let job = queue.remove(at);
                    lane.queued -= 1;
                    lane.cached_jobs.retain(|queued| *queued != job);
                }
                QueueEvent::Leaves(_) => {}
            }
            assert_eq!(lane.queued, i64::try_from(queue.len()).unwrap());
            assert!(lane.cached_jobs.len() <= MAX_CACHED_JOBS);
            assert_eq!(&lane.cached_jobs[..], &queue[..lane.cached_jobs.len()]);
            assert_eq!(lane.head(), queue.first());
        }
    }

    #[test]
    fn lane_cache_stays_in_order_after_a_cached_job_leaves() {
        let mut events = vec![QueueEvent::Tail; 9];
        events.extend([QueueEvent::Leaves(0), QueueEvent::Tail]);
        assert_lane_knows_the_first_jobs(events);
    }

    proptest! {
        #[test]
        fn lane_cache_holds_the_first_queued_jobs(
            events in prop::collection::vec(queue_events(), 1..200),
        ) {
            assert_lane_knows_the_first_jobs(events);
        }

        #[test]
        fn lane_is_ready_exactly_if_its_head_is_due_and_neither_held_nor_blocked(
            runs: bool,
            held_by: Option<HoldSource>,
            some: bool,
            run_at in 0_i64..2_000,
            not_before in 0_i64..2_000,
        ) {
            let mut lane = lane();
            lane.running_job_id = runs.then(|| queued_job(7).job_id);
            lane.not_before = Timestamp::from_seconds(not_before);
            if some {
                let run_at = Timestamp::from_seconds(run_at);
                lane.add(QueuedJob { run_at, ..queued_job(1) });
            }
            lane.held_by.extend(held_by);
            lane.update_state(NOW);
            let free = some && !runs && held_by.is_none();
            let due = run_at.max(not_before) <= 1_000;
            let expected = match (free, due) {
                (false, _) => LaneState::Idle,
                (true, true) => LaneState::Ready,
                (true, false) => LaneState::Scheduled,
            };
            prop_assert_eq!(lane.state, expected);
        }
    }

    #[test]
    fn lane_without_cached_jobs_requests_a_refill() {
        let mut lane = JobLane {
            queued: 3,
            ..lane()
        };
        assert!(lane.needs_refill());
        lane.refill((1..=2).map(queued_job));
        assert_eq!((lane.queued, lane.cached_jobs.len()), (2, 2));
        assert!(!lane.needs_refill());
    }
}
