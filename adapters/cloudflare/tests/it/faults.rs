//! Tests of every fault at every request of every operation: after retries the operation has taken effect exactly once.

use std::collections::BTreeSet;
use std::time::Duration;

use core_cloudflare_fake::{Fault, Matcher, Pace, Silence};
use core_domain::port::ProviderError;
use core_domain::testing::seeds;

use crate::operations::{Operation, all};
use crate::world::World;

/// Number of attempts of the job engine.
const ATTEMPTS: usize = 8;

/// Number of attempts under random faults, including replays of dead letters.
const ATTEMPTS_AT_RANDOM: usize = 200;

const FAULTS: [Fault; 10] = [
    Fault::TimeoutAfterEffect(Silence::Close),
    Fault::TimeoutBeforeEffect(Silence::Close),
    Fault::Status {
        status: 429,
        retry_after: Some(300),
    },
    Fault::Status {
        status: 503,
        retry_after: None,
    },
    Fault::StatusAfterEffect(500),
    Fault::StatusAfterEffect(502),
    Fault::DuplicateRequest,
    Fault::SlowBody(Pace::Drip(Duration::ZERO)),
    Fault::HtmlBody,
    Fault::EmptyBody204,
];

/// Returns the distinct requests that an operation sends without faults.
async fn requests_of(operation: Operation) -> BTreeSet<(String, String)> {
    let world = World::new().await;
    operation.prepare(&world).await.unwrap();
    world.fake.clear_requests();
    operation.perform(&world).await.unwrap();
    let requests: BTreeSet<_> = world
        .fake
        .requests()
        .into_iter()
        .map(|request| (request.method, request.path))
        .collect();
    operation.check(&world).await;
    assert!(!requests.is_empty(), "{operation:?}");
    requests
}

/// Repeats the operation until it succeeds, like the job engine. Panics on an error that is not retried.
async fn retry_until_done(operation: Operation, world: &mut World, attempts: usize, case: &str) {
    for _ in 0..attempts {
        match operation.perform(world).await {
            Ok(()) => return,
            Err(ProviderError::Throttled { .. }) => world.restart(),
            Err(
                ProviderError::Transient(_)
                | ProviderError::OutcomeUnknown(_)
                | ProviderError::Unfinished,
            ) => {}
            Err(error) => panic!("{case}: {error:?}"),
        }
    }
    panic!("{case}: no attempt succeeded");
}

#[tokio::test]
async fn retries_after_any_fault_take_effect_exactly_once() {
    for operation in all() {
        for (method, path) in requests_of(operation).await {
            for fault in FAULTS {
                let case = format!("{operation:?}, {method} {path}, {fault:?}");
                let mut world = World::new().await;
                operation.prepare(&world).await.unwrap();
                world.fake.inject(Matcher::new(&method, &path), fault);
                retry_until_done(operation, &mut world, ATTEMPTS, &case).await;
                assert_eq!(world.fake.waiting_faults(), 0, "{case}");
                operation.check(&world).await;
            }
        }
    }
}

/// Twelve lookups fail, which is more than the client retries for one call.
#[tokio::test]
async fn failed_lookups_after_a_duplicate_are_repeated_by_the_next_attempt() {
    let unavailable = Fault::Status {
        status: 503,
        retry_after: None,
    };
    for operation in all() {
        for (method, path) in requests_of(operation).await {
            if method == "GET" {
                continue;
            }
            let mut world = World::new().await;
            operation.prepare(&world).await.unwrap();
            let mut faults = vec![(Matcher::new(&method, &path), Fault::DuplicateRequest)];
            faults.extend((0..12).map(|_| (Matcher::any(), unavailable.clone())));
            world.fake.inject_in_order(faults);
            let case = format!("{operation:?}, {method} {path}");
            retry_until_done(operation, &mut world, ATTEMPTS * 2, &case).await;
            world.fake.clear_faults();
            operation.check(&world).await;
        }
    }
}

#[tokio::test]
async fn refusal_with_status_200_is_an_error() {
    for operation in all() {
        for (method, path) in requests_of(operation).await {
            let world = World::new().await;
            operation.prepare(&world).await.unwrap();
            let fault = Fault::SuccessFalseWith200;
            world.fake.inject(Matcher::new(&method, &path), fault);
            // Some operations continue after a refused request and still succeed.
            if operation.perform(&world).await.is_err() {
                operation.perform(&world).await.unwrap();
            }
            operation.check(&world).await;
        }
    }
}

#[tokio::test]
async fn random_faults_do_not_change_the_final_state() {
    for seed in seeds(20) {
        for operation in all() {
            let mut world = World::new().await;
            operation.prepare(&world).await.unwrap();
            world.fake.inject_random(seed, 15);
            let case = format!("{operation:?} with seed {seed}");
            retry_until_done(operation, &mut world, ATTEMPTS_AT_RANDOM, &case).await;
            world.fake.clear_faults();
            world.restart();
            operation.check(&world).await;
        }
    }
}
