//! Tests of idempotency keys.

use std::time::Duration;

use core_stripe_fake::{Fault, Matcher};

use crate::world::World;

const PATH: &str = "/v1/customers";

#[tokio::test]
async fn a_repeated_request_has_one_effect_and_the_same_response() {
    let world = World::start().await;
    let first = world.post_with_key("k", PATH, "name=Ada").await;
    let second = world.post_with_key("k", PATH, "name=Ada").await;
    assert_eq!(first.json(), second.json());
    assert_eq!(first.header("idempotent-replayed"), None);
    assert_eq!(second.header("idempotent-replayed"), Some("true"));
    assert_eq!(second.header("idempotency-key"), Some("k"));
    assert_eq!(world.fake.customers(), 1);
}

#[tokio::test]
async fn other_parameters_under_a_key_are_refused() {
    let world = World::start().await;
    world.post_with_key("k", PATH, "name=Ada").await.object();
    let other = world.post_with_key("k", PATH, "name=Bob").await;
    assert_eq!(other.failure().1, "idempotency_error");
    let invoices = world.post_with_key("k", "/v1/invoices", "name=Ada").await;
    assert_eq!(invoices.failure().1, "idempotency_error");
}

#[tokio::test]
async fn a_key_is_new_again_after_a_day() {
    let world = World::start().await;
    world.post_with_key("k", PATH, "name=Ada").await.object();
    world.fake.advance(Duration::from_hours(24));
    let again = world.post_with_key("k", PATH, "name=Ada").await;
    assert_eq!(again.header("idempotent-replayed"), None);
    assert_eq!(world.fake.customers(), 2);
}

#[tokio::test]
async fn invalid_parameters_are_not_kept_and_declines_are() {
    let world = World::start().await;
    assert_eq!(
        world.post_with_key("k", PATH, "colour=red").await.status,
        400
    );
    world.post_with_key("k", PATH, "name=Ada").await.object();
    let customer = world.customer().await;
    let attach = "/v1/payment_methods/pm_card_chargeDeclined/attach";
    let form = format!("customer={customer}");
    assert_eq!(world.post_with_key("d", attach, &form).await.status, 402);
    let again = world.post_with_key("d", attach, &form).await;
    assert_eq!(
        (again.status, again.header("idempotent-replayed")),
        (402, Some("true"))
    );
}

#[tokio::test]
async fn a_server_error_after_the_start_is_kept() {
    let world = World::start().await;
    for (key, has_effect) in [("a", false), ("b", true)] {
        let fault = Fault::KeptServerError { has_effect };
        world.fake.inject(Matcher::new("POST", PATH), fault);
        assert_eq!(world.post_with_key(key, PATH, "name=Ada").await.status, 500);
        let again = world.post_with_key(key, PATH, "name=Ada").await;
        assert_eq!(
            (again.status, again.header("idempotent-replayed")),
            (500, Some("true"))
        );
        assert_eq!(world.fake.customers(), usize::from(has_effect));
    }
}

#[tokio::test]
async fn a_key_whose_request_still_runs_is_refused() {
    let world = World::start().await;
    let delay = Fault::Delay(Duration::from_secs(60));
    world.fake.inject(Matcher::new("POST", PATH), delay);
    tokio::select! {
        _ = world.post_with_key("k", PATH, "name=Ada") => panic!("the response is delayed"),
        () = until_requested(&world) => {}
    }
    let second = world.post_with_key("k", PATH, "name=Ada").await;
    let expected = (
        409,
        "idempotency_error".to_owned(),
        "idempotency_key_in_use".to_owned(),
    );
    assert_eq!(second.failure(), expected);
}

async fn until_requested(world: &World) {
    while world.fake.requests().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_key_has_at_most_255_characters() {
    let world = World::start().await;
    let key = "k".repeat(256);
    assert_eq!(world.post_with_key(&key, PATH, "").await.status, 400);
    world.post_with_key(&key[1..], PATH, "").await.object();
}
