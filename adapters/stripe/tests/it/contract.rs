//! Tests of the requests of every operation against Stripe's OpenAPI description.

use std::collections::BTreeSet;
use std::path::Path;

use core_domain::port::{Close, Payments};
use core_stripe_fake::contract::Contract;
use core_stripe_fake::{Exchange, Settings};

use crate::world::{World, details, key};

const DOCUMENT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/data/stripe-api.json"
);

/// Calls every method of the port and returns the exchanges.
async fn exchanges() -> Vec<Exchange> {
    let settings = Settings {
        record_exchanges: true,
        ..Settings::default()
    };
    let portal = "bpc_own".to_owned();
    let world = World::with(settings, |options| {
        options.portal_configuration = Some(portal)
    })
    .await;
    let stripe = &world.stripe;
    let customer = world.customer().await;
    let (update, changed) = (key("update"), details());
    let updated = stripe.update_customer(&update, &customer, &changed).await;
    updated.unwrap();
    stripe
        .create_setup_intent(&key("setup"), &customer)
        .await
        .unwrap();
    let method = world.attach("pm_card_visa", &customer).await;
    let confirmed = world
        .attach("pm_card_authenticationRequired", &customer)
        .await;
    stripe.method(&method).await.unwrap();
    stripe.methods(&customer).await.unwrap();
    stripe
        .set_default(&key("default"), &customer, &method)
        .await
        .unwrap();
    let pushed = stripe
        .push_invoice(&world.invoice(&customer, 120))
        .await
        .unwrap();
    world.collect(&pushed, &confirmed, "pay:1").await.unwrap();
    world.look_up(&customer).await.unwrap();
    world.collect(&pushed, &method, "pay:2").await.unwrap();
    let (charge, refund) = world.fake.refund(&pushed.id, Some(500)).unwrap();
    stripe.refunds(&charge).await.unwrap();
    stripe.refunds(&refund).await.unwrap();
    for (invoice, how) in [
        ("i2", Close::Void),
        ("i3", Close::Uncollectible),
        ("i4", Close::PaidOutOfBand),
    ] {
        let mut own = world.invoice(&customer, 1);
        own.id = core_domain::kernel::InvoiceId::parse(invoice).unwrap();
        let own = stripe.push_invoice(&own).await.unwrap();
        stripe.close(&key(invoice), &own.id, how).await.unwrap();
    }
    let mut wrong = world.invoice(&customer, 2);
    wrong.id = core_domain::kernel::InvoiceId::parse("i5").unwrap();
    wrong.lines.pop();
    stripe.push_invoice(&wrong).await.unwrap_err();
    stripe
        .portal(&customer, "https://example.com/")
        .await
        .unwrap();
    world.fake.lose_dispute(&pushed.id).unwrap();
    for event in stripe.events_since(world.now()).await.unwrap() {
        stripe.lost_dispute(&event.id).await.unwrap();
    }
    stripe.detach(&key("detach"), &method).await.unwrap();
    world.fake.exchanges()
}

#[tokio::test]
async fn every_request_matches_the_description() {
    let contract = Contract::read(Path::new(DOCUMENT)).unwrap();
    let (mut violations, mut operations) = (Vec::new(), BTreeSet::new());
    for exchange in exchanges().await {
        let finding = contract.check(&exchange);
        let found = finding.violations.into_iter();
        violations.extend(found.map(|violation| format!("{:?} {violation}", exchange.recorded)));
        operations.insert(finding.operation.unwrap());
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
    // All of the description but those that only tests and browsers need, and those for failures stored under a key.
    let others = [
        "GET /v1/customers/{id}",
        "GET /v1/invoices/{id}/lines",
        "GET /v1/setup_intents/{id}",
        "POST /v1/payment_intents/{id}/confirm",
        "POST /v1/payment_methods",
        "POST /v1/refunds",
        "POST /v1/setup_intents/{id}/confirm",
        "POST /v1/webhook_endpoints",
    ];
    let expected = contract.operations().into_iter();
    let expected = expected.filter(|operation| !others.contains(&operation.as_str()));
    assert_eq!(operations, expected.collect());
}

#[tokio::test]
async fn every_change_has_a_key() {
    for exchange in exchanges().await {
        let recorded = &exchange.recorded;
        let is_portal = recorded.path.starts_with("/v1/billing_portal");
        let needs_key = recorded.method == "POST" && !is_portal;
        assert_eq!(
            recorded.idempotency_key.is_some(),
            needs_key,
            "{recorded:?}"
        );
    }
}
