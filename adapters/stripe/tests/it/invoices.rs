//! Tests of invoices and charges.

use std::time::Duration;

use core_domain::billing::{Currency, InvoiceStatus, Money};
use core_domain::kernel::InvoiceId;
use core_domain::port::{Close, CollectOutcome, Payments, PaymentsError, PushedInvoice};
use core_stripe_fake::{ChargeEnd, Fault};

use crate::world::{LOST_AFTER, LOST_BEFORE, World, key};

#[tokio::test]
async fn an_invoice_is_pushed_with_our_number_lines_and_keys() {
    let world = World::new().await;
    let customer = world.customer().await;
    let pushed = world
        .stripe
        .push_invoice(&world.invoice(&customer, 120))
        .await
        .unwrap();
    assert_eq!(
        (pushed.status, pushed.amount_due),
        (InvoiceStatus::Open, 348_000)
    );
    let invoice = world.fake.invoice(&pushed.id).unwrap();
    assert_eq!(invoice["number"], "ACME-0001");
    assert_eq!(invoice["metadata"]["invoiceId"], "i1");
    assert_eq!(invoice["lines"]["data"][0]["metadata"]["lineId"], "l0");
    assert_eq!(invoice["auto_advance"], false);
    assert_eq!(world.keys("/invoices"), ["i1:create"]);
    assert_eq!(world.keys("/add_lines"), ["i1:lines:0", "i1:lines:1"]);
    assert_eq!(world.keys("/finalize"), ["i1:finalize"]);
}

#[tokio::test]
async fn an_interrupted_push_continues_at_any_step() {
    for path in [
        "/v1/invoices",
        "/v1/invoices/*/add_lines",
        "/v1/invoices/*/finalize",
    ] {
        for fault in [LOST_BEFORE, LOST_AFTER] {
            let world = World::without_retries().await;
            let customer = world.customer().await;
            let invoice = world.invoice(&customer, 3);
            world.inject("POST", path, fault);
            let lost = world.stripe.push_invoice(&invoice).await;
            assert!(matches!(lost, Err(PaymentsError::Unknown(_))), "{lost:?}");
            let pushed = world.stripe.push_invoice(&invoice).await.unwrap();
            assert_eq!(
                (pushed.status, pushed.amount_due),
                (InvoiceStatus::Open, 8_700)
            );
            assert_eq!(world.fake.invoices().len(), 1, "{path}");
        }
    }
}

#[tokio::test]
async fn an_interrupted_push_continues_after_the_keys_have_expired() {
    for path in ["/v1/invoices/*/add_lines", "/v1/invoices/*/finalize"] {
        for fault in [LOST_BEFORE, LOST_AFTER] {
            let world = World::without_retries().await;
            let customer = world.customer().await;
            let invoice = world.invoice(&customer, 120);
            world.inject("POST", path, fault);
            world.stripe.push_invoice(&invoice).await.unwrap_err();
            world.advance(Duration::from_hours(25));
            let pushed = world.stripe.push_invoice(&invoice).await.unwrap();
            assert_eq!(
                (pushed.status, pushed.amount_due),
                (InvoiceStatus::Open, 348_000)
            );
            assert_eq!(world.fake.invoices().len(), 1, "{path}");
        }
    }
}

#[tokio::test]
async fn an_invoice_that_is_not_new_is_looked_up_before_it_is_pushed() {
    let world = World::without_retries().await;
    let customer = world.customer().await;
    let method = world.attach("pm_card_visa", &customer).await;
    let invoice = world.invoice(&customer, 1);
    let pushed = world.stripe.push_invoice(&invoice).await.unwrap();
    world.collect(&pushed, &method, "pay:1").await.unwrap();
    world.advance(Duration::from_mins(6));
    // An invoice that is found is not created again, whatever its lines.
    let mut again = invoice.clone();
    again.lines[0].id = "other".to_owned();
    let found = world.stripe.push_invoice(&again).await.unwrap();
    assert_eq!((found.id, found.status), (pushed.id, InvoiceStatus::Paid));
    again.amount_due = Money::new(1, Currency::USD).unwrap();
    let refused = world.stripe.push_invoice(&again).await.unwrap_err();
    assert!(matches!(refused, PaymentsError::Invalid(_)), "{refused:?}");
    assert_eq!((world.fake.invoices().len(), world.fake.charges()), (1, 1));
    let lists = |world: &World| {
        let requests = world.fake.requests().into_iter();
        let lists = requests.filter(|own| own.method == "GET" && own.path.ends_with("/invoices"));
        lists.count()
    };
    let known = lists(&world);
    let new = PushedInvoice {
        id: InvoiceId::parse("i2").unwrap(),
        ..world.invoice(&customer, 1)
    };
    world.stripe.push_invoice(&new).await.unwrap();
    assert_eq!(lists(&world), known);
}

#[tokio::test]
async fn a_failure_that_is_stored_under_a_key_does_not_stop_a_push() {
    for path in [
        "/v1/invoices",
        "/v1/invoices/*/add_lines",
        "/v1/invoices/*/finalize",
    ] {
        for has_effect in [false, true] {
            let world = World::new().await;
            let customer = world.customer().await;
            world.inject("POST", path, Fault::KeptServerError { has_effect });
            let pushed = world.push(&customer).await;
            assert_eq!(
                (pushed.status, pushed.amount_due),
                (InvoiceStatus::Open, 2_900)
            );
            assert_eq!(world.fake.invoices().len(), 1, "{path} {has_effect}");
        }
    }
}

#[tokio::test]
async fn a_balance_at_stripe_does_not_change_what_is_charged() {
    let world = World::new().await;
    let customer = world.customer().await;
    world.fake.set_balance(&customer, -500);
    let refused = world
        .stripe
        .push_invoice(&world.invoice(&customer, 1))
        .await;
    let Err(PaymentsError::Invalid(why)) = refused else {
        panic!("{refused:?}");
    };
    assert!(why.contains("2400 instead of 2900"), "{why}");
    // The draft is deleted.
    assert_eq!(world.fake.invoices().len(), 0);
}

#[tokio::test]
async fn amounts_that_stripe_cannot_charge_are_refused_before_any_request() {
    let world = World::new().await;
    let mut invoice = world.invoice("cus_1", 1);
    for code in ["kwd", "lyd"] {
        let currency = Currency::parse(code).unwrap();
        invoice.amount_due = Money::new(2_905, currency).unwrap();
        let refused = world.stripe.push_invoice(&invoice).await;
        assert!(
            matches!(refused, Err(PaymentsError::Invalid(_))),
            "{refused:?}"
        );
    }
    assert_eq!(world.fake.requests(), []);
}

#[tokio::test]
async fn amounts_are_sent_in_the_minor_units_of_stripe() {
    let world = World::new().await;
    let customer = world.customer().await;
    for (id, code, amount) in [
        ("i1", "isk", 290_000),
        ("i2", "mga", 29),
        ("i3", "jpy", 2_900),
    ] {
        let mut invoice = world.invoice(&customer, 1);
        invoice.id = InvoiceId::parse(id).unwrap();
        invoice.amount_due = Money::new(2_900, Currency::parse(code).unwrap()).unwrap();
        if amount < 50 {
            // The smallest charge of the fake is 50 minor units.
            invoice.amount_due = Money::new(290_000, invoice.amount_due.currency()).unwrap();
            invoice.lines[0].amount = 290_000;
        }
        let pushed = world.stripe.push_invoice(&invoice).await.unwrap();
        assert_eq!(pushed.amount_due, invoice.amount_due.minor());
        let sent = world.fake.invoice(&pushed.id).unwrap()["amount_due"].clone();
        let expected = if amount < 50 { amount * 100 } else { amount };
        assert_eq!(sent, expected, "{code}");
    }
}

#[tokio::test]
async fn a_charge_whose_response_is_lost_charges_once() {
    for (fault, charges) in [(LOST_BEFORE, 0), (LOST_AFTER, 1)] {
        let world = World::without_retries().await;
        let customer = world.customer().await;
        let method = world.attach("pm_card_visa", &customer).await;
        let invoice = world.push(&customer).await;
        world.inject("POST", "/v1/invoices/*/pay", fault);
        let lost = world.collect(&invoice, &method, "pay:1").await;
        assert!(matches!(lost, Err(PaymentsError::Unknown(_))), "{lost:?}");
        assert_eq!(world.fake.charges(), charges);
        let outcome = world.collect(&invoice, &method, "pay:1").await.unwrap();
        assert_eq!(outcome, CollectOutcome::Paid);
        assert_eq!(world.fake.charges(), 1);
    }
}

#[tokio::test]
async fn a_charge_whose_failure_is_stored_is_made_once() {
    for has_effect in [false, true] {
        let world = World::new().await;
        let customer = world.customer().await;
        let method = world.attach("pm_card_visa", &customer).await;
        let invoice = world.push(&customer).await;
        let fault = Fault::KeptServerError { has_effect };
        world.inject("POST", "/v1/invoices/*/pay", fault);
        let outcome = world.collect(&invoice, &method, "pay:1").await.unwrap();
        assert_eq!(outcome, CollectOutcome::Paid);
        assert_eq!(world.fake.charges(), 1);
        let keys = world.keys("/pay");
        let has_new_key = keys.last().is_some_and(|key| key.ends_with(":2"));
        assert_eq!(has_new_key, !has_effect, "{keys:?}");
    }
}

#[tokio::test]
async fn a_hard_decline_is_recognized() {
    let world = World::new().await;
    let customer = world.customer().await;
    let method = world.attach("pm_card_visa", &customer).await;
    let invoice = world.push(&customer).await;
    let end = ChargeEnd::Declined {
        error_code: "card_declined".to_owned(),
        decline_code: Some("stolen_card".to_owned()),
        advice_code: None,
    };
    world.fake.set_charge_end(&method, end);
    let outcome = world.collect(&invoice, &method, "pay:1").await.unwrap();
    let CollectOutcome::Declined(decline) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(decline.is_hard);
}

#[tokio::test]
async fn a_confirmed_charge_is_found_by_looking_up() {
    let world = World::new().await;
    let customer = world.customer().await;
    let method = world
        .attach("pm_card_authenticationRequired", &customer)
        .await;
    let invoice = world.push(&customer).await;
    let outcome = world.collect(&invoice, &method, "pay:1").await.unwrap();
    let known = world.look_up(&customer).await.unwrap();
    assert_eq!(known.last_charge.as_ref(), Some(&outcome));
    world.fake.confirm_charge(&invoice.id);
    let known = world.look_up(&customer).await.unwrap();
    assert_eq!(known.status, InvoiceStatus::Paid);
}

#[tokio::test]
async fn a_pending_charge_is_processing_until_it_ends() {
    let world = World::new().await;
    let customer = world.customer().await;
    let method = world.attach("pm_card_visa", &customer).await;
    let invoice = world.push(&customer).await;
    world.fake.set_charge_end(&method, ChargeEnd::Processing);
    let outcome = world.collect(&invoice, &method, "pay:1").await.unwrap();
    assert_eq!(outcome, CollectOutcome::Processing);
    let known = world.look_up(&customer).await.unwrap();
    assert_eq!(known.last_charge, Some(CollectOutcome::Processing));
    world.fake.end_charge(&invoice.id, &ChargeEnd::Paid);
    let known = world.look_up(&customer).await.unwrap();
    assert_eq!(known.last_charge, Some(CollectOutcome::Paid));
}

#[tokio::test]
async fn cancelling_an_interrupted_draft_deletes_it() {
    let world = World::without_retries().await;
    let customer = world.customer().await;
    world.inject("POST", "/v1/invoices/*/finalize", LOST_BEFORE);
    let invoice = world.invoice(&customer, 1);
    world.stripe.push_invoice(&invoice).await.unwrap_err();
    let draft = world.look_up(&customer).await.unwrap();
    assert_eq!(draft.status, InvoiceStatus::Draft);
    let void = key("void");
    let closed = world.stripe.close(&void, &draft.id, Close::Void).await;
    closed.unwrap();
    assert_eq!(world.look_up(&customer).await, None);
}

#[tokio::test]
async fn a_change_of_an_unknown_invoice_is_refused() {
    let world = World::new().await;
    let closed = world
        .stripe
        .close(&key("void"), "in_unknown", Close::Void)
        .await;
    assert!(
        matches!(closed, Err(PaymentsError::Invalid(_))),
        "{closed:?}"
    );
    let charged = world
        .stripe
        .collect(&key("pay"), "in_unknown", "pm_1")
        .await;
    assert!(
        matches!(charged, Err(PaymentsError::Invalid(_))),
        "{charged:?}"
    );
}
