//! The rules that hold at any time of a simulation, and at its end.

use std::collections::BTreeMap;

use core_domain::kernel::JobId;
use core_domain::port::Mode;
use core_domain::provisioning::{
    FailureKind, HoldSource, Job, JobEvent, JobEventQuery, JobHold, JobHoldQuery, JobStatus,
    JobTransition, StepStatus,
};
use serde_json::Value;

use super::Simulation;
use crate::jobs::audit::{assert_invariants, written_by_holders};
use crate::world::{ALL_JOBS, STEPS, list, now};

/// The observations of earlier checks.
#[derive(Debug, Default)]
pub(super) struct Observations {
    /// The outputs of done steps, by job, step, and the number of earlier undos of the step.
    done: BTreeMap<(JobId, usize, usize), Value>,
    fences: BTreeMap<JobId, i64>,
    /// The holds at the last check, and how many claims of held jobs there had been.
    held: Vec<(JobHold, usize)>,
}

impl Simulation {
    /// Checks I2, I3, I5, I7, I8, I17 and U3.
    pub(super) fn check(&mut self) -> Result<(), String> {
        self.world.provider.check_unique()?;
        let made = self.world.provider.names();
        if let Some(older) = self.older.iter().find(|name| !made.contains(name)) {
            return Err(format!("U3 {older} is older than its job and was removed"));
        }
        let mut uow = now(self.view.begin(Mode::Read)).unwrap();
        let jobs: Vec<Job> = now(list(uow.as_mut(), ALL_JOBS));
        let lost = |id: &&JobId| !jobs.iter().any(|job| job.id == **id);
        if let Some(id) = self.jobs.iter().find(lost) {
            return Err(format!("I5 {id} was lost"));
        }
        let mut histories = Vec::with_capacity(jobs.len());
        for job in &jobs {
            let history = JobEventQuery::After(job.id.clone(), 0);
            let events: Vec<JobEvent> = now(list(uow.as_mut(), history));
            written_by_holders(&events)?;
            fences_grow(&events)?;
            self.seen.stays_done(job, &events)?;
            histories.push(events);
        }
        let mut holds: Vec<JobHold> = now(list(uow.as_mut(), JobHoldQuery::Wide));
        holds.extend(now(list::<JobHold>(uow.as_mut(), self.lane_holds())));
        self.seen.held_is_not_claimed(&jobs, &histories, holds)
    }

    /// Checks I5, I9 and the result of undos, when no work is left.
    pub(super) fn check_ends(&self) -> Result<(), String> {
        let made = self.world.provider.names();
        for job in now(self.world.jobs()) {
            let stopped =
                |kind: FailureKind| kind == FailureKind::Cancelled || kind.opens_dead_letter();
            let there = |step: &str| made.contains(&format!("{}-{step}", job.id));
            let is_older = |step: &str| self.older.contains(&format!("{}-{step}", job.id));
            match job.status {
                JobStatus::Completed if job.forced => {}
                JobStatus::Completed => {
                    let all = job.steps.iter().all(|s| s.status == StepStatus::Succeeded);
                    if !all || (!job.is_undo() && !STEPS.iter().all(|step| there(step))) {
                        return Err(format!("I9 {job:?}"));
                    }
                }
                JobStatus::Failed if job.failure_kind.is_some_and(stopped) => {
                    let undone = job.steps.iter().filter(|s| s.status == StepStatus::Undone);
                    let mut own = undone.map(|step| &step.name).filter(|name| !is_older(name));
                    if let Some(step) = own.find(|name| there(name)) {
                        return Err(format!("U1 {step} is undone but exists: {job:?}"));
                    }
                }
                _ => return Err(format!("I5 has not ended: {job:?}")),
            }
        }
        now(assert_invariants(&self.world));
        Ok(())
    }
}

impl Observations {
    /// I7: a done step stays done, with the same output, until it is undone.
    fn stays_done(&mut self, job: &Job, events: &[JobEvent]) -> Result<(), String> {
        let undoing = [JobTransition::Undo, JobTransition::StopUndo].map(JobTransition::as_str);
        for (at, step) in job.steps.iter().enumerate() {
            let undone = events.iter().filter(|event| {
                let own = event.step.as_ref() == Some(&step.name);
                own && undoing.contains(&event.event_type.as_str())
            });
            let key = (job.id.clone(), at, undone.count());
            let succeeded = step.status == StepStatus::Succeeded;
            let output = step.output.clone().unwrap_or_default();
            match self.done.get(&key) {
                None if succeeded => drop(self.done.insert(key, output)),
                Some(before) if !succeeded || *before != output => {
                    return Err(format!("I7 step {at} was done: {job:?}"));
                }
                _ => {}
            }
        }
        let known = self.fences.insert(job.id.clone(), job.fence);
        match known.filter(|known| *known > job.fence) {
            Some(known) => Err(format!("I2 {known} before {job:?}")),
            None => Ok(()),
        }
    }

    /// I17: a job that was held at the last check and is still held has not been claimed since.
    fn held_is_not_claimed(
        &mut self,
        jobs: &[Job],
        histories: &[Vec<JobEvent>],
        holds: Vec<JobHold>,
    ) -> Result<(), String> {
        let claims = |hold: &JobHold| {
            let histories = jobs.iter().zip(histories);
            let held = histories.filter(|(job, _)| hold.holds(&job.lane, &job.kind));
            let events = held.flat_map(|(_, events)| events);
            events
                .filter(|event| event.event_type == JobTransition::Claim.as_str())
                .count()
        };
        for (hold, before) in &self.held {
            let still = holds.contains(hold) && hold.source == HoldSource::Operator;
            if still && claims(hold) != *before {
                return Err(format!("I17 claimed despite {hold:?}"));
            }
        }
        let counted = holds.into_iter().map(|hold| (claims(&hold), hold));
        self.held = counted.map(|(claims, hold)| (hold, claims)).collect();
        Ok(())
    }
}

/// I2, checked in the history.
fn fences_grow(events: &[JobEvent]) -> Result<(), String> {
    for pair in events.windows(2) {
        let moved = pair[1].from_status != Some(pair[1].to_status);
        let grows = pair[1].fence > pair[0].fence;
        if pair[1].fence < pair[0].fence || (moved && !grows) {
            return Err(format!("I2 {pair:?}"));
        }
    }
    Ok(())
}
