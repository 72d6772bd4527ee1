//! Tests of faults, authentication and malformed requests.

use std::time::Duration;

use core_stripe_fake::{Fault, Matcher, Pace, Settings, Silence};

use crate::world::World;

const PATH: &str = "/v1/customers";

fn post() -> Matcher {
    Matcher::new("POST", PATH)
}

async fn is_answered(world: &World) -> bool {
    let bearer = format!("Bearer {}", world.fake.secret_key());
    let headers = [("authorization", bearer.as_str())];
    world.try_send("POST", PATH, &headers, "").await.is_some()
}

#[tokio::test]
async fn a_response_is_lost_before_or_after_the_effect() {
    let world = World::start().await;
    world
        .fake
        .inject(post(), Fault::TimeoutBeforeEffect(Silence::Close));
    assert!(!is_answered(&world).await);
    assert_eq!(world.fake.customers(), 0);
    world
        .fake
        .inject(post(), Fault::TimeoutAfterEffect(Silence::Close));
    assert!(!is_answered(&world).await);
    assert_eq!(world.fake.customers(), 1);
    assert!(is_answered(&world).await);
}

#[tokio::test]
async fn scripted_errors_have_their_status_and_headers() {
    let world = World::start().await;
    world.fake.inject(
        post(),
        Fault::Status {
            status: 429,
            retry_after: Some(7),
            should_retry: Some(true),
        },
    );
    let limited = world.post(PATH, "").await;
    assert_eq!(
        limited.failure(),
        (
            429,
            "invalid_request_error".to_owned(),
            "rate_limit".to_owned()
        )
    );
    assert_eq!(limited.header("retry-after"), Some("7"));
    assert_eq!(limited.header("stripe-should-retry"), Some("true"));
    world.fake.inject(post(), Fault::StatusAfterEffect(503));
    assert_eq!(world.post(PATH, "").await.status, 503);
    assert_eq!(world.fake.customers(), 1);
    world.fake.inject(
        post(),
        Fault::Refusal {
            status: 403,
            kind: "invalid_request_error",
            error_code: "permission",
        },
    );
    assert_eq!(world.post(PATH, "").await.failure().2, "permission");
    world.fake.inject(post(), Fault::HtmlBody);
    assert!(world.post(PATH, "").await.json().is_null());
    world.fake.inject(
        post(),
        Fault::SlowBody(Pace::Drip(Duration::from_millis(1))),
    );
    world.post(PATH, "").await.object();
}

#[tokio::test]
async fn a_repeated_request_of_a_proxy_has_two_effects_only_without_a_key() {
    let world = World::start().await;
    world.fake.inject(post(), Fault::DuplicateRequest);
    world.post(PATH, "").await.object();
    assert_eq!(world.fake.customers(), 2);
    world.fake.inject(post(), Fault::DuplicateRequest);
    world.post_with_key("k", PATH, "").await.object();
    assert_eq!(world.fake.customers(), 3);
}

#[tokio::test]
async fn random_faults_are_equal_for_equal_seeds() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let world = World::start().await;
        world.fake.inject_random(7, 50);
        for _ in 0..40 {
            is_answered(&world).await;
        }
        let statuses = world.fake.requests().into_iter().map(|own| own.status);
        runs.push(statuses.collect::<Vec<_>>());
        world.fake.clear_faults();
        assert_eq!(world.fake.waiting_faults(), 0);
    }
    assert_eq!(runs[0], runs[1]);
    assert!(runs[0].contains(&None) && runs[0].contains(&Some(200)));
}

#[tokio::test]
async fn the_key_must_be_the_one_of_the_account() {
    let live = Settings {
        secret_key: "sk_live_x".to_owned(),
        ..Settings::default()
    };
    let world = World::start_with(live).await;
    assert_eq!(world.post(PATH, "").await.object()["livemode"], true);
    for headers in [&[][..], &[("authorization", "Bearer sk_test_fake")]] {
        let reply = world.try_send("GET", PATH, headers, "").await.unwrap();
        assert_eq!(reply.failure().0, 401);
    }
    // The user name of basic authentication.
    let basic = [("authorization", "Basic c2tfbGl2ZV94Og==")];
    world
        .try_send("GET", PATH, &basic, "")
        .await
        .unwrap()
        .object();
}

#[tokio::test]
async fn bodies_that_are_no_forms_are_refused() {
    let world = World::start().await;
    let json = [
        ("authorization", "Bearer sk_test_fake"),
        ("content-type", "application/json"),
    ];
    let reply = world.try_send("POST", PATH, &json, "{}").await.unwrap();
    assert_eq!(reply.failure().0, 400);
    for form in ["a[b=1", "metadata=x", "email=a&email=b"] {
        assert_eq!(world.post(PATH, form).await.failure().0, 400, "{form}");
    }
    let query = world.post("/v1/customers?name=Ada", "").await;
    assert_eq!(query.failure().0, 400);
}
