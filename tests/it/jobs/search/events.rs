//! All events that can happen next in a state of the search.

use std::time::Duration;

use core_domain::provisioning::{
    Failure, FirstObservation, HoldSource, Job, JobError, JobStatus, Report, Trigger, apply,
    effects_settled_at, undo_job,
};
use core_domain::testing::SeededEntropy;
use serde_json::json;

use super::Mutant;
use super::state::{BOTH, Hold, NOW, Phase, STEPS, State, WORKERS, Which};

/// Maximum duration of a step.
const MAX_STEP_DURATION: Duration = Duration::from_secs(60);

type Nexts = Result<(), String>;

pub(super) fn next_states(state: &State, mutant: Mutant) -> Result<Vec<State>, String> {
    let mut all = Vec::new();
    for worker in 0..WORKERS {
        match state.workers[worker] {
            None => claims(state, worker, &mut all)?,
            Some(hold) => Work::of(state, worker, hold, mutant).nexts(&mut all)?,
        }
    }
    reaps(state, mutant, &mut all)?;
    holds(state, mutant, &mut all)?;
    orders(state, mutant, &mut all)?;
    Ok(all)
}

fn claims(state: &State, worker: usize, all: &mut Vec<State>) -> Nexts {
    let Some(which) = state.claimable() else {
        return Ok(());
    };
    if state.held {
        return Err("I17 a held lane was claimed".to_owned());
    }
    let Some(mut next) = state.apply_trigger(which, &Trigger::Claim, Some(worker))? else {
        return Ok(());
    };
    next.undo_waits &= which == Which::Work;
    let Some(job) = next.job(which) else {
        return Ok(());
    };
    let hold = Hold {
        job: which,
        generation: next.generation,
        fence: job.fence,
        step: job.current_step().unwrap_or(job.steps.len()),
        phase: Phase::Claimed,
    };
    next.workers[worker] = Some(hold);
    // The intent is stored alone, or in the same unit as the claim.
    let begin = Trigger::Work(hold.fence, Report::Start(hold.step));
    if let Some(mut begun) = next.apply_trigger(which, &begin, Some(worker))? {
        begun.workers[worker] = Some(Hold {
            phase: Phase::Intended,
            ..hold
        });
        all.push(begun);
    }
    all.push(next);
    Ok(())
}

/// A worker that has claimed a job. It continues, fails, waits or releases the job. It may also die, which means that
/// it does nothing any more.
struct Work<'a> {
    state: &'a State,
    worker: usize,
    hold: Hold,
    fence: i64,
    /// True if the job still belongs to the worker, as far as it can know.
    owned: bool,
    mutant: Mutant,
}

impl<'a> Work<'a> {
    fn of(state: &'a State, worker: usize, hold: Hold, mutant: Mutant) -> Self {
        let job = state.job(hold.job);
        let same = hold.job == Which::Work || hold.generation == state.generation;
        let job = job.filter(|job| same && job.status == JobStatus::Running);
        let fence = match job {
            Some(job) if mutant == Mutant::NoFence => job.fence,
            _ => hold.fence,
        };
        Self {
            state,
            worker,
            hold,
            fence,
            owned: job.is_some_and(|job| job.fence == fence),
            mutant,
        }
    }

    fn into(&self, phase: Phase) -> State {
        let mut next = self.state.clone();
        let hold = self.hold;
        next.workers[self.worker] = Some(Hold { phase, ..hold });
        next
    }

    fn without_hold(&self) -> State {
        let mut next = self.state.clone();
        next.workers[self.worker] = None;
        next
    }

    /// Reports, and continues with the step `after` in this phase if the worker still holds the job.
    fn report(&self, what: Report, after: usize, phase: Phase, all: &mut Vec<State>) -> Nexts {
        let trigger = Trigger::Work(self.fence, what);
        let moved = if self.owned {
            self.state
                .apply_trigger(self.hold.job, &trigger, Some(self.worker))?
        } else {
            None
        };
        let mut next = moved.unwrap_or_else(|| self.without_hold());
        let job = next.job(self.hold.job);
        let holds = self.owned && job.is_some_and(|job| job.status == JobStatus::Running);
        next.workers[self.worker] = holds.then_some(Hold {
            step: after,
            phase,
            ..self.hold
        });
        all.push(next);
        Ok(())
    }

    fn nexts(&self, all: &mut Vec<State>) -> Nexts {
        let Hold { step, phase, .. } = self.hold;
        let ends = self
            .state
            .job(self.hold.job)
            .is_none_or(|job| step >= job.steps.len());
        match phase {
            Phase::Claimed if ends => self.report(Report::Complete, step, Phase::Claimed, all),
            Phase::Claimed => {
                self.report(Report::Start(step), step, Phase::Intended, all)?;
                self.release(all)
            }
            Phase::Intended => self.look(all),
            Phase::Due if self.owned => {
                all.push(self.into(Phase::LeaseHeld));
                Ok(())
            }
            Phase::Due => {
                all.push(self.without_hold());
                Ok(())
            }
            // A removal that arrives late is not considered: an object that it could remove is created again only by a
            // retry.
            Phase::LeaseHeld if self.hold.job == Which::Undo && !self.owned => {
                all.push(self.without_hold());
                Ok(())
            }
            Phase::LeaseHeld => self.send(all),
            Phase::Made => self.advance(all),
            Phase::Unknown => self.fail(all),
        }
    }

    /// Observes the object. The first observation of a working job is stored before it continues, because an undo
    /// depends on it.
    fn look(&self, all: &mut Vec<State>) -> Nexts {
        let there = self.state.made[self.state.object(self.hold)] > 0;
        if self.hold.job == Which::Undo {
            let is_due = there && (self.takes_back() || self.mutant == Mutant::BlindUndo);
            all.push(self.into(if is_due { Phase::Due } else { Phase::Made }));
            return Ok(());
        }
        let (found, phase) = if there {
            (FirstObservation::Present, Phase::Made)
        } else {
            (FirstObservation::Absent, Phase::Due)
        };
        let Hold { step, .. } = self.hold;
        let step_of = |job: &Job| job.steps.get(step).and_then(|step| step.first_look);
        let known = self.state.job(Which::Work).and_then(step_of);
        if known.is_none() || self.mutant == Mutant::LaterLook {
            let mut forgetful = self.state.clone();
            if let Some(job) = &mut forgetful.jobs[Which::Work as usize]
                && self.mutant == Mutant::LaterLook
            {
                job.steps[step].first_look = None;
            }
            let looks = Work {
                state: &forgetful,
                ..*self
            };
            return looks.report(Report::Look(step, found), step, phase, all);
        }
        all.push(self.into(phase));
        Ok(())
    }

    /// Returns whether the undone step had observed no object before its effect.
    fn takes_back(&self) -> bool {
        let undo = self.state.job(Which::Undo);
        let name = undo.and_then(|undo| undo.steps.get(self.hold.step));
        let work = self.state.job(Which::Work).into_iter();
        let mut steps = work.flat_map(|work| &work.steps);
        let undone = steps.find(|step| name.is_some_and(|name| name.name == step.name));
        undone.is_some_and(|step| step.keep_reason().is_none())
    }

    /// Sends the request. The request or its reply may be lost.
    fn send(&self, all: &mut Vec<State>) -> Nexts {
        let object = self.state.object(self.hold);
        let mut made = self.into(Phase::Made);
        if self.hold.job == Which::Undo {
            made.made[object] = 0;
        } else {
            let repeated = made.made[object] > 0 && self.mutant != Mutant::NoKey;
            made.made[object] += u8::from(!repeated);
        }
        if made.made[object] > 1 {
            return Err(format!("I8 step {object} has two objects"));
        }
        made.check()?;
        if self.state.left.faults > 0 {
            let unknown = |mut next: State| {
                next.left.faults -= 1;
                next.workers[self.worker] = self.into(Phase::Unknown).workers[self.worker];
                next
            };
            all.push(unknown(made.clone()));
            all.push(unknown(self.state.clone()));
        }
        all.push(made);
        Ok(())
    }

    /// Reports the end of the step, alone or in one unit with the intent for the next step.
    fn advance(&self, all: &mut Vec<State>) -> Nexts {
        let Hold { job, step, .. } = self.hold;
        let output = json!({ "id": step });
        let current = self.state.job(job);
        let next = current.and_then(|job| job.step_after(step));
        let after = next.unwrap_or(STEPS);
        self.report(
            Report::Advance(step, output.clone()),
            after,
            Phase::Claimed,
            all,
        )?;
        let advance = Trigger::Work(self.fence, Report::Advance(step, output));
        if !self.owned {
            return Ok(());
        }
        let Some(advanced) = self.state.apply_trigger(job, &advance, Some(self.worker))? else {
            return Ok(());
        };
        let start = Trigger::Work(self.fence, Report::Start(after));
        if let Some(mut begun) = advanced.apply_trigger(job, &start, Some(self.worker))? {
            begun.workers[self.worker] = Some(Hold {
                step: after,
                phase: Phase::Intended,
                ..self.hold
            });
            all.push(begun);
        }
        Ok(())
    }

    fn fail(&self, all: &mut Vec<State>) -> Nexts {
        let error = || JobError::new("LOST", "no answer");
        let for_now = Failure::Transient {
            error: error(),
            retry_after: Duration::ZERO,
            may_have_effect: true,
        };
        let wait = Report::Wait {
            until: NOW,
            reason: "a certificate".into(),
        };
        let failures = [
            Report::Fail(for_now),
            Report::Fail(Failure::Permanent(error())),
            wait,
            Report::Progress,
            Report::Release {
                is_step_started: true,
            },
        ];
        for what in failures {
            self.report(what, self.hold.step, Phase::Claimed, all)?;
        }
        Ok(())
    }

    /// The process stops and releases the job.
    fn release(&self, all: &mut Vec<State>) -> Nexts {
        if self.state.left.faults == 0 {
            return Ok(());
        }
        let from = all.len();
        let released = Report::Release {
            is_step_started: true,
        };
        self.report(released, self.hold.step, Phase::Claimed, all)?;
        for next in &mut all[from..] {
            next.left.faults -= 1;
        }
        Ok(())
    }
}

/// The lease expires, at any time. The holder of the job does not know it yet.
fn reaps(state: &State, mutant: Mutant, all: &mut Vec<State>) -> Nexts {
    if let Some((which, read)) = &state.read_by_reaper
        && let Ok(moved) = apply(read, &Trigger::Reap, NOW, &SeededEntropy::new(1))
    {
        let mut next = state.with(*which, moved, None)?;
        next.read_by_reaper = None;
        all.push(next);
    }
    if state.left.expiries == 0 || state.read_by_reaper.is_some() {
        return Ok(());
    }
    for which in BOTH {
        let Some(job) = state.job(which) else {
            continue;
        };
        let mut read: Job = job.clone();
        let mut next = state.clone();
        next.left.expiries -= 1;
        if mutant == Mutant::BlindReap && read.status == JobStatus::Running {
            next.read_by_reaper = Some((which, Box::new(read)));
            all.push(next);
            continue;
        }
        if mutant == Mutant::ReapIgnoresStatus {
            read.status = JobStatus::Running;
        }
        if let Ok(moved) = apply(&read, &Trigger::Reap, NOW, &SeededEntropy::new(1)) {
            all.push(next.with(which, moved, None)?);
        }
    }
    Ok(())
}

/// An operator holds the lane, and releases it again.
fn holds(state: &State, mutant: Mutant, all: &mut Vec<State>) -> Nexts {
    let mut next = state.clone();
    if state.held {
        next.held = false;
    } else if state.left.holds > 0 {
        next.held = true;
        next.left.holds -= 1;
    } else {
        return Ok(());
    }
    if mutant != Mutant::HoldAlone {
        next.lane.held_by = next
            .held
            .then_some(HoldSource::Operator)
            .into_iter()
            .collect();
        next.lane.update_state(NOW);
    }
    all.push(next);
    Ok(())
}

/// Commands of operators, and deadlines.
fn orders(state: &State, mutant: Mutant, all: &mut Vec<State>) -> Nexts {
    for which in BOTH {
        let wake = Trigger::Wake { signalled: false };
        all.extend(state.apply_trigger(which, &wake, None)?);
    }
    if state.left.orders == 0 {
        return Ok(());
    }
    for which in BOTH {
        let reason = "because".to_owned();
        for trigger in [
            Trigger::Retry,
            Trigger::Replay,
            Trigger::ForceComplete,
            Trigger::Cancel { reason },
            Trigger::Deadline,
        ] {
            if mutant != Mutant::RetryWhileUndone && stands_still(state, which, &trigger) {
                continue;
            }
            if let Some(mut next) = state.apply_trigger(which, &trigger, None)? {
                if which == Which::Work && matches!(trigger, Trigger::Cancel { .. }) {
                    undo(state, &mut next, mutant)?;
                }
                next.left.orders -= 1;
                all.push(next);
            }
        }
    }
    Ok(())
}

/// Returns whether the job must not continue: a job that is being undone, or the undo job of a job that has continued.
fn stands_still(state: &State, which: Which, trigger: &Trigger) -> bool {
    let status = |which| state.job(which).map(|job| job.status);
    let goes_on = matches!(
        trigger,
        Trigger::Retry | Trigger::Replay | Trigger::ForceComplete
    );
    if status(which) != Some(JobStatus::Failed) || !goes_on {
        return false;
    }
    match which {
        Which::Work => status(Which::Undo).is_some_and(|undo| !undo.is_terminal()),
        Which::Undo => status(Which::Work) != Some(JobStatus::Failed),
    }
}

fn undo(state: &State, next: &mut State, mutant: Mutant) -> Nexts {
    let (Some(before), Some(cancelled)) = (state.job(Which::Work), next.job(Which::Work)) else {
        return Ok(());
    };
    let longest_step = match mutant {
        Mutant::HastyUndo => Duration::ZERO,
        _ => MAX_STEP_DURATION,
    };
    let run_at = effects_settled_at(before, &next.lane, longest_step);
    match undo_job(cancelled, |_| true) {
        Some(undo) => next.add_undo(undo, run_at),
        None => Ok(()),
    }
}
