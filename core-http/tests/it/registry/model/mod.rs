//! Random sequences of operations on the registry, sequential and concurrent. The invariants hold, and every store and
//! every surface (HTTP, use cases) returns the same results and ends in the same state.

mod invariants;
mod known;
mod operation;
mod state;
mod use_cases;

use std::collections::BTreeSet;

use core_domain::testing;
use futures_util::future::join_all;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use crate::world::{Backend, World};
use invariants::{assert_ended_deployments_unchanged, assert_invariants};
use known::CreatedRecords;
use operation::{ConcreteRequest, Operation, Request, Row, operation};
use state::State;

/// The interface through which operations are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surface {
    Http,
    UseCases,
}

/// The id of every request, so that no id is generated for one.
const REQUEST_ID: &str = "model";

/// The body of the response, or the code of the error.
type Outcome = Result<Value, String>;

async fn over_http(world: &World, row: &Row, ask: &ConcreteRequest) -> Outcome {
    let mut rows = world.registry.0.endpoints().iter();
    let row = rows.find(|r| r.operation() == row.operation).unwrap();
    let mut values = ask.path.iter();
    let segments = row.path().split('/').map(|segment| match segment {
        parameter if parameter.starts_with('{') => values.next().unwrap(),
        word => word,
    });
    let mut path = segments.collect::<Vec<_>>().join("/");
    if !ask.query.is_empty() {
        path = format!("{path}?{}", ask.query);
    }
    let headers = [("x-request-id", REQUEST_ID)];
    let (method, body) = (row.method().as_str(), ask.body.clone());
    let answer = world
        .registry
        .send(&ask.caller, method, &path, &headers, body);
    let answer = answer.await;
    assert!(!answer.status.is_server_error(), "{}", answer.json);
    if answer.is_success() {
        return Ok(answer.json);
    }
    Err(answer.code().to_owned())
}

async fn outcome_of(
    world: &World,
    surface: Surface,
    request: &Request,
    ask: &ConcreteRequest,
) -> Outcome {
    match surface {
        Surface::Http => over_http(world, request.row, ask).await,
        Surface::UseCases => {
            let answered = use_cases::ask(world, request.row, ask).await;
            answered.map_err(|error| error.code().as_str().to_owned())
        }
    }
}

fn remember(
    known: &mut CreatedRecords,
    request: &Request,
    ask: &ConcreteRequest,
    outcome: &Outcome,
) {
    let (Some(thing), Ok(made)) = (request.row.makes, outcome) else {
        return;
    };
    known.add(thing, made["id"].as_str().unwrap(), &ask.path);
}

/// Runs the operations in sequence. Returns their outcomes and the final state.
async fn run(
    backend: Backend,
    surface: Surface,
    operations: &[Operation],
) -> (Vec<Outcome>, State) {
    let world = World::on(backend).await;
    let mut known = CreatedRecords::default();
    // Operations that are not requests have the outcome `null`.
    let mut outcomes = vec![Ok(Value::Null); operations.len()];
    for (operation, outcome) in operations.iter().zip(&mut outcomes) {
        match operation {
            Operation::Request(request) => {
                let ask = request.ask(&known);
                *outcome = outcome_of(&world, surface, request, &ask).await;
                remember(&mut known, request, &ask, outcome);
            }
            Operation::RunJobs => run_jobs(&world).await,
            Operation::Tick(seconds) => world.tick(*seconds),
        }
        // Gives the rows of a list different creation times.
        world.tick(1);
    }
    let state = State::of(&world).await;
    assert_invariants(&state);
    (outcomes, state)
}

#[track_caller]
fn assert_alike(
    operations: &[Operation],
    (outcomes, state): &(Vec<Outcome>, State),
    (others, other_state): &(Vec<Outcome>, State),
) {
    for (operation, (outcome, other)) in operations.iter().zip(outcomes.iter().zip(others)) {
        assert_eq!(outcome, other, "{operation:?}");
    }
    assert_eq!(state, other_state);
}

/// Runs the operations in groups of four concurrent ones, and checks the invariants after each group.
async fn race(backend: Backend, operations: &[Operation]) {
    let world = World::on(backend).await;
    let mut known = CreatedRecords::default();
    let mut before = State::of(&world).await;
    for at_once in operations.chunks(4) {
        let running = at_once.iter().map(async |operation| match operation {
            Operation::Request(request) => {
                let ask = request.ask(&known);
                let outcome = outcome_of(&world, Surface::Http, request, &ask).await;
                Some((request, ask, outcome))
            }
            Operation::RunJobs => {
                run_jobs(&world).await;
                None
            }
            Operation::Tick(seconds) => {
                world.tick(*seconds);
                None
            }
        });
        for (request, ask, outcome) in join_all(running).await.into_iter().flatten() {
            remember(&mut known, request, &ask, &outcome);
        }
        world.tick(1);
        let after = State::of(&world).await;
        assert_invariants(&after);
        assert_ended_deployments_unchanged(&before, &after);
        before = after;
    }
}

async fn run_jobs(world: &World) {
    world.run_timers().await;
    world.run_jobs().await;
}

fn any_operations(cases: u32, most: usize, check: impl AsyncFn(&[Operation])) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let config = Config {
        cases: testing::cases(cases),
        ..Config::default()
    };
    let operations = prop::collection::vec(operation(), 1..most);
    let outcome = TestRunner::new(config).run(&operations, |operations| {
        runtime.block_on(check(&operations));
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn any_sequence_has_the_same_results_over_http_and_with_use_cases() {
    any_operations(40, 120, async |operations| {
        let over_http = run(Backend::Memory, Surface::Http, operations).await;
        let by_use_cases = run(Backend::Memory, Surface::UseCases, operations).await;
        assert_alike(operations, &over_http, &by_use_cases);
    });
}

#[test]
fn any_sequence_has_the_same_results_on_every_store() {
    any_operations(6, 80, async |operations| {
        let in_memory = run(Backend::Memory, Surface::Http, operations).await;
        for backend in [Backend::Sqlite, Backend::Postgres, Backend::Sqlx] {
            let stored = run(backend, Surface::Http, operations).await;
            assert_alike(operations, &in_memory, &stored);
        }
    });
}

#[test]
fn concurrent_operations_keep_the_invariants_in_memory() {
    any_operations(20, 80, async |operations| {
        race(Backend::Memory, operations).await
    });
}

#[test]
fn concurrent_operations_keep_the_invariants_on_sqlite() {
    any_operations(5, 60, async |operations| {
        race(Backend::Sqlite, operations).await
    });
}

#[test]
fn concurrent_operations_keep_the_invariants_on_postgres() {
    any_operations(5, 60, async |operations| {
        race(Backend::Postgres, operations).await
    });
}

#[test]
fn concurrent_operations_keep_the_invariants_on_sqlx() {
    any_operations(3, 60, async |operations| {
        race(Backend::Sqlx, operations).await
    });
}

/// Ensures that the sequences do more than cause refusals, which would keep every invariant.
#[test]
fn every_operation_succeeds_in_some_sequence() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut runner = TestRunner::deterministic();
    let mut refused_always: BTreeSet<&str> = operation::rows().map(|row| row.operation).collect();
    let sequences = prop::collection::vec(operation(), 200);
    for _ in 0..40 {
        let operations = sequences.new_tree(&mut runner).unwrap().current();
        let outcomes = runtime
            .block_on(run(Backend::Memory, Surface::Http, &operations))
            .0;
        for (operation, outcome) in operations.iter().zip(outcomes) {
            if let (Operation::Request(request), Ok(_)) = (operation, outcome) {
                refused_always.remove(request.row.operation);
            }
        }
    }
    assert!(refused_always.is_empty(), "{refused_always:?}");
}
