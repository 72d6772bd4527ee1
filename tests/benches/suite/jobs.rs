//! Measures how many no-op jobs are drained per second, from few and from many lanes.

use serde_json::{from_value, json};

use crate::drain::{Drain, DrainResult};
use crate::harness::backend::{Backend, Place};
use crate::harness::cpu::Cores;
use crate::harness::process::Process;
use crate::plan::Plan;
use crate::report::Report;

/// The goals for jobs of one step per second, for memory, SQLite and Postgres.
const GOALS: [f64; 3] = [20_000.0, 5_000.0, 4_000.0];

/// The goal for jobs of three steps per second, on Postgres.
const THREE_STEPS_GOAL: f64 = 2_000.0;

pub(crate) fn measure(plan: &Plan, report: &mut Report) {
    for backend in &plan.backends {
        for lanes in &plan.lanes {
            let drained = drain(plan, *backend, *lanes, 1);
            let goal = GOALS.get(*backend as usize).copied();
            report.add_drain_result(*backend, *lanes, 1, drained, goal);
        }
        let lanes = plan.jobs;
        let drained = drain(plan, *backend, lanes, 3);
        let goal = (*backend == Backend::Postgres).then_some(THREE_STEPS_GOAL);
        report.add_drain_result(*backend, lanes, 3, drained, goal);
    }
}

/// Drains at least the planned number of jobs from so many lanes, in a separate process and store.
fn drain(plan: &Plan, backend: Backend, lanes: u32, steps: usize) -> DrainResult {
    let place = Place::new(backend);
    let drain = Drain {
        location: place.location.clone(),
        jobs: plan.jobs.max(lanes),
        lanes,
        steps,
        limit: plan.drain_limit,
    };
    let mut process = Process::in_role("drain", &json!(drain), Cores::All);
    let drained = from_value(process.wait_for("drained")).unwrap();
    process.end();
    drained
}
