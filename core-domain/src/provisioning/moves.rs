//! Every move a job can make, as a table. Documentation, the machine and the property tests read the same list.

use super::JobStatus::{self, Completed, Failed, Queued, Running, Waiting};
use crate::kernel::text_enum;

text_enum! {
    /// What a move is called in the history.
    pub enum Name {
        /// A worker takes the job.
        Claim = "job.claimed",
        /// The intent to work on a step is stored.
        Start = "step.started",
        /// A step is done.
        Advance = "step.succeeded",
        /// The last step is done.
        Complete = "job.completed",
        /// A step failed and will be tried again.
        BackOff = "step.failed",
        /// A step failed as often as it may.
        Exhaust = "job.attempts_exhausted",
        /// A step failed for good.
        Refuse = "job.failed",
        /// A step waits for the outside world.
        Wait = "job.waiting",
        /// The wait is over.
        Wake = "job.woken",
        /// The worker stops and hands the job back.
        Release = "job.released",
        /// The worker vanished.
        Reap = "job.lease_lost",
        /// Workers vanish again and again.
        ReapLast = "job.worker_lost",
        /// The job took too long.
        Deadline = "job.deadline_exceeded",
        /// An operator lets a failed job go on.
        Retry = "job.retried",
        /// An operator makes a queued or waiting job run now.
        RunNow = "job.hurried",
        /// An operator stops the job.
        Cancel = "job.cancelled",
        /// An operator declares the job done.
        ForceComplete = "job.force_completed",
        /// An operator replays the job from the dead-letter queue.
        Replay = "job.replayed",
    }
}

/// A move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Its name in the history.
    pub name: Name,
    /// The statuses it can be made from.
    pub from: &'static [JobStatus],
    /// The status it leads to.
    pub to: JobStatus,
    /// Whether the fence moves, so that the holder is locked out.
    pub fences: bool,
}

const fn fenced(name: Name, from: &'static [JobStatus], to: JobStatus) -> Move {
    Move {
        name,
        from,
        to,
        fences: true,
    }
}

const fn kept(name: Name) -> Move {
    Move {
        name,
        from: &[Running],
        to: Running,
        fences: false,
    }
}

/// All moves. A job is created `QUEUED`; a heartbeat is no move, it touches the lease alone.
pub const MOVES: &[Move] = &[
    fenced(Name::Claim, &[Queued], Running),
    kept(Name::Start),
    kept(Name::Advance),
    fenced(Name::Complete, &[Running], Completed),
    fenced(Name::BackOff, &[Running], Queued),
    fenced(Name::Exhaust, &[Running], Failed),
    fenced(Name::Refuse, &[Running], Failed),
    fenced(Name::Wait, &[Running], Waiting),
    fenced(Name::Wake, &[Waiting], Queued),
    fenced(Name::Release, &[Running], Queued),
    fenced(Name::Reap, &[Running], Queued),
    fenced(Name::ReapLast, &[Running], Failed),
    fenced(Name::Deadline, &[Queued, Waiting, Running], Failed),
    fenced(Name::Retry, &[Failed], Queued),
    fenced(Name::RunNow, &[Queued, Waiting], Queued),
    fenced(Name::Cancel, &[Queued, Waiting, Running], Failed),
    fenced(
        Name::ForceComplete,
        &[Queued, Waiting, Running, Failed],
        Completed,
    ),
    fenced(Name::Replay, &[Failed], Queued),
];

impl Name {
    /// The row of the table.
    #[must_use]
    pub fn row(self) -> &'static Move {
        // The table has a row for every name: a test counts them. The first row is never taken for a missing one.
        MOVES
            .iter()
            .find(|row| row.name == self)
            .unwrap_or(&MOVES[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_exactly_one_row() {
        for name in Name::ALL {
            assert_eq!(MOVES.iter().filter(|row| row.name == *name).count(), 1);
            assert_eq!(name.row().name, *name);
        }
    }

    #[test]
    fn completed_is_never_left_and_every_change_of_status_moves_the_fence() {
        for row in MOVES {
            assert!(!row.from.contains(&Completed), "{row:?}");
            assert!(row.fences || row.from == [row.to], "{row:?}");
        }
    }
}
