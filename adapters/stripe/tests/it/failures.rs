//! Tests of every class of errors.

use std::time::Duration;

use core_domain::port::{CollectOutcome, Payments, PaymentsError};
use core_domain::testing::seeds;
use core_stripe::StripePayments;
use core_stripe_fake::{Fault, Pace, Settings, Silence};

use crate::world::{CUSTOMERS, LOST_AFTER, LOST_BEFORE, World, account, details, key};

async fn create(world: &World) -> Result<String, PaymentsError> {
    let (key, details) = (key("cus"), details());
    world.stripe.ensure_customer(&key, &details).await
}

fn status(status: u16, should_retry: Option<bool>) -> Fault {
    Fault::Status {
        status,
        retry_after: None,
        should_retry,
    }
}

#[tokio::test]
async fn errors_of_changes_have_their_class() {
    type Check = fn(&PaymentsError) -> bool;
    let unknown: Check = |error| matches!(error, PaymentsError::Unknown(_));
    let cases: [(Fault, Check); 9] = [
        (status(500, None), unknown),
        (status(503, None), unknown),
        (Fault::HtmlBody, unknown),
        (Fault::StatusAfterEffect(502), unknown),
        (status(409, None), |error| {
            matches!(error, PaymentsError::Conflict)
        }),
        (status(400, None), |error| {
            matches!(error, PaymentsError::Invalid(_))
        }),
        (status(404, None), |error| {
            matches!(error, PaymentsError::Invalid(_))
        }),
        (status(403, None), |error| {
            matches!(error, PaymentsError::Unauthorized(_))
        }),
        (status(401, None), |error| {
            matches!(error, PaymentsError::Unauthorized(_))
        }),
    ];
    for (fault, is_expected) in cases {
        let world = World::without_retries().await;
        world.inject("POST", CUSTOMERS, fault.clone());
        let error = create(&world).await.unwrap_err();
        assert!(is_expected(&error), "{fault:?}: {error:?}");
    }
}

#[tokio::test]
async fn a_lost_response_to_a_read_means_that_nothing_happened() {
    for fault in [LOST_BEFORE, status(500, None), Fault::HtmlBody] {
        let world = World::without_retries().await;
        world.inject("GET", "/v1/payment_methods/pm_1", fault);
        let error = world.stripe.method("pm_1").await.unwrap_err();
        assert!(matches!(error, PaymentsError::Unavailable(_)), "{error:?}");
    }
}

#[tokio::test]
async fn temporary_failures_are_retried_with_the_same_key() {
    for fault in [
        LOST_BEFORE,
        status(503, None),
        status(409, None),
        Fault::HtmlBody,
    ] {
        let world = World::new().await;
        for _ in 0..2 {
            world.inject("POST", CUSTOMERS, fault.clone());
        }
        create(&world).await.unwrap();
        assert_eq!(world.keys(CUSTOMERS), ["record:cus"; 3]);
        assert_eq!(world.fake.customers(), 1);
    }
}

#[tokio::test]
async fn stripe_can_forbid_a_retry() {
    let world = World::new().await;
    world.inject("POST", CUSTOMERS, status(503, Some(false)));
    assert!(matches!(
        create(&world).await,
        Err(PaymentsError::Unknown(_))
    ));
    assert_eq!(world.keys(CUSTOMERS), ["record:cus"]);
}

#[tokio::test]
async fn too_many_requests_stop_all_requests_for_the_time_in_the_response() {
    let world = World::new().await;
    let limited = Fault::Status {
        status: 429,
        retry_after: Some(17),
        should_retry: Some(true),
    };
    world.inject("POST", CUSTOMERS, limited);
    let error = create(&world).await.unwrap_err();
    assert!(matches!(error, PaymentsError::Throttled(wait) if wait == Duration::from_secs(17)));
    let sent = world.fake.requests().len();
    let error = world.stripe.methods("cus_1").await.unwrap_err();
    let PaymentsError::Throttled(wait) = error else {
        panic!("{error:?}");
    };
    assert!(wait > Duration::from_secs(10), "{wait:?}");
    assert_eq!(world.fake.requests().len(), sent);
}

#[tokio::test]
async fn a_lost_response_stays_unknown_if_the_repeated_request_is_not_accepted() {
    let world = World::new().await;
    let limited = Fault::Status {
        status: 429,
        retry_after: Some(17),
        should_retry: Some(true),
    };
    world.inject("POST", CUSTOMERS, LOST_AFTER);
    world.inject("POST", CUSTOMERS, limited);
    let error = create(&world).await.unwrap_err();
    assert!(matches!(error, PaymentsError::Unknown(_)), "{error:?}");
    assert_eq!(world.keys(CUSTOMERS), ["record:cus"; 2]);
    assert_eq!(world.fake.customers(), 1);
}

#[tokio::test]
async fn a_response_that_does_not_come_is_unknown_after_the_time_limit() {
    for fault in [
        Fault::TimeoutAfterEffect(Silence::Hang),
        Fault::SlowBody(Pace::Stall),
        Fault::Delay(Duration::from_hours(1)),
    ] {
        let world = World::with(Settings::default(), |options| {
            options.timeout = Duration::from_millis(100);
        })
        .await;
        world.inject("POST", CUSTOMERS, fault);
        let error = create(&world).await.unwrap_err();
        assert!(matches!(error, PaymentsError::Unknown(_)), "{error:?}");
        assert_eq!(world.fake.customers(), 1);
    }
}

#[tokio::test]
async fn jobs_have_more_time_than_waiting_callers() {
    let world = World::with(Settings::default(), |options| {
        options.timeout = Duration::from_millis(50);
    })
    .await;
    world.inject("GET", CUSTOMERS, Fault::Delay(Duration::from_millis(200)));
    world.inject("GET", CUSTOMERS, Fault::Delay(Duration::from_millis(200)));
    assert!(create(&world).await.is_err());
    let jobs = world.stripe.for_jobs();
    let created = jobs.ensure_customer(&key("cus"), &details()).await;
    created.unwrap();
}

#[tokio::test]
async fn an_unreachable_server_means_that_nothing_happened() {
    let world = World::without_retries().await;
    let account = account(&world.fake);
    drop(world.fake);
    let options = core_stripe::StripeOptions {
        breaker_failures: 2,
        ..core_stripe::StripeOptions::default()
    };
    let stripe = StripePayments::new(account, options, world.clock).unwrap();
    for _ in 0..4 {
        let error = stripe.detach(&key("detach"), "pm_1").await.unwrap_err();
        assert!(matches!(error, PaymentsError::Unavailable(_)), "{error:?}");
    }
}

#[tokio::test]
async fn after_five_failures_no_request_is_sent() {
    let world = World::without_retries().await;
    for _ in 0..5 {
        world.inject("GET", "/v1/payment_methods/pm_1", status(503, None));
        world.stripe.method("pm_1").await.unwrap_err();
    }
    let error = world.stripe.method("pm_1").await.unwrap_err();
    assert!(matches!(error, PaymentsError::Unavailable(_)), "{error:?}");
    // Clones and the provider for jobs have the same breaker.
    world.stripe.for_jobs().method("pm_1").await.unwrap_err();
    assert_eq!(world.fake.requests().len(), 5);
}

#[tokio::test]
async fn errors_of_the_request_do_not_open_the_breaker() {
    let world = World::without_retries().await;
    for _ in 0..9 {
        assert_eq!(world.stripe.method("pm_1").await.unwrap(), None);
    }
}

#[tokio::test]
async fn the_key_decides_the_mode() {
    for (secret_key, is_live) in [("rk_live_fake", true), ("sk_test_fake", false)] {
        let settings = Settings {
            secret_key: secret_key.to_owned(),
            ..Settings::default()
        };
        let world = World::with(settings, |_| ()).await;
        assert_eq!(world.stripe.is_live(), is_live);
        world.customer().await;
    }
}

#[tokio::test]
async fn objects_of_another_mode_are_refused() {
    let settings = Settings {
        is_other_mode: true,
        ..Settings::default()
    };
    let world = World::with(settings, |_| ()).await;
    let error = create(&world).await.unwrap_err();
    assert!(matches!(error, PaymentsError::Unauthorized(_)), "{error:?}");
}

/// The most tries of a change until it succeeds.
const MAX_TRIES: u64 = 200;

#[tokio::test]
async fn an_invoice_is_charged_once_however_often_requests_fail() {
    for seed in seeds(40) {
        let world = World::without_retries().await;
        let customer = world.customer().await;
        let card = world.attach("pm_card_visa", &customer).await;
        let invoice = world.invoice(&customer, 2);
        let mut is_charged = false;
        for nth in 0..MAX_TRIES {
            world.fake.inject_random(seed * MAX_TRIES + nth, 40);
            // The breaker opens after several failures; the clock moves past its pause.
            world.advance(Duration::from_secs(31));
            let Ok(pushed) = world.stripe.push_invoice(&invoice).await else {
                continue;
            };
            let collected = world.collect(&pushed, &card, "attempt").await;
            if matches!(collected, Ok(CollectOutcome::Paid)) {
                is_charged = true;
                break;
            }
        }
        assert!(is_charged, "seed {seed}");
        assert_eq!(world.fake.charges(), 1, "seed {seed}");
        assert_eq!(world.fake.invoices().len(), 1, "seed {seed}");
    }
}
