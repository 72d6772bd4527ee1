//! The state machine searched to its end: a job of two steps and the job that undoes it when it is cancelled, in one lane;
//! two workers, an object that may be older than the job, a lease that may end at any time, requests whose outcome is not known, waits, releases, deadlines, holds, an
//! operator. Every order of events is tried; nothing is random. What is searched is the machine itself, not a copy of it;
//! what is broken on purpose is found.

mod events;
mod state;

use std::collections::{HashSet, VecDeque};

use events::nexts;
use state::{Budget, State};

/// What is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    None,
    /// A worker may write whatever the fence is by now.
    NoFence,
    /// The provider cannot tell a repeated request from a new one.
    NoKey,
    /// The reaper writes what it made of the job it read before.
    BlindReap,
    /// The reaper does not look whether the job still runs.
    ReapIgnoresStatus,
    /// Undoing begins at once, whatever a former holder has sent.
    HastyUndo,
    /// A job that is being undone can be retried.
    RetryWhileUndone,
    /// A hold that its lane is not told of.
    HoldAlone,
    /// Undoing does not ask what the step found first.
    BlindUndo,
    /// A later look replaces the first one.
    LaterLook,
}

/// What may go wrong in the work itself, then with holds and its undoing, then in what operators make of both.
const BUDGETS: [Budget; 3] = [budget(2, 1, 1, 0), budget(1, 0, 2, 1), budget(0, 0, 3, 0)];

const fn budget(expiries: u8, faults: u8, orders: u8, holds: u8) -> Budget {
    Budget {
        expiries,
        faults,
        orders,
        holds,
    }
}

/// How many states there are; or what is broken in the first one that is, and after how many events.
fn search(mutant: Mutant, budget: Budget, older: bool) -> Result<usize, (usize, String)> {
    let start = State::start(budget, older);
    let mut known = HashSet::from([start.key()]);
    let mut queue = VecDeque::from([(0, start)]);
    while let Some((depth, state)) = queue.pop_front() {
        let nexts = nexts(&state, mutant).map_err(|broken| (depth + 1, broken))?;
        assert!(known.len() < 2_000_000, "the search has no end");
        for next in nexts {
            if known.insert(next.key()) {
                queue.push_back((depth + 1, next));
            }
        }
    }
    Ok(known.len())
}

#[test]
fn no_order_of_events_breaks_an_invariant() {
    let of_jobs = BUDGETS.map(|budget| search(Mutant::None, budget, false));
    // Beside what others have made, cancelled at any moment.
    let beside_others = search(Mutant::None, budget(1, 1, 2, 0), true);
    let all = of_jobs.into_iter().chain([beside_others]);
    let states: Vec<usize> = all.map(Result::unwrap).collect();
    assert!(states.iter().sum::<usize>() > 100_000, "{states:?}");
}

#[track_caller]
fn is_found(mutant: Mutant, invariant: &str) {
    let mut found = BUDGETS.iter().flat_map(|budget| {
        let starts = [false, true].into_iter();
        starts.filter_map(|older| search(mutant, *budget, older).err())
    });
    let (depth, broken) = found.next().unwrap();
    assert!(broken.starts_with(invariant), "{mutant:?}: {broken}");
    assert!(depth <= 16, "{mutant:?} after {depth} events");
}

#[test]
fn a_machine_without_fences_is_found_out() {
    is_found(Mutant::NoFence, "I3");
}

#[test]
fn requests_without_keys_are_found_out() {
    is_found(Mutant::NoKey, "I8");
}

#[test]
fn a_reaper_that_reads_and_then_writes_is_found_out() {
    is_found(Mutant::BlindReap, "I");
}

#[test]
fn a_reaper_that_ignores_a_cancel_is_found_out() {
    is_found(Mutant::ReapIgnoresStatus, "I1");
}

#[test]
fn undoing_that_does_not_wait_for_what_was_sent_is_found_out() {
    is_found(Mutant::HastyUndo, "U1");
}

#[test]
fn a_retry_while_a_job_is_being_undone_is_found_out() {
    is_found(Mutant::RetryWhileUndone, "U2");
}

#[test]
fn a_hold_that_its_lane_is_not_told_of_is_found_out() {
    is_found(Mutant::HoldAlone, "I17");
}

#[test]
fn undoing_that_does_not_ask_what_was_there_before_is_found_out() {
    is_found(Mutant::BlindUndo, "U3");
}

#[test]
fn a_later_look_that_replaces_the_first_is_found_out() {
    is_found(Mutant::LaterLook, "U1");
}
