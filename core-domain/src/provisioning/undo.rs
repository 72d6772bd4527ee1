//! Undoing cancelled jobs. An undo job takes back the steps of a cancelled job one by one, newest first.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Job, JobLane, JobStatus, MAX_ATTEMPTS, Step, StepStatus, Trigger, undo_kind_of};
use crate::kernel::Timestamp;

/// Returns the job that undoes a cancelled job; `None` if no step needs to be undone. Its steps are those that may have
/// happened and for which `undoes` returns `true`, newest first. The caller must set its id, times and creator; they
/// are still those of the cancelled job.
#[must_use]
pub fn undo_job(cancelled: &Job, undoes: impl Fn(&str) -> bool) -> Option<Job> {
    let newest_first = cancelled.steps.iter().rev();
    let undone = newest_first.filter(|step| step.status.may_have_effect() && undoes(&step.name));
    let steps: Vec<Step> = undone.map(undo_step).collect();
    if steps.is_empty() {
        return None;
    }
    Some(Job {
        kind: undo_kind_of(&cancelled.kind),
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

/// Creates the step that undoes another one. It keeps the effect key of the undone step.
fn undo_step(undone: &Step) -> Step {
    Step {
        effect_key: undone.effect_key.clone(),
        ..Step::new(undone.name.clone())
    }
}

/// Returns the time after which no request of an earlier holder can still arrive. It is the end of the holder's lease
/// plus the longest step timeout. The lease ends no later than the last transition of the job or the time from which
/// its lane can be claimed again. `before` is the job before it was cancelled, `lane` its lane afterwards.
#[must_use]
pub fn effects_settled_at(before: &Job, lane: &JobLane, longest_step: Duration) -> Timestamp {
    before.updated_at.max(lane.not_before).plus(longest_step)
}

/// Returns the transitions that the current state of the undo job causes in the undone job. A step whose undo succeeded
/// becomes `UNDONE`. A step whose undo did not finish becomes `ABANDONED`, because its effect may still exist.
#[must_use]
pub fn undo_triggers(undone: &Job, undo: &Job) -> Vec<Trigger> {
    let steps = undone.steps.iter();
    steps.filter_map(|step| undone_step(step, undo)).collect()
}

fn undone_step(step: &Step, undo: &Job) -> Option<Trigger> {
    let mut undoing = undo.steps.iter();
    let undoing = undoing.find(|undoing| undoing.name == step.name)?;
    if undoing.status == StepStatus::Succeeded {
        let is_there = step.status.may_have_effect();
        return is_there.then(|| Trigger::Undone {
            step: step.name.clone(),
            left: undoing
                .output
                .as_ref()
                .and_then(kept_reason)
                .map(str::to_owned),
        });
    }
    let has_stopped = undo.status.is_terminal() && undoing.started_at.is_some();
    let was_done = step.status == StepStatus::Succeeded;
    (has_stopped && was_done).then(|| Trigger::UndoStopped(step.name.clone()))
}

/// Member of an undo step's output that contains the reason for keeping the effect.
const KEPT_REASON_KEY: &str = "left";

/// Creates the output of an undo step that kept the effect for this reason.
#[must_use]
pub fn kept_output(why: &str) -> Value {
    json!({ KEPT_REASON_KEY: why })
}

/// Returns the reason for keeping the effect from the output of an undo step; `None` if the effect was removed.
#[must_use]
pub fn kept_reason(output: &Value) -> Option<&str> {
    output.get(KEPT_REASON_KEY)?.as_str()
}
