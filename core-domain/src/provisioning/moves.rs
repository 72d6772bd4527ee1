//! Every move a job can make. The machine, its documentation and its property test read the same list.

use super::JobStatus;
use crate::kernel::{Machine, state_machine};

state_machine! {
    /// A move of a job, by its name in the history. A job is created `QUEUED`; a heartbeat is no move, it touches the lease
    /// alone.
    pub enum JobMove moves JobStatus {
        /// A worker takes the job.
        Claim = "job.claimed": [Queued] => Running;
        /// The intent to work on a step is stored.
        Start = "step.started": [Running] => Running;
        /// The first observation of a step is stored.
        Look = "step.looked": [Running] => Running;
        /// A step is done.
        Advance = "step.succeeded": [Running] => Running;
        /// The last step is done.
        Complete = "job.completed": [Running] => Completed;
        /// A part of a step is done, and it goes on with the rest.
        Progress = "step.progressed": [Running] => Queued;
        /// A step failed and will be tried again.
        BackOff = "step.failed": [Running] => Queued;
        /// A step failed as often as it may.
        Exhaust = "job.attempts_exhausted": [Running] => Failed;
        /// A step failed for good.
        Fail = "job.failed": [Running] => Failed;
        /// A step waits for the outside world.
        Wait = "job.waiting": [Running] => Waiting;
        /// The wait is over.
        Wake = "job.woken": [Waiting] => Queued;
        /// The worker stops and hands the job back.
        Release = "job.released": [Running] => Queued;
        /// The worker vanished.
        Reap = "job.lease_lost": [Running] => Queued;
        /// Workers vanish again and again.
        ReapLast = "job.worker_lost": [Running] => Failed;
        /// The job took too long.
        Deadline = "job.deadline_exceeded": [Queued, Waiting, Running] => Failed;
        /// An operator lets a failed job go on.
        Retry = "job.retried": [Failed] => Queued;
        /// An operator makes a queued or waiting job run now.
        Reschedule = "job.rescheduled": [Queued, Waiting] => Queued;
        /// An operator stops the job.
        Cancel = "job.cancelled": [Queued, Waiting, Running] => Failed;
        /// An operator declares the job done.
        ForceComplete = "job.force_completed": [Queued, Waiting, Running, Failed] => Completed;
        /// An operator replays the job from the dead-letter queue.
        Replay = "job.replayed": [Failed] => Queued;
        /// What a step of a cancelled job had done was taken back.
        Undo = "step.undone": [Failed] => Failed;
        /// The undoing of a step stopped midway: how far it came is not known.
        StopUndo = "step.undo_stopped": [Failed] => Failed;
    }
}

impl JobMove {
    /// Whether the fence moves, so that the holder is locked out: on every move but those of a holder that keeps the job.
    #[must_use]
    pub fn fences(self) -> bool {
        let row = self.of_event();
        !(row.from == [JobStatus::Running] && row.to == JobStatus::Running)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::assert_only_table_moves;

    proptest! {
        #[test]
        fn any_sequence_of_moves_makes_only_those_of_the_table(
            moves in prop::collection::vec(prop::sample::select(JobMove::ALL), 1..60),
        ) {
            assert_only_table_moves(JobStatus::Queued, &moves);
        }
    }

    #[test]
    fn completed_is_never_left_and_every_change_of_status_moves_the_fence() {
        for row in JobMove::MOVES {
            assert!(!row.from.contains(&JobStatus::Completed), "{row:?}");
            assert!(row.event.fences() || row.from == [row.to], "{row:?}");
        }
    }
}
