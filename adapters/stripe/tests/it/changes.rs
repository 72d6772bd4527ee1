//! Tests of customers and payment methods whose responses are lost or whose failures are stored.

use core_domain::port::{Payments, PaymentsError};
use core_stripe_fake::Fault;

use crate::world::{CUSTOMERS, LOST_AFTER, LOST_BEFORE, World, details, key};

#[tokio::test]
async fn a_customer_whose_creation_was_lost_is_created_once() {
    for fault in [LOST_BEFORE, LOST_AFTER, Fault::StatusAfterEffect(502)] {
        let world = World::without_retries().await;
        world.inject("POST", CUSTOMERS, fault);
        let lost = world.stripe.ensure_customer(&key("cus"), &details()).await;
        assert!(matches!(lost, Err(PaymentsError::Unknown(_))), "{lost:?}");
        // Even with a new key, as after a day.
        world
            .stripe
            .ensure_customer(&key("new"), &details())
            .await
            .unwrap();
        assert_eq!(world.fake.customers(), 1);
    }
}

#[tokio::test]
async fn a_stored_failure_does_not_create_a_second_customer() {
    for has_effect in [false, true] {
        let world = World::new().await;
        world.inject("POST", CUSTOMERS, Fault::KeptServerError { has_effect });
        world.customer().await;
        assert_eq!(world.fake.customers(), 1);
    }
}

#[tokio::test]
async fn a_failure_that_is_stored_under_every_key_is_unknown() {
    let world = World::new().await;
    let fault = Fault::KeptServerError { has_effect: false };
    let matcher = core_stripe_fake::Matcher::new("POST", CUSTOMERS);
    world.fake.inject_times(&matcher, &fault, 3);
    let lost = world.stripe.ensure_customer(&key("cus"), &details()).await;
    assert!(matches!(lost, Err(PaymentsError::Unknown(_))), "{lost:?}");
    assert_eq!(world.fake.customers(), 0);
}

#[tokio::test]
async fn customers_with_the_same_address_are_told_apart() {
    let world = World::new().await;
    let first = world.customer().await;
    let other = core_domain::port::PayingCustomer {
        id: core_domain::kernel::CustomerId::parse("c2").unwrap(),
        ..details()
    };
    let second = world
        .stripe
        .ensure_customer(&key("c2"), &other)
        .await
        .unwrap();
    assert_ne!(first, second);
    assert_eq!(world.customer().await, first);
}

#[tokio::test]
async fn attaching_and_detaching_survive_stored_failures() {
    for has_effect in [false, true] {
        let world = World::new().await;
        let customer = world.customer().await;
        let method = world.attach("pm_card_visa", &customer).await;
        let fault = Fault::KeptServerError { has_effect };
        world.inject("POST", "/v1/payment_methods/*/attach", fault.clone());
        let attached = world.stripe.attach(&key("again"), &method, &customer).await;
        assert_eq!(attached.unwrap().id, method);
        world.inject("POST", "/v1/payment_methods/*/detach", fault);
        let detached = world.stripe.detach(&key("detach"), &method).await;
        assert_eq!(detached.unwrap().customer, None);
    }
}

#[tokio::test]
async fn cards_are_read_over_several_pages() {
    let world = World::new().await;
    let customer = world.customer().await;
    for number in 0..130 {
        let key = key(&format!("a{number}"));
        let attached = world.stripe.attach(&key, "pm_card_visa", &customer).await;
        attached.unwrap();
    }
    let methods = world.stripe.methods(&customer).await.unwrap();
    assert_eq!(methods.len(), 130);
    let requests = world.fake.requests().into_iter();
    assert_eq!(
        requests
            .filter(|own| own.path == "/v1/payment_methods")
            .count(),
        2
    );
}
