//! Events of the payment provider: what counts is the object there when the event is applied.

use bytes::Bytes;
use core_domain::billing::{Account, Currency, Customer, CustomerQuery};
use core_domain::kernel::{Clock, Context};
use core_domain::port::{Close, LostDispute, OpKey, Payments, ProviderEvent, ProviderRefund};
use core_domain::use_case::billing::inbox::catch_up;
use core_domain::use_case::billing::reconcile::compare_invoices;
use core_stripe_fake::SignedEvent;
use http::{Method, Request};
use serde_json::{Value, json};

use super::{paying_platform, platform_with_card};
use crate::world::{Answer, VALID_SIGNATURE, World, on_every_store, operator};

pub(super) const CONFIRMED: &str = "pm_card_authenticationRequired";

/// Sends an event to the webhook.
async fn send(world: &World, signature: Option<&str>, body: impl Into<Bytes>) -> Answer {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri("/webhooks/stripe")
        .header("content-type", "application/json");
    if let Some(signature) = signature {
        request = request.header("stripe-signature", signature);
    }
    let body = core_http::kernel::bytes_body(body.into());
    world.billing.raw(request.body(body).unwrap()).await
}

/// Sends an event of the Stripe account to the webhook, which must accept it.
pub(super) async fn deliver(world: &World, event: SignedEvent) {
    let sent = send(world, Some(&event.signature), event.body).await;
    let _ = sent.expect(200);
}

fn event(id: &str, kind: &str, customer: &str, object: &str) -> String {
    json!({ "id": id, "type": kind, "customer": customer, "object": object }).to_string()
}

/// Sends a signed event about an invoice of the only customer.
pub(super) async fn send_about(world: &World, id: &str, kind: &str, invoice: &Value) -> Answer {
    let customer = provider_customer(world).await;
    let body = event(id, kind, &customer, invoice["providerId"].as_str().unwrap());
    send(world, Some(VALID_SIGNATURE), body).await
}

/// Returns the id of the only customer at the provider.
async fn provider_customer(world: &World) -> String {
    let customers = world.all::<Customer>(&CustomerQuery::All).await;
    customers[0].provider_id.clone().unwrap()
}

/// Creates a platform whose first invoice waits for a confirmation, and returns it with that invoice.
pub(super) async fn waiting(world: &World) -> (String, Value) {
    let (platform, customer) = platform_with_card(world).await;
    world.use_card(&customer, CONFIRMED).await;
    let created = world.subscribe(&platform, "starter").await.expect(201);
    assert_eq!(created.text("status"), "incomplete");
    let invoice = world.last_invoice(&platform).await;
    assert_eq!(invoice["status"], "open");
    (platform, invoice)
}

/// Confirms the charge of an invoice at the provider, as the owner of the card.
pub(super) async fn confirm(world: &World, invoice: &Value) {
    let id = invoice["providerId"].as_str().unwrap();
    let key = OpKey::new("test", "confirm");
    let paid = world.payments.close(&key, id, Close::PaidOutOfBand).await;
    paid.unwrap();
}

async fn a_confirmed_charge_is_applied_once(world: World) {
    let (platform, invoice) = waiting(&world).await;
    confirm(&world, &invoice).await;
    let (customer, id) = (provider_customer(&world).await, &invoice["providerId"]);
    let id = id.as_str().unwrap();
    for (event_id, kind, is_duplicate) in [
        ("evt_2", "invoice.payment_action_required", false),
        ("evt_1", "invoice.paid", false),
        ("evt_1", "invoice.paid", true),
        ("evt_3", "invoice.payment_failed", false),
    ] {
        let body = event(event_id, kind, &customer, id);
        let received = send(&world, Some(VALID_SIGNATURE), body).await.expect(200);
        assert_eq!(received.json["duplicate"], is_duplicate, "{event_id}");
        world.run_jobs().await;
    }
    assert_eq!(world.subscription_of(&platform).await["status"], "active");
    let invoice = world.last_invoice(&platform).await;
    let seen = ["status", "amountPaid", "attemptCount"].map(|field| invoice[field].clone());
    assert_eq!(seen, [json!("paid"), json!(2900), json!(2)]);
    world.assert_books_balance().await;
}
on_every_store!(a_confirmed_charge_is_applied_once);

#[tokio::test]
async fn events_are_authenticated_by_their_signature() {
    let world = World::new();
    let body = event("evt_1", "invoice.paid", "cus_1", "in_1");
    let missing = send(&world, None, body.clone()).await;
    missing.expect_error(400, "VALIDATION_ERROR");
    let forged = send(&world, Some("forged"), body.clone()).await;
    forged.expect_error(400, "VALIDATION_ERROR");
    let large = " ".repeat(256 * 1024 + 1);
    let large = send(&world, Some(VALID_SIGNATURE), large).await;
    large.expect_error(413, "PAYLOAD_TOO_LARGE");
    let received = send(&world, Some(VALID_SIGNATURE), body).await.expect(200);
    assert_eq!(
        received.json,
        json!({ "received": true, "duplicate": false })
    );
}

#[tokio::test]
async fn an_invoice_that_was_closed_at_the_provider_alone_is_reported_and_not_changed() {
    let world = World::new();
    let (platform, invoice) = waiting(&world).await;
    let (customer, id) = (provider_customer(&world).await, &invoice["providerId"]);
    let id = id.as_str().unwrap();
    let key = OpKey::new("test", "void");
    let closed = world.payments.close(&key, id, Close::Void).await;
    closed.unwrap();
    let body = event("evt_1", "invoice.voided", &customer, id);
    let _ = send(&world, Some(VALID_SIGNATURE), body).await.expect(200);
    world.run_jobs().await;
    assert_eq!(world.last_invoice(&platform).await["status"], "open");
    let overview = world.billing.get(&operator(), "/operator/overview").await;
    assert_eq!(overview.expect(200).json["reconcileDifferences"], 1);
    world.assert_books_balance().await;
}

#[tokio::test]
async fn the_default_card_follows_the_provider() {
    let world = World::new();
    let (platform, customer) = platform_with_card(&world).await;
    let first = world.attach_card(&customer, "pm_card_visa").await;
    world.use_card(&customer, &first).await;
    let shown = |world: &World| {
        let path = format!("/customers/{customer}");
        let api = world.billing.clone();
        async move { api.get(&operator(), &path).await.expect(200).json }
    };
    let key = OpKey::new("test", "detach");
    let detached = world.payments.detach(&key, &first).await.unwrap();
    assert_eq!(detached.customer, None);
    let body = event(
        "evt_1",
        "payment_method.detached",
        &provider_customer(&world).await,
        &first,
    );
    let _ = send(&world, Some(VALID_SIGNATURE), body).await.expect(200);
    world.run_jobs().await;
    let default = shown(&world).await["defaultPaymentMethodId"].clone();
    assert!(default.is_string() && default != json!(first), "{default}");
    let _ = world.subscribe(&platform, "starter").await.expect(201);
    world.assert_books_balance().await;
}

fn refund(id: &str, amount: i64, is_complete: bool) -> ProviderRefund {
    ProviderRefund {
        id: id.to_owned(),
        amount,
        currency: Currency::USD,
        is_complete,
    }
}

/// Sends the event that a part of the only payment is refunded.
pub(super) async fn send_refund(world: &World) {
    world.payments.add_refund("ch_1", refund("re_1", 900, true));
    let customer = provider_customer(world).await;
    let body = event("evt_1", "charge.refunded", &customer, "ch_1");
    let _ = send(world, Some(VALID_SIGNATURE), body).await.expect(200);
}

async fn a_refund_is_posted_once_when_it_is_complete_and_the_invoice_stays_paid(world: World) {
    let (platform, _) = paying_platform(&world, "starter").await;
    let customer = provider_customer(&world).await;
    world.payments.add_refund("ch_1", refund("re_1", 900, true));
    world
        .payments
        .add_refund("ch_1", refund("re_2", 100, false));
    for event_id in ["evt_1", "evt_2"] {
        let body = event(event_id, "charge.refunded", &customer, "ch_1");
        let _ = send(&world, Some(VALID_SIGNATURE), body).await.expect(200);
        world.run_jobs().await;
    }
    let cash = async || {
        let sums = world.assert_books_balance().await;
        sums.sum(Currency::USD, Account::Cash)
    };
    assert_eq!(cash().await, 2_000);
    world.payments.add_refund("re_2", refund("re_2", 100, true));
    let body = event("evt_3", "refund.updated", &customer, "re_2");
    let _ = send(&world, Some(VALID_SIGNATURE), body).await.expect(200);
    world.run_jobs().await;
    assert_eq!(cash().await, 1_900);
    assert_eq!(world.last_invoice(&platform).await["status"], "paid");
}
on_every_store!(a_refund_is_posted_once_when_it_is_complete_and_the_invoice_stays_paid);

fn dispute(customer: &str) -> LostDispute {
    LostDispute {
        id: "dp_1".to_owned(),
        customer: customer.to_owned(),
        amount: 2_900,
        currency: Currency::USD,
    }
}

/// Sends an event about the end of a dispute.
async fn send_closed_dispute(world: &World, id: &str) {
    let body = json!({ "id": id, "type": "charge.dispute.closed", "object": "dp_1" }).to_string();
    let _ = send(world, Some(VALID_SIGNATURE), body).await.expect(200);
}

/// Sends the event that a dispute of the only customer is lost.
pub(super) async fn send_lost_dispute(world: &World) {
    let lost = dispute(&provider_customer(world).await);
    world.payments.add_dispute("evt_1", lost);
    send_closed_dispute(world, "evt_1").await;
}

async fn a_lost_dispute_is_posted_once_and_others_change_nothing(world: World) {
    let (platform, _) = paying_platform(&world, "starter").await;
    let known = dispute(&provider_customer(&world).await);
    world.payments.add_dispute("evt_1", known.clone());
    world.payments.add_dispute("evt_2", known);
    world.payments.add_dispute("evt_3", dispute("cus_unknown"));
    // The last event is about a dispute that is not lost.
    for id in ["evt_1", "evt_2", "evt_3", "evt_4"] {
        send_closed_dispute(&world, id).await;
        world.run_jobs().await;
    }
    let sums = world.assert_books_balance().await;
    assert_eq!(sums.sum(Currency::USD, Account::Cash), 0);
    assert_eq!(sums.sum(Currency::USD, Account::Revenue), 0);
    assert_eq!(world.last_invoice(&platform).await["status"], "paid");
}
on_every_store!(a_lost_dispute_is_posted_once_and_others_change_nothing);

#[tokio::test]
async fn a_missed_event_is_fetched_although_a_later_one_was_delivered() {
    let world = World::new();
    let (platform, invoice) = waiting(&world).await;
    confirm(&world, &invoice).await;
    let (customer, id) = (provider_customer(&world).await, &invoice["providerId"]);
    let missed = ProviderEvent {
        id: "evt_missed".to_owned(),
        kind: "invoice.paid".to_owned(),
        object_id: id.as_str().map(str::to_owned),
        customer: Some(customer.clone()),
        created_at: world.clock.now(),
    };
    world.payments.add_event(missed);
    world.tick(2 * 60 * 60);
    let body = event("evt_later", "customer.updated", &customer, &customer);
    let later = send(&world, Some(VALID_SIGNATURE), body).await;
    let _ = later.expect(200);
    for expected in [1, 0] {
        let cx = Context::system(world.app.entropy.clone());
        let store = world.app.store.as_ref();
        let fetched = catch_up(&cx, store, &world.billing_parts).await.unwrap();
        assert_eq!(fetched, expected);
        world.run_jobs().await;
    }
    assert_eq!(world.subscription_of(&platform).await["status"], "active");
}

#[tokio::test]
async fn a_difference_without_an_event_is_found_by_the_daily_comparison() {
    let world = World::new();
    let (platform, invoice) = waiting(&world).await;
    let cx = Context::system(world.app.entropy.clone());
    let store = world.app.store.as_ref();
    let compare = async || {
        let run = compare_invoices(&cx, store, &world.billing_parts).await;
        run.unwrap().done
    };
    confirm(&world, &invoice).await;
    assert_eq!(compare().await, 0, "the ledger needs none");
    world.payments.pretend_to_be_stripe();
    for expected in [1, 0] {
        assert_eq!(compare().await, expected);
        assert_eq!(world.subscription_of(&platform).await["status"], "active");
    }
    world.tick(24 * 60 * 60);
    assert_eq!(compare().await, 1);
    world.tick(36 * 24 * 60 * 60);
    assert_eq!(compare().await, 0);
    world.assert_books_balance().await;
}
