//! Tests of events and webhooks that the fake makes.

use std::time::Duration;

use core_domain::billing::Currency;
use core_domain::kernel::Timestamp;
use core_domain::port::{LostDispute, Payments, ProviderEvent, ProviderRefund, WebhookError};
use core_stripe_fake::Settings;
use serde_json::json;

use crate::world::World;

fn verify(world: &World, now: Timestamp) -> Vec<Result<ProviderEvent, WebhookError>> {
    let events = world.fake.events();
    let verified = events.iter().map(|event| {
        world
            .stripe
            .verify_webhook(&event.body, &event.signature, now)
    });
    verified.collect()
}

#[tokio::test]
async fn webhooks_and_the_list_have_the_same_events_oldest_first() {
    let world = World::new().await;
    let customer = world.customer().await;
    let method = world.attach("pm_card_visa", &customer).await;
    let invoice = world.push(&customer).await;
    world.collect(&invoice, &method, "pay:1").await.unwrap();
    let start = world.now();
    let received: Vec<_> = verify(&world, start)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let listed = world.stripe.events_since(start).await.unwrap();
    assert_eq!(listed, received);
    assert_eq!(listed[0].kind, "customer.created");
    assert_eq!(listed[0].customer.as_ref(), Some(&customer));
    let paid = listed
        .iter()
        .find(|event| event.kind == "invoice.paid")
        .unwrap();
    assert_eq!(paid.object_id.as_ref(), Some(&invoice.id));
    assert_eq!(paid.customer.as_ref(), Some(&customer));
    let later = Timestamp::from_seconds(start.seconds() + 1);
    assert_eq!(world.stripe.events_since(later).await.unwrap(), []);
}

#[tokio::test]
async fn an_object_without_an_id_is_no_obstacle() {
    let world = World::new().await;
    world
        .fake
        .emit("balance.available", json!({"object": "balance"}));
    let events = world.stripe.events_since(world.now()).await.unwrap();
    assert_eq!(
        (events[0].object_id.as_ref(), events[0].customer.as_ref()),
        (None, None)
    );
}

#[tokio::test]
async fn old_webhooks_and_those_of_another_version_or_mode_are_refused() {
    let world = World::new().await;
    world.customer().await;
    let later = world.now().plus(Duration::from_secs(301));
    assert_eq!(verify(&world, later), [Err(WebhookError::Stale)]);
    let settings = Settings {
        event_version: "2027-03-01.foxglove".to_owned(),
        ..Settings::default()
    };
    let world = World::with(settings, |_| ()).await;
    world.customer().await;
    let refused = verify(&world, world.now());
    assert!(
        matches!(refused[..], [Err(WebhookError::Malformed(_))]),
        "{refused:?}"
    );
    let world = World::new().await;
    let body = br#"{"id":"evt_1","type":"x","created":1,"livemode":true,"api_version":null,"data":{"object":{}}}"#;
    let signature = world.fake.sign(body, world.fake.now());
    let refused = world.stripe.verify_webhook(body, &signature, world.now());
    assert_eq!(refused, Err(WebhookError::OtherMode));
}

#[tokio::test]
async fn a_refund_is_read_by_its_charge_or_by_its_id() {
    let world = World::new().await;
    let customer = world.customer().await;
    let method = world.attach("pm_card_visa", &customer).await;
    let invoice = world.push(&customer).await;
    world.collect(&invoice, &method, "pay:1").await.unwrap();
    let (charge, first) = world.fake.refund(&invoice.id, Some(500)).unwrap();
    let (_, second) = world.fake.refund(&invoice.id, None).unwrap();
    let refund = |id: &str, amount| ProviderRefund {
        id: id.to_owned(),
        amount,
        currency: Currency::USD,
        is_complete: true,
    };
    let refunds = world.stripe.refunds(&charge).await.unwrap();
    assert_eq!(refunds, [refund(&second, 2_400), refund(&first, 500)]);
    let one = world.stripe.refunds(&first).await.unwrap();
    assert_eq!(one, [refund(&first, 500)]);
    assert_eq!(world.stripe.refunds("re_missing").await.unwrap(), []);
    let events = world.stripe.events_since(world.now()).await.unwrap();
    let refunded = events
        .iter()
        .filter(|event| event.kind == "charge.refunded");
    let refunded: Vec<_> = refunded
        .map(|event| (event.object_id.as_deref(), event.customer.as_deref()))
        .collect();
    let expected = (Some(charge.as_str()), Some(customer.as_str()));
    assert_eq!(refunded, [expected, expected]);
}

#[tokio::test]
async fn a_lost_dispute_is_read_from_its_event() {
    let world = World::new().await;
    let customer = world.customer().await;
    let method = world.attach("pm_card_visa", &customer).await;
    let invoice = world.push(&customer).await;
    world.collect(&invoice, &method, "pay:1").await.unwrap();
    let id = world.fake.lose_dispute(&invoice.id).unwrap();
    let events = world.stripe.events_since(world.now()).await.unwrap();
    for event in &events {
        let lost = world.stripe.lost_dispute(&event.id).await.unwrap();
        let expected = LostDispute {
            id: id.clone(),
            customer: customer.clone(),
            amount: 2_900,
            currency: Currency::USD,
        };
        let is_dispute = event.kind == "charge.dispute.closed";
        assert_eq!(lost, is_dispute.then_some(expected), "{}", event.kind);
    }
    assert!(
        events
            .iter()
            .any(|event| event.kind == "charge.dispute.closed")
    );
    let missing = world.stripe.lost_dispute("evt_missing").await.unwrap();
    assert_eq!(missing, None);
}
