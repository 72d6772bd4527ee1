//! Tests of customers, setup intents, payment methods and test cards.

use core_stripe_fake::ChargeEnd;

use crate::world::World;

#[tokio::test]
async fn a_method_is_attached_listed_and_detached_for_ever() {
    let world = World::start().await;
    let customer = world.customer().await;
    let method = world.attach("pm_card_visa", &customer).await;
    assert_ne!(method, "pm_card_visa");
    assert_eq!(world.attach(&method, &customer).await, method);
    let list = format!("/v1/payment_methods?customer={customer}&type=card");
    let card = world.get(&list).await.object()["data"][0]["card"].clone();
    assert_eq!(
        (&card["last4"], &card["brand"]),
        (&"4242".into(), &"visa".into())
    );
    let path = format!("/v1/payment_methods/{method}/attach");
    let other = world.customer().await;
    let foreign = world.post(&path, &format!("customer={other}")).await;
    assert_eq!(foreign.failure().2, "payment_method_already_attached");
    let detach = format!("/v1/payment_methods/{method}/detach");
    let detached = world.post(&detach, "").await.object();
    assert!(detached["customer"].is_null());
    assert_eq!(world.post(&detach, "").await.status, 400);
    assert_eq!(
        world
            .post(&path, &format!("customer={customer}"))
            .await
            .status,
        400
    );
    assert_eq!(
        world.get(&list).await.object()["data"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}

#[tokio::test]
async fn refused_cards_cannot_be_attached() {
    let world = World::start().await;
    let customer = world.customer().await;
    for (method, code, decline_code) in [
        ("pm_card_chargeDeclined", "card_declined", "generic_decline"),
        (
            "pm_card_chargeDeclinedInsufficientFunds",
            "card_declined",
            "insufficient_funds",
        ),
        (
            "pm_card_chargeDeclinedLostCard",
            "card_declined",
            "lost_card",
        ),
        (
            "pm_card_chargeDeclinedStolenCard",
            "card_declined",
            "stolen_card",
        ),
        (
            "pm_card_chargeDeclinedExpiredCard",
            "expired_card",
            "expired_card",
        ),
    ] {
        let path = format!("/v1/payment_methods/{method}/attach");
        let reply = world.post(&path, &format!("customer={customer}")).await;
        assert_eq!(
            reply.failure(),
            (402, "card_error".to_owned(), code.to_owned())
        );
        assert_eq!(reply.json()["error"]["decline_code"], decline_code);
    }
}

#[tokio::test]
async fn confirming_a_setup_intent_attaches_the_method() {
    let world = World::start().await;
    let customer = world.customer().await;
    let form = format!("customer={customer}&usage=off_session");
    let intent = world.post("/v1/setup_intents", &form).await.object();
    let id = intent["id"].as_str().unwrap();
    assert_eq!(intent["status"], "requires_payment_method");
    assert!(
        intent["client_secret"]
            .as_str()
            .unwrap()
            .starts_with(&format!("{id}_secret_"))
    );
    let confirm = format!("/v1/setup_intents/{id}/confirm");
    let refused = world
        .post(&confirm, "payment_method=pm_card_chargeDeclined")
        .await;
    assert_eq!(refused.failure().0, 402);
    let card = "type=card&card[number]=4242424242424242";
    let method = world.post("/v1/payment_methods", card).await.id();
    let confirmed = world
        .post(&confirm, &format!("payment_method={method}"))
        .await
        .object();
    assert_eq!(
        (&confirmed["status"], &confirmed["payment_method"]),
        (&"succeeded".into(), &method.as_str().into())
    );
    let again = world
        .post(&confirm, &format!("payment_method={method}"))
        .await;
    assert_eq!(again.failure().2, "setup_intent_unexpected_state");
}

#[tokio::test]
async fn other_card_numbers_are_refused() {
    let world = World::start().await;
    let reply = world
        .post(
            "/v1/payment_methods",
            "type=card&card[number]=4111111111111111",
        )
        .await;
    assert_eq!(reply.failure().2, "incorrect_number");
}

#[tokio::test]
async fn the_default_method_must_be_attached_to_the_customer() {
    let world = World::start().await;
    let (customer, other) = (world.customer().await, world.customer().await);
    let method = world.attach("pm_card_visa", &other).await;
    let form = format!("invoice_settings[default_payment_method]={method}");
    let refused = world
        .post(&format!("/v1/customers/{customer}"), &form)
        .await;
    assert_eq!(refused.status, 400);
    let changed = world
        .post(&format!("/v1/customers/{other}"), &form)
        .await
        .object();
    assert_eq!(
        changed["invoice_settings"]["default_payment_method"],
        *method
    );
}

#[tokio::test]
async fn a_test_decides_the_end_of_charges() {
    let world = World::start().await;
    let customer = world.customer().await;
    let method = world.attach("pm_card_visa", &customer).await;
    let invoice = world.open_invoice(&customer, 500).await;
    world.fake.set_charge_end(
        &method,
        ChargeEnd::Declined {
            error_code: "card_declined".to_owned(),
            decline_code: Some("lost_card".to_owned()),
            advice_code: Some("do_not_try_again".to_owned()),
        },
    );
    let pay = format!("payment_method={method}");
    let declined = world.of_invoice(&invoice, "pay", &pay).await;
    assert_eq!(declined.json()["error"]["advice_code"], "do_not_try_again");
    world.fake.set_charge_end(&method, ChargeEnd::Processing);
    let pending = world.of_invoice(&invoice, "pay", &pay).await.object();
    assert_eq!(pending["status"], "open");
    world.fake.end_charge(&invoice, &ChargeEnd::Paid);
    assert_eq!(world.fake.invoice(&invoice).unwrap()["status"], "paid");
}
