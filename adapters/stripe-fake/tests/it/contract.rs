//! Tests of every operation of the fake against Stripe's OpenAPI document.

use std::collections::BTreeSet;
use std::path::Path;

use bytes::Bytes;
use core_stripe_fake::Exchange;
use core_stripe_fake::contract::Contract;
use serde_json::{Value, json};

use crate::world::World;

const DOCUMENT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/data/stripe-api.json"
);
/// The documentation of the crate, which lists the operations.
const DOCUMENTATION: &str = include_str!("../../src/lib.rs");

fn contract() -> Contract {
    Contract::read(Path::new(DOCUMENT)).unwrap()
}

/// Returns the operations that the documentation lists.
fn documented_operations() -> BTreeSet<String> {
    let lines = DOCUMENTATION
        .lines()
        .filter_map(|line| line.strip_prefix("//! "));
    let is_operation = |line: &&str| line.contains(" /v1/");
    lines.filter(is_operation).map(str::to_owned).collect()
}

/// Sends every operation, with all its parameters and outcomes, and returns the exchanges.
async fn drive() -> Vec<Exchange> {
    let world = World::start().await;
    drive_customers(&world).await;
    drive_invoices(&world).await;
    drive_failures(&world).await;
    world.fake.exchanges()
}

async fn drive_customers(world: &World) {
    let customer = world.customer().await;
    let path = format!("/v1/customers/{customer}");
    world
        .get("/v1/customers?email=ada%40example.com&limit=3&created[gte]=1")
        .await
        .object();
    world.get(&path).await.object();
    let form = format!(
        "customer={customer}&usage=off_session&metadata[a]=b&allowed_payment_method_types[0]=card"
    );
    let intent = world.post("/v1/setup_intents", &form).await.id();
    world
        .get(&format!("/v1/setup_intents/{intent}"))
        .await
        .object();
    let card = "type=card&card[number]=4242424242424242&card[exp_month]=5&card[exp_year]=2031&card[cvc]=123";
    let method = world.post("/v1/payment_methods", card).await.id();
    let confirm = format!("/v1/setup_intents/{intent}/confirm");
    world
        .post(&confirm, &format!("payment_method={method}"))
        .await
        .object();
    let form = format!(
        "name=&description=x&invoice_settings[default_payment_method]={method}&expand[]=invoice_settings.default_payment_method"
    );
    world.post(&path, &form).await.object();
    world
        .get(&format!(
            "/v1/payment_methods?customer={customer}&type=card&limit=2"
        ))
        .await
        .object();
    world
        .get(&format!("/v1/payment_methods/{method}?expand[]=customer"))
        .await
        .object();
    let other = world.attach("pm_card_mastercard", &customer).await;
    world
        .post(&format!("/v1/payment_methods/{other}/detach"), "")
        .await
        .object();
    let form = format!("customer={customer}&return_url=https://example.com/back");
    world
        .post("/v1/billing_portal/sessions", &form)
        .await
        .object();
    let form = "url=http://127.0.0.1:1/hook&enabled_events[0]=invoice.paid";
    world.post("/v1/webhook_endpoints", form).await.object();
}

async fn drive_invoices(world: &World) {
    let customer = world.customer().await;
    let method = world.attach("pm_card_visa", &customer).await;
    let form = format!(
        "customer={customer}&currency=usd&auto_advance=false&collection_method=charge_automatically&pending_invoice_items_behavior=exclude&number=N-1&description=x&metadata[invoiceId]=i1"
    );
    let id = world.post("/v1/invoices", &form).await.id();
    let lines: Vec<_> = (0..12)
        .map(|line| format!("lines[{line}][amount]=100&lines[{line}][description]=d&lines[{line}][metadata][lineId]=l{line}"))
        .collect();
    world
        .of_invoice(&id, "add_lines", &lines.join("&"))
        .await
        .object();
    world
        .of_invoice(
            &id,
            "finalize",
            "auto_advance=false&expand[]=confirmation_secret",
        )
        .await
        .object();
    world
        .get(&format!("/v1/invoices/{id}/lines?limit=5"))
        .await
        .object();
    let form = format!(
        "payment_method={method}&off_session=true&expand[]=payments.data.payment.payment_intent"
    );
    let paid = world.of_invoice(&id, "pay", &form).await.object();
    let intent = paid["payments"]["data"][0]["payment"]["payment_intent"]["id"].clone();
    let intent = intent.as_str().unwrap();
    world
        .get(&format!("/v1/payment_intents/{intent}"))
        .await
        .object();
    world
        .get(&format!(
            "/v1/invoices/{id}?expand[]=customer&expand[]=payments"
        ))
        .await
        .object();
    world
        .get(&format!(
            "/v1/invoices?customer={customer}&created[gte]=1&status=paid&limit=5"
        ))
        .await
        .object();
    let form = format!("payment_intent={intent}&amount=500&reason=duplicate&metadata[a]=b");
    let refund = world.post("/v1/refunds", &form).await.object();
    let (refund, charge) = (&refund["id"], &refund["charge"]);
    let form = format!("charge={}", charge.as_str().unwrap());
    world.post("/v1/refunds", &form).await.object();
    world
        .get(&format!(
            "/v1/refunds?{form}&payment_intent={intent}&limit=5"
        ))
        .await
        .object();
    world
        .get(&format!("/v1/refunds/{}", refund.as_str().unwrap()))
        .await
        .object();
    let open = world.open_invoice(&customer, 500).await;
    world
        .of_invoice(&open, "mark_uncollectible", "")
        .await
        .object();
    world
        .of_invoice(&open, "pay", "paid_out_of_band=true")
        .await
        .object();
    let open = world.open_invoice(&customer, 500).await;
    world.of_invoice(&open, "void", "").await.object();
    let draft = world.draft(&customer, 500).await;
    world
        .send("DELETE", &format!("/v1/invoices/{draft}"), "", "")
        .await
        .object();
    let events = world
        .get("/v1/events?created[gte]=1&limit=100&types[0]=invoice.paid")
        .await
        .object();
    let event = events["data"][0]["id"].as_str().unwrap();
    world.get(&format!("/v1/events/{event}")).await.object();
}

async fn drive_failures(world: &World) {
    let customer = world.customer().await;
    let declined = world.attach("pm_card_chargeCustomerFail", &customer).await;
    let open = world.open_invoice(&customer, 500).await;
    world
        .of_invoice(&open, "pay", &format!("payment_method={declined}"))
        .await
        .failure();
    let method = world
        .attach("pm_card_authenticationRequired", &customer)
        .await;
    let refused = world
        .of_invoice(&open, "pay", &format!("payment_method={method}"))
        .await;
    let intent = refused.json()["error"]["payment_intent"]["id"].clone();
    let path = format!("/v1/payment_intents/{}/confirm", intent.as_str().unwrap());
    world.get(&path.replace("/confirm", "")).await.object();
    world
        .post(&path, &format!("payment_method={method}"))
        .await
        .object();
    world.get("/v1/customers/cus_none").await.failure();
    world.get("/v1/customers?limit=0").await.failure();
    world.post("/v1/customers", "colour=red").await.failure();
}

#[tokio::test]
async fn documentation_lists_the_operations() {
    let contract = contract();
    let driven: BTreeSet<_> = drive()
        .await
        .iter()
        .map(|exchange| contract.check(exchange).operation.unwrap())
        .collect();
    assert_eq!(driven, documented_operations());
    assert_eq!(driven, contract.operations().into_iter().collect());
}

#[tokio::test]
async fn other_operations_are_refused() {
    let world = World::start().await;
    for (method, path) in [
        ("POST", "/v1/subscriptions"),
        ("DELETE", "/v1/customers/cus_1"),
        ("GET", "/v1/invoices/search"),
        ("GET", "/v2/customers"),
        ("PUT", "/v1/customers"),
    ] {
        let reply = world.send(method, path, "", "").await;
        assert_eq!(reply.failure().0, 404, "{method} {path}");
    }
}

#[tokio::test]
async fn every_exchange_matches_the_document() {
    let contract = contract();
    let mut violations = Vec::new();
    for exchange in drive().await {
        let found = contract.check(&exchange).violations.into_iter();
        violations.extend(found.map(|violation| format!("{:?} {violation}", exchange.recorded)));
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[tokio::test]
async fn invalid_responses_are_detected() {
    let contract = contract();
    let exchanges = drive().await;
    for (operation, member, value) in [
        ("POST /v1/customers", "id", Value::Null),
        ("POST /v1/invoices", "status", json!("half")),
        ("POST /v1/invoices", "amount_due", json!("5")),
        ("GET /v1/invoices", "data", json!([{"id": "in_1"}])),
        ("POST /v1/invoices/{id}/pay", "lines", json!([])),
        ("GET /v1/payment_methods/{id}", "card", json!({})),
        ("POST /v1/setup_intents", "status", json!(7)),
        ("GET /v1/events/{id}", "livemode", json!("no")),
        ("POST /v1/billing_portal/sessions", "url", Value::Null),
    ] {
        let is_it =
            |exchange: &&Exchange| contract.check(exchange).operation.as_deref() == Some(operation);
        let exchange = exchanges.iter().find(is_it).unwrap();
        let mut body: Value = serde_json::from_slice(&exchange.response).unwrap();
        body[member] = value;
        let changed = Exchange {
            response: Bytes::from(body.to_string()),
            ..exchange.clone()
        };
        let violations = contract.check(&changed).violations;
        assert!(!violations.is_empty(), "{operation}: {member}");
    }
}

#[tokio::test]
async fn invalid_requests_are_detected() {
    let contract = contract();
    let exchanges = drive().await;
    let changed = |operation: &str, change: &dyn Fn(&mut Exchange)| {
        let is_it =
            |exchange: &&Exchange| contract.check(exchange).operation.as_deref() == Some(operation);
        let mut exchange = exchanges.iter().find(is_it).unwrap().clone();
        change(&mut exchange);
        contract.check(&exchange).violations
    };
    let form = |text: &'static str| {
        move |exchange: &mut Exchange| exchange.request = Bytes::from_static(text.as_bytes())
    };
    let query =
        |text: &'static str| move |exchange: &mut Exchange| text.clone_into(&mut exchange.query);
    let add_lines = "POST /v1/invoices/{id}/add_lines";
    for violations in [
        changed("POST /v1/customers", &form("colour=red")),
        changed("POST /v1/customers", &form("email[a]=b")),
        changed("POST /v1/invoices", &form("auto_advance=perhaps")),
        changed("POST /v1/invoices", &form("collection_method=pigeon")),
        changed(add_lines, &form("lines[0][amount]=much")),
        changed(add_lines, &form("lines[0][colour]=red")),
        changed(add_lines, &form("")),
        changed("GET /v1/invoices", &query("limit=many")),
        changed("GET /v1/invoices", &query("colour=red")),
        changed("GET /v1/invoices", &query("created[before]=5")),
    ] {
        assert!(!violations.is_empty());
    }
}
