//! Customers: one for each platform and user.

use core_domain::use_case::billing::customer_details::send_details;
use serde_json::{Value, json};

use crate::world::{PaymentFault, World, admin, on_every_store, operator};

const CUSTOMERS: &str = "/customers";

#[tokio::test]
async fn a_platform_and_a_user_have_one_customer_and_an_operators_has_neither() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let email = json!({ "email": "ada@example.org" });
    let own = world
        .billing
        .post(&admin(&platform), CUSTOMERS, email.clone())
        .await;
    let own = own.expect(201);
    assert_eq!(own.json["platformId"], platform);
    for (field, expected) in [
        ("currency", json!("usd")),
        ("balance", json!(0)),
        ("creditBalance", json!(0)),
        ("delinquent", json!(false)),
        ("provider", json!("ledger")),
        ("providerId", Value::Null),
        ("defaultPaymentMethodId", Value::Null),
    ] {
        assert_eq!(own.json[field], expected, "{field}");
    }
    let again = world
        .billing
        .post(&admin(&platform), CUSTOMERS, email.clone())
        .await;
    again.expect_error(409, "CUSTOMER_EXISTS");
    let person = world.sign_up("bob@example.org").await;
    let of_user = json!({ "email": "ada@example.org", "userId": person.user_id });
    let of_user_again = of_user.clone();
    let created = world.billing.post(&operator(), CUSTOMERS, of_user).await;
    assert_eq!(created.expect(201).json["platformId"], Value::Null);
    let refused = world
        .billing
        .post(&operator(), CUSTOMERS, of_user_again)
        .await;
    refused.expect_error(409, "CUSTOMER_EXISTS");
    for _ in 0..2 {
        let free = world
            .billing
            .post(&operator(), CUSTOMERS, email.clone())
            .await;
        let _ = free.expect(201);
    }
}

#[tokio::test]
async fn a_customer_is_updated_and_its_name_can_be_cleared() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let customer = world.customer(&platform).await;
    let path = format!("/customers/{customer}");
    let body = json!({ "email": "New@Example.org", "name": "Engines Ltd" });
    let updated = world.billing.patch(&admin(&platform), &path, body).await;
    let updated = updated.expect(200);
    assert_eq!(updated.json["email"], "new@example.org");
    assert_eq!(updated.json["name"], "Engines Ltd");
    let cleared = world
        .billing
        .patch(&admin(&platform), &path, json!({ "name": null }))
        .await;
    assert_eq!(cleared.expect(200).json["name"], Value::Null);
    let bad = world
        .billing
        .patch(&admin(&platform), &path, json!({ "email": "nobody" }))
        .await;
    bad.expect_error(400, "VALIDATION_ERROR");
}

async fn changed_details_are_sent_to_the_provider_once_it_can_be_reached(world: World) {
    let platform = world.create_platform("engines").await;
    let customer = world.customer(&platform).await;
    let path = format!("/customers/{customer}");
    let store = world.app.store.as_ref();
    let send = async || {
        let run = send_details(store, &world.billing_parts).await.unwrap();
        (run.done, run.failed.len())
    };
    let change = async |body: Value| {
        let changed = world.billing.patch(&operator(), &path, body).await;
        let _ = changed.expect(200);
    };
    // The provider does not know the customer yet, and gets the details when it does.
    change(json!({ "name": "Engines Ltd" })).await;
    assert_eq!(send().await, (0, 0));
    world.attach_card(&customer, "pm_card_visa").await;
    change(json!({ "taxId": "DE123" })).await;
    assert_eq!(send().await, (0, 0));
    change(json!({ "email": "new@example.org" })).await;
    world.payments.fail_next(PaymentFault::Unreachable);
    let error = send_details(store, &world.billing_parts).await;
    assert_eq!(
        error.unwrap_err().code().as_str(),
        "PAYMENT_PROVIDER_UNAVAILABLE"
    );
    assert_eq!(send().await, (1, 0));
    assert_eq!(send().await, (0, 0));
    let sent = world.payments.details();
    let sent: Vec<_> = sent
        .iter()
        .map(|details| (details.email.as_str(), details.name.as_deref()))
        .collect();
    assert_eq!(sent, [("new@example.org", Some("Engines Ltd"))]);
}
on_every_store!(changed_details_are_sent_to_the_provider_once_it_can_be_reached);

#[tokio::test]
async fn details_that_the_provider_refuses_are_sent_again_after_those_of_others() {
    let world = World::new();
    let store = world.app.store.as_ref();
    let mut customers = Vec::new();
    for slug in ["engines", "wheels"] {
        let platform = world.create_platform(slug).await;
        let customer = world.customer(&platform).await;
        world.attach_card(&customer, "pm_card_visa").await;
        let path = format!("/customers/{customer}");
        let body = json!({ "email": format!("{slug}@example.org") });
        let _ = world
            .billing
            .patch(&operator(), &path, body)
            .await
            .expect(200);
        world.tick(60);
        customers.push(customer);
    }
    world.payments.fail_next(PaymentFault::Refused);
    let run = send_details(store, &world.billing_parts).await.unwrap();
    assert_eq!((run.done, run.failed.len()), (1, 1));
    assert_eq!(run.failed[0].id, customers[0]);
    let run = send_details(store, &world.billing_parts).await.unwrap();
    assert_eq!((run.done, run.failed.len()), (1, 0));
    let sent: Vec<_> = world
        .payments
        .details()
        .into_iter()
        .map(|sent| sent.email)
        .collect();
    assert_eq!(sent, ["wheels@example.org", "engines@example.org"]);
}

#[tokio::test]
async fn a_credit_needs_a_whole_positive_amount_of_the_customers_currency() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let customer = world.customer(&platform).await;
    let grant = |change: Value| {
        let mut body = json!({ "customerId": customer, "amount": 500, "description": "Sorry" });
        for (field, value) in change.as_object().unwrap() {
            body[field] = value.clone();
        }
        let billing = world.billing.clone();
        async move { billing.post(&operator(), "/operator/credits", body).await }
    };
    for bad in [
        json!({ "amount": 0 }),
        json!({ "amount": 1.5 }),
        json!({ "amount": -1 }),
        json!({ "currency": "zzz" }),
        json!({ "currency": "us" }),
        json!({ "priority": 101 }),
        json!({ "expiresAt": "2020-01-01T00:00:00Z" }),
        json!({ "description": "" }),
    ] {
        grant(bad).await.expect_error(400, "VALIDATION_ERROR");
    }
    grant(json!({ "currency": "eur" }))
        .await
        .expect_error(409, "CURRENCY_MISMATCH");
    grant(json!({ "customerId": "nobody" }))
        .await
        .expect_error(404, "NOT_FOUND");
    let granted = grant(json!({ "category": "paid", "priority": 7 }))
        .await
        .expect(201);
    assert_eq!(granted.json["status"], "active");
    assert_eq!(granted.json["createdBy"], "service-key");
    world.assert_books_balance().await;
}
