//! Undoing a cancelled job: by a job of its own that takes back one step after another, the newest first.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Job, JobLane, JobStatus, MAX_ATTEMPTS, Step, StepStatus, Trigger, undo_of};
use crate::kernel::Timestamp;

/// The job that undoes a cancelled one: its steps are those that may have happened and can be undone, newest first. `None`
/// when there are none. It is as the cancelled one in all but its kind, its steps and where it stands.
#[must_use]
pub fn undo_job(cancelled: &Job, undoes: impl Fn(&str) -> bool) -> Option<Job> {
    let newest_first = cancelled.steps.iter().rev();
    let undone = newest_first.filter(|step| step.status.may_have_happened() && undoes(&step.name));
    let steps: Vec<Step> = undone.map(undo_step).collect();
    if steps.is_empty() {
        return None;
    }
    Some(Job {
        kind: undo_of(&cancelled.kind),
        parent_job_id: Some(cancelled.id.clone()),
        steps,
        status: JobStatus::Queued,
        reason: None,
        failure_kind: None,
        error: None,
        output: None,
        attempts: 0,
        max_attempts: MAX_ATTEMPTS,
        lost_leases: 0,
        waiting_for: None,
        forced: false,
        replay_count: 0,
        dlq_entry_id: None,
        idempotency_key: None,
        fence: 0,
        event_count: 1,
        started_at: None,
        finished_at: None,
        ..cancelled.clone()
    })
}

/// A step that sends the key of the one it undoes.
fn undo_step(undone: &Step) -> Step {
    Step {
        effect_key: undone.effect_key.clone(),
        ..Step::new(undone.name.clone())
    }
}

/// From when on nothing can arrive any more that any holder of the job has sent: as long after the end of its lease as the
/// longest step may take. A lease has ended when the job last moved, or when its lane may be claimed again. `before` is the
/// job before it is cancelled, `lane` its lane afterwards.
#[must_use]
pub fn effects_landed_at(before: &Job, lane: &JobLane, longest_step: Duration) -> Timestamp {
    before.updated_at.max(lane.not_before).plus(longest_step)
}

/// What becomes of the steps of a job that is undone, as the job that undoes it stands now: one that was taken back is so
/// there, and one whose undoing stopped midway may or may not still be done.
#[must_use]
pub fn undone_steps(undone: &Job, undo: &Job) -> Vec<Trigger> {
    let steps = undone.steps.iter();
    steps.filter_map(|step| undone_step(step, undo)).collect()
}

fn undone_step(step: &Step, undo: &Job) -> Option<Trigger> {
    let mut undoing = undo.steps.iter();
    let undoing = undoing.find(|undoing| undoing.name == step.name)?;
    if undoing.status == StepStatus::Succeeded {
        let is_there = step.status.may_have_happened();
        return is_there.then(|| Trigger::Undone {
            step: step.name.clone(),
            left: undoing.output.as_ref().and_then(left_by).map(str::to_owned),
        });
    }
    let has_stopped = undo.status.is_terminal() && undoing.started_at.is_some();
    let was_done = step.status == StepStatus::Succeeded;
    (has_stopped && was_done).then(|| Trigger::UndoStopped(step.name.clone()))
}

/// The member of an undo step's output that holds the reason for keeping the effect.
const LEFT: &str = "left";

/// Creates the output of an undo step that kept the effect for this reason.
#[must_use]
pub fn left_output(why: &str) -> Value {
    json!({ LEFT: why })
}

/// Returns the reason for keeping the effect from the output of an undo step; `None` if the effect was removed.
#[must_use]
pub fn left_by(output: &Value) -> Option<&str> {
    output.get(LEFT)?.as_str()
}
