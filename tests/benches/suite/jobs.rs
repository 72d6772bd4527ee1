//! How many jobs that do nothing are drained in a second, from few and from many lanes.

use serde_json::{from_value, json};

use crate::drain::{Drain, Drained};
use crate::harness::backend::{Backend, Place};
use crate::harness::cpu::Cores;
use crate::harness::process::Process;
use crate::plan::Plan;
use crate::report::Report;

/// Jobs of one step drained in a second, of memory, SQLite and Postgres.
const GOALS: [f64; 3] = [20_000.0, 5_000.0, 4_000.0];

/// The same with three steps, on Postgres.
const THREE_STEPS_GOAL: f64 = 2_000.0;

pub(crate) fn measure(plan: &Plan, report: &mut Report) {
    for backend in &plan.backends {
        for lanes in &plan.lanes {
            let drained = drain(plan, *backend, *lanes, 1);
            let goal = Some(GOALS[*backend as usize]);
            report.drained(*backend, *lanes, 1, drained, goal);
        }
        let lanes = plan.jobs;
        let drained = drain(plan, *backend, lanes, 3);
        let goal = (*backend == Backend::Postgres).then_some(THREE_STEPS_GOAL);
        report.drained(*backend, lanes, 3, drained, goal);
    }
}

/// Drains at least as many jobs as planned from so many lanes, in a process and a store of their own.
fn drain(plan: &Plan, backend: Backend, lanes: u32, steps: usize) -> Drained {
    let place = Place::new(backend);
    let drain = Drain {
        location: place.location.clone(),
        jobs: plan.jobs.max(lanes),
        lanes,
        steps,
        limit: plan.drain_limit,
    };
    let mut process = Process::in_role("drain", &json!(drain), Cores::All);
    let drained = from_value(process.says("drained")).unwrap();
    process.end();
    drained
}
