//! An exhaustive search of the job state machine: a job of two steps, and the job that undoes it after a cancellation,
//! in one lane. There are two workers, an operator, and an object that may be older than the job. A lease may expire at
//! any time. Requests can have unknown outcomes. Waits, releases, deadlines and holds occur. Every order of events is
//! tried; nothing is random. The search runs the real state machine, not a copy. Mutants with deliberate defects must
//! be found.

mod events;
mod state;

use std::collections::{HashSet, VecDeque};

use events::next_states;
use state::{Budget, State};

/// A deliberate defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    None,
    /// A worker may write with any fence.
    NoFence,
    /// The provider cannot distinguish a repeated request from a new one.
    NoKey,
    /// The reaper writes the result of a job that it read earlier.
    BlindReap,
    /// The reaper does not check whether the job is still running.
    ReapIgnoresStatus,
    /// An undo starts at once, although requests of a former holder may still arrive.
    HastyUndo,
    /// A job that is being undone can be retried.
    RetryWhileUndone,
    /// A hold is set without updating its lane.
    HoldAlone,
    /// An undo ignores the first observation of the step.
    BlindUndo,
    /// A later observation replaces the first one.
    LaterLook,
}

/// The budgets of events: faults of the work itself, then holds and the undo, then commands of operators on both.
const BUDGETS: [Budget; 3] = [budget(2, 1, 1, 0), budget(1, 0, 2, 1), budget(0, 0, 3, 0)];

const fn budget(expiries: u8, faults: u8, orders: u8, holds: u8) -> Budget {
    Budget {
        expiries,
        faults,
        orders,
        holds,
    }
}

/// Returns the number of states, or the first violation and the number of events that led to it.
fn search(mutant: Mutant, budget: Budget, older: bool) -> Result<usize, (usize, String)> {
    let start = State::start(budget, older);
    let mut known = HashSet::from([start.key()]);
    let mut queue = VecDeque::from([(0, start)]);
    while let Some((depth, state)) = queue.pop_front() {
        let nexts = next_states(&state, mutant).map_err(|broken| (depth + 1, broken))?;
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
fn no_order_of_events_violates_an_invariant() {
    let of_jobs = BUDGETS.map(|budget| search(Mutant::None, budget, false));
    // With an object that is older than the job, cancelled at any moment.
    let beside_others = search(Mutant::None, budget(1, 1, 2, 0), true);
    let all = of_jobs.into_iter().chain([beside_others]);
    let states: Vec<usize> = all.map(Result::unwrap).collect();
    assert!(states.iter().sum::<usize>() > 100_000, "{states:?}");
}

#[track_caller]
fn assert_detected(mutant: Mutant, invariant: &str) {
    let mut found = BUDGETS.iter().flat_map(|budget| {
        let starts = [false, true].into_iter();
        starts.filter_map(|older| search(mutant, *budget, older).err())
    });
    let (depth, broken) = found.next().unwrap();
    assert!(broken.starts_with(invariant), "{mutant:?}: {broken}");
    assert!(depth <= 16, "{mutant:?} after {depth} events");
}

#[test]
fn a_machine_without_fences_is_detected() {
    assert_detected(Mutant::NoFence, "I3");
}

#[test]
fn requests_without_keys_are_detected() {
    assert_detected(Mutant::NoKey, "I8");
}

#[test]
fn a_reaper_that_writes_a_stale_read_is_detected() {
    assert_detected(Mutant::BlindReap, "I");
}

#[test]
fn a_reaper_that_ignores_a_cancel_is_detected() {
    assert_detected(Mutant::ReapIgnoresStatus, "I1");
}

#[test]
fn an_undo_that_does_not_wait_for_stale_requests_is_detected() {
    assert_detected(Mutant::HastyUndo, "U1");
}

#[test]
fn a_retry_while_a_job_is_being_undone_is_detected() {
    assert_detected(Mutant::RetryWhileUndone, "U2");
}

#[test]
fn a_hold_that_does_not_update_its_lane_is_detected() {
    assert_detected(Mutant::HoldAlone, "I17");
}

#[test]
fn an_undo_that_ignores_the_first_observation_is_detected() {
    assert_detected(Mutant::BlindUndo, "U3");
}

#[test]
fn a_later_observation_that_replaces_the_first_is_detected() {
    assert_detected(Mutant::LaterLook, "U1");
}
