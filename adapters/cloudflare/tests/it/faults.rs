//! Every fault at every request of every operation: the job engine asks again, and what was wanted is there once.

use std::collections::BTreeSet;
use std::time::Duration;

use core_cloudflare_fake::{Fault, Matcher, Pace, Silence};
use core_domain::port::ProviderError;
use core_domain::testing::seeds;

use crate::operations::{Operation, all};
use crate::world::World;

/// How often the engine tries.
const ATTEMPTS: usize = 8;

/// Enough for any that fails at random, as its dead letter is replayed.
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

/// The requests an operation sends when nothing is wrong, each once.
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

/// Asks until it works, as the engine does: a failure that no retry mends ends it.
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
    panic!("{case}: it never worked");
}

#[tokio::test]
async fn whatever_goes_wrong_with_a_request_the_next_attempts_mend_and_nothing_is_made_twice() {
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

/// Twelve look-ups fail: more than a call is sent by itself.
#[tokio::test]
async fn what_exists_already_and_cannot_be_looked_up_is_looked_up_by_the_next_attempt() {
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
async fn a_request_that_is_refused_with_status_200_has_not_worked() {
    for operation in all() {
        for (method, path) in requests_of(operation).await {
            let world = World::new().await;
            operation.prepare(&world).await.unwrap();
            let fault = Fault::SuccessFalseWith200;
            world.fake.inject(Matcher::new(&method, &path), fault);
            // Some calls go on without what was refused; then it is there all the same.
            if operation.perform(&world).await.is_err() {
                operation.perform(&world).await.unwrap();
            }
            operation.check(&world).await;
        }
    }
}

#[tokio::test]
async fn an_account_that_fails_at_random_ends_where_a_good_one_does() {
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
