//! Lanes: one running job each, first in, first out. The lane is what workers claim.

use serde::{Deserialize, Serialize};

use super::{HoldSource, Job, JobStatus, LanePlace};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::few;
use crate::kernel::{
    JobId, OnboardingId, PlatformId, TextValue, Timestamp, arbitrary, record, text_enum,
};

/// How many of its queued jobs a lane knows by itself.
const LOOK_AHEAD: usize = 4;

text_enum! {
    /// Whether the head of a lane can be claimed.
    pub enum LaneState {
        /// It can: the lane is in the order in which lanes are claimed.
        Ready = "READY",
        /// It can when its time has come.
        Later = "LATER",
        /// It cannot: no job is queued, one runs, or the head is held.
        Idle = "IDLE",
    }
}

/// What a lane knows of a queued job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct QueuedJob {
    /// The job.
    pub job_id: JobId,
    /// What kind it is; a worker claims only kinds it knows.
    pub kind: String,
    /// Lower goes first among lanes.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub priority: i64,
    /// Its position in the lane.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub position: i64,
    /// Not before this instant is it claimed.
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

/// A lane. Every change of which of its jobs are queued or running writes it, so that its version guards all that was
/// concluded from them.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct JobLane {
    /// Its name.
    pub lane: LaneKey,
    /// The job that runs, if any.
    pub running_job_id: Option<JobId>,
    /// Whether its head can be claimed.
    pub state: LaneState,
    /// From when on the head can be claimed; no meaning while the lane is idle.
    pub ready_at: Timestamp,
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
    /// How many jobs are queued.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub queued: i64,
    /// The first of them, in order: the head and some that follow, so that the next head is known without a query.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub next: Vec<QueuedJob>,
    /// The sources of the holds on this lane. Whatever sets or lifts one writes the lane, so that no unit has to read holds.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub held_by: Vec<HoldSource>,
}

impl JobLane {
    /// A lane without jobs.
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
            next: Vec::new(),
            held_by: Vec::new(),
        }
    }

    /// The queued job to run next, if any.
    #[must_use]
    pub fn head(&self) -> Option<&QueuedJob> {
        self.next.first()
    }

    /// The kind of the head.
    #[must_use]
    pub fn head_kind(&self) -> Option<String> {
        self.head().map(|head| head.kind.clone())
    }

    /// The priority of the lane: its head's.
    #[must_use]
    pub fn head_priority(&self) -> i64 {
        self.head().map_or(0, |head| head.priority)
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

    /// A position at this place.
    pub const fn position_at(&mut self, place: LanePlace) -> i64 {
        match place {
            LanePlace::Front => self.front_position(),
            LanePlace::Tail | LanePlace::AsNew => self.tail_position(),
        }
    }

    /// Follows a move of one of its jobs, or its creation: what is queued and who runs. The state follows with
    /// [`JobLane::settle`].
    pub fn follow(&mut self, before: Option<&Job>, after: &Job, now: Timestamp) {
        let was_queued = before.is_some_and(|job| job.status == JobStatus::Queued);
        if was_queued {
            self.queued -= 1;
            self.next.retain(|queued| queued.job_id != after.id);
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
        let all_known = !self.knows_too_few();
        let at = self
            .next
            .partition_point(|queued| queued.position < job.position);
        self.queued += 1;
        // Behind the last one known there may be others that are not.
        if at < self.next.len() || all_known {
            self.next.insert(at, job);
            self.next.truncate(LOOK_AHEAD);
        }
    }

    /// Tells whether jobs are queued that it does not know.
    fn knows_too_few(&self) -> bool {
        usize::try_from(self.queued).is_ok_and(|queued| queued > self.next.len())
    }

    /// Tells whether it has to be told the first of its queued jobs, with [`JobLane::learn`], before one of them moves.
    #[must_use]
    pub fn must_learn(&self) -> bool {
        self.next.len() <= 1 && self.knows_too_few()
    }

    /// How many of its queued jobs it wants to be told.
    #[must_use]
    pub const fn wants() -> u32 {
        LOOK_AHEAD as u32
    }

    /// Takes the first [`JobLane::wants`] of its queued jobs, in order.
    pub fn learn(&mut self, first: impl IntoIterator<Item = QueuedJob>) {
        self.next = first.into_iter().take(LOOK_AHEAD).collect();
        let known = i64::try_from(self.next.len()).unwrap_or(i64::MAX);
        // Fewer than asked for are all there are.
        if self.next.len() < LOOK_AHEAD || self.queued < known {
            self.queued = known;
        }
    }

    /// Returns whether a hold on the lane keeps its head from being claimed.
    #[must_use]
    pub fn is_held(&self) -> bool {
        let holds_head = |head: &QueuedJob| self.held_by.iter().any(|by| by.holds(&head.kind));
        self.head().is_some_and(holds_head)
    }

    /// Decides whether the head can be claimed.
    pub fn settle(&mut self, now: Timestamp) {
        let free = self.running_job_id.is_none() && !self.is_held();
        let Some(run_at) = self.head().filter(|_| free).map(|head| head.run_at) else {
            self.state = LaneState::Idle;
            return;
        };
        self.ready_at = run_at.max(self.not_before);
        self.state = if self.ready_at <= now {
            LaneState::Ready
        } else {
            LaneState::Later
        };
    }
}

record! {
    JobLane as "job lane" by lane, asked JobLaneQuery;
}

/// Questions about lanes.
#[derive(Clone, Debug, PartialEq)]
pub enum JobLaneQuery {
    /// Those that can be claimed: by priority, then the longest unserved first.
    Ready,
    /// Those of them whose head is of this kind, in the same order.
    ReadyOfKind(String),
    /// Those that wait for an instant which has come, longest ago first.
    DueAt(Timestamp),
    /// These, by their keys.
    Of(Vec<LaneKey>),
}

/// Names a lane: `platform:{id}`, `onboarding:{id}` before there is a platform, or `own:{name}` for the jobs of a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct LaneKey(String);

impl LaneKey {
    /// The lane of a platform.
    #[must_use]
    pub fn platform(id: &PlatformId) -> Self {
        Self(format!("platform:{id}"))
    }

    /// The lane of what is done with a platform's hostnames even while the platform is suspended.
    #[must_use]
    pub fn hostnames(id: &PlatformId) -> Self {
        Self(format!("hostnames:{id}"))
    }

    /// The lane of an onboarding.
    #[must_use]
    pub fn onboarding(id: &OnboardingId) -> Self {
        Self(format!("onboarding:{id}"))
    }

    /// A lane of a host's own jobs that are about no platform. Those of one lane run one after the other.
    #[must_use]
    pub fn own(name: &str) -> Self {
        Self(format!("own:{name}"))
    }

    /// The platform whose lane it is; `None` for another lane.
    #[must_use]
    pub fn platform_id(&self) -> Option<PlatformId> {
        self.0.strip_prefix("platform:").and_then(PlatformId::parse)
    }

    /// The text of the key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for LaneKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl TextValue for LaneKey {
    fn as_text(&self) -> &str {
        &self.0
    }

    fn from_text(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }
}

arbitrary!(LaneKey as "(platform|hostnames|onboarding):[a-z0-9-]{1,36}");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::kernel::PlatformId;

    use super::*;

    const NOW: Timestamp = Timestamp::from_seconds(1_000);

    fn lane() -> JobLane {
        JobLane::new(LaneKey::platform(&PlatformId::parse("p").unwrap()))
    }

    fn queued(position: i64) -> QueuedJob {
        QueuedJob {
            job_id: JobId::parse(&format!("j{position}")).unwrap(),
            kind: "work".to_owned(),
            priority: 0,
            position,
            run_at: NOW,
        }
    }

    /// What happens to the queue of a lane.
    #[derive(Clone, Copy, Debug)]
    enum QueueEvent {
        Tail,
        Front,
        /// The one at this place leaves the queue.
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

    /// Compares the lane after each event with the queue itself, which the lane reads only when it asks for it.
    fn assert_lane_knows_the_first_jobs(events: Vec<QueueEvent>) {
        let (mut lane, mut queue) = (lane(), Vec::<QueuedJob>::new());
        for event in events {
            if lane.must_learn() {
                lane.learn(queue.iter().cloned());
            }
            match event {
                QueueEvent::Tail => {
                    let job = queued(lane.tail_position());
                    queue.push(job.clone());
                    lane.add(job);
                }
                QueueEvent::Front => {
                    let job = queued(lane.front_position());
                    queue.insert(0, job.clone());
                    lane.add(job);
                }
                QueueEvent::Leaves(at) if at < queue.len() => {
                    let job = queue.remove(at);
                    lane.queued -= 1;
                    lane.next.retain(|queued| *queued != job);
                }
                QueueEvent::Leaves(_) => {}
            }
            assert_eq!(lane.queued, i64::try_from(queue.len()).unwrap());
            assert!(lane.next.len() <= LOOK_AHEAD);
            assert_eq!(&lane.next[..], &queue[..lane.next.len()]);
            assert_eq!(lane.head(), queue.first());
        }
    }

    #[test]
    fn a_lane_that_loses_a_known_job_still_knows_the_first_of_the_others() {
        let mut events = vec![QueueEvent::Tail; 9];
        events.extend([QueueEvent::Leaves(0), QueueEvent::Tail]);
        assert_lane_knows_the_first_jobs(events);
    }

    proptest! {
        #[test]
        fn what_a_lane_knows_are_the_first_of_its_queued_jobs(
            events in prop::collection::vec(queue_events(), 1..200),
        ) {
            assert_lane_knows_the_first_jobs(events);
        }

        #[test]
        fn a_lane_is_ready_exactly_when_its_head_is_free_and_due(
            runs: bool,
            held_by: Option<HoldSource>,
            some: bool,
            run_at in 0_i64..2_000,
            not_before in 0_i64..2_000,
        ) {
            let mut lane = lane();
            lane.running_job_id = runs.then(|| queued(7).job_id);
            lane.not_before = Timestamp::from_seconds(not_before);
            if some {
                let run_at = Timestamp::from_seconds(run_at);
                lane.add(QueuedJob { run_at, ..queued(1) });
            }
            lane.held_by.extend(held_by);
            lane.settle(NOW);
            let free = some && !runs && held_by.is_none();
            let due = run_at.max(not_before) <= 1_000;
            let expected = match (free, due) {
                (false, _) => LaneState::Idle,
                (true, true) => LaneState::Ready,
                (true, false) => LaneState::Later,
            };
            prop_assert_eq!(lane.state, expected);
        }
    }

    #[test]
    fn a_lane_that_knows_none_of_its_queued_jobs_asks_for_them() {
        let mut lane = JobLane {
            queued: 3,
            ..lane()
        };
        assert!(lane.must_learn());
        lane.learn((1..=2).map(queued));
        assert_eq!((lane.queued, lane.next.len()), (2, 2));
        assert!(!lane.must_learn());
    }
}
