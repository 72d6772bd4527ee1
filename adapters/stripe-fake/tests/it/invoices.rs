//! Tests of invoices and their charges.

use crate::world::World;

#[tokio::test]
async fn an_invoice_is_created_finalized_and_paid() {
    let world = World::start().await;
    let customer = world.customer().await;
    let method = world.attach("pm_card_visa", &customer).await;
    let id = world.draft(&customer, 2900).await;
    let open = world
        .of_invoice(&id, "finalize", "auto_advance=false")
        .await
        .object();
    assert_eq!(
        (&open["status"], &open["amount_due"]),
        (&"open".into(), &2900.into())
    );
    assert!(open["number"].as_str().unwrap().ends_with("-0001"));
    let paid = world
        .of_invoice(
            &id,
            "pay",
            &format!("payment_method={method}&off_session=true"),
        )
        .await;
    let paid = paid.object();
    assert_eq!(
        (&paid["status"], &paid["amount_remaining"]),
        (&"paid".into(), &0.into())
    );
    assert_eq!(world.fake.charges(), 1);
    let again = world
        .of_invoice(&id, "pay", &format!("payment_method={method}"))
        .await;
    assert_eq!(again.failure().2, "invoice_already_paid");
}

#[tokio::test]
async fn a_declined_charge_leaves_the_invoice_open() {
    let world = World::start().await;
    let customer = world.customer().await;
    let method = world.attach("pm_card_chargeCustomerFail", &customer).await;
    let id = world.open_invoice(&customer, 2900).await;
    let declined = world
        .of_invoice(&id, "pay", &format!("payment_method={method}"))
        .await;
    assert_eq!(
        declined.failure(),
        (402, "card_error".to_owned(), "card_declined".to_owned())
    );
    let path = format!("/v1/invoices/{id}?expand[]=payments.data.payment.payment_intent");
    let invoice = world.get(&path).await.object();
    assert_eq!(
        (&invoice["status"], &invoice["attempt_count"]),
        (&"open".into(), &1.into())
    );
    let intent = &invoice["payments"]["data"][0]["payment"]["payment_intent"];
    assert_eq!(
        intent["last_payment_error"]["decline_code"],
        "generic_decline"
    );
}

#[tokio::test]
async fn a_charge_that_needs_authentication_is_confirmed_in_the_browser() {
    let world = World::start().await;
    let customer = world.customer().await;
    let method = world
        .attach("pm_card_authenticationRequired", &customer)
        .await;
    let id = world.open_invoice(&customer, 2900).await;
    let reply = world
        .of_invoice(&id, "pay", &format!("payment_method={method}"))
        .await;
    assert_eq!(reply.failure().2, "authentication_required");
    let intent = reply.json()["error"]["payment_intent"].clone();
    let secret = world
        .get(&format!("/v1/invoices/{id}?expand[]=confirmation_secret"))
        .await;
    assert_eq!(
        secret.object()["confirmation_secret"]["client_secret"],
        intent["client_secret"]
    );
    world.fake.confirm_charge(&id);
    assert_eq!(world.fake.invoice(&id).unwrap()["status"], "paid");
}

#[tokio::test]
async fn only_drafts_change_and_only_open_invoices_end() {
    let world = World::start().await;
    let customer = world.customer().await;
    let id = world.open_invoice(&customer, 2900).await;
    let refused = |reply: crate::world::Reply| reply.failure().0;
    let line = "lines[0][amount]=1";
    assert_eq!(refused(world.of_invoice(&id, "add_lines", line).await), 400);
    assert_eq!(refused(world.of_invoice(&id, "finalize", "").await), 400);
    let delete = world
        .send("DELETE", &format!("/v1/invoices/{id}"), "", "")
        .await;
    assert_eq!(refused(delete), 400);
    let draft = world.draft(&customer, 100).await;
    for action in ["void", "mark_uncollectible", "pay"] {
        assert_eq!(
            refused(world.of_invoice(&draft, action, "").await),
            400,
            "{action}"
        );
    }
    world.of_invoice(&id, "void", "").await.object();
    for action in ["void", "mark_uncollectible", "pay"] {
        assert_eq!(
            refused(world.of_invoice(&id, action, "").await),
            400,
            "{action}"
        );
    }
}

#[tokio::test]
async fn an_uncollectible_invoice_can_be_paid_later() {
    let world = World::start().await;
    let customer = world.customer().await;
    let id = world.open_invoice(&customer, 2900).await;
    world
        .of_invoice(&id, "mark_uncollectible", "")
        .await
        .object();
    let paid = world
        .of_invoice(&id, "pay", "paid_out_of_band=true")
        .await
        .object();
    assert_eq!(
        (&paid["status"], &paid["amount_paid_off_stripe"]),
        (&"paid".into(), &2900.into())
    );
    assert_eq!(world.fake.charges(), 0);
}

#[tokio::test]
async fn the_balance_of_the_customer_changes_the_amount_due() {
    let world = World::start().await;
    let customer = world.customer().await;
    world.fake.set_balance(&customer, -500);
    let id = world.open_invoice(&customer, 2900).await;
    let invoice = world.fake.invoice(&id).unwrap();
    assert_eq!(
        (&invoice["amount_due"], &invoice["starting_balance"]),
        (&2400.into(), &(-500).into())
    );
    // An amount below the minimum charge moves to the balance.
    let id = world.open_invoice(&customer, 30).await;
    assert_eq!(world.fake.invoice(&id).unwrap()["status"], "paid");
    let rendered = world
        .get(&format!("/v1/customers/{customer}"))
        .await
        .object();
    assert_eq!(rendered["balance"], 30);
    let id = world.open_invoice(&customer, -100).await;
    assert_eq!(world.fake.invoice(&id).unwrap()["status"], "paid");
    let rendered = world
        .get(&format!("/v1/customers/{customer}"))
        .await
        .object();
    assert_eq!(rendered["balance"], -70);
}

#[tokio::test]
async fn unknown_properties_are_not_expanded() {
    let world = World::start().await;
    let customer = world.customer().await;
    let id = world.open_invoice(&customer, 2900).await;
    for path in ["status", "colour", "a.b.c.d.e"] {
        let reply = world
            .get(&format!("/v1/invoices/{id}?expand[]={path}"))
            .await;
        assert_eq!(reply.failure().0, 400, "{path}");
    }
}

#[tokio::test]
async fn a_payment_is_refunded_up_to_its_amount() {
    let world = World::start().await;
    let customer = world.customer().await;
    let method = world.attach("pm_card_visa", &customer).await;
    let id = world.open_invoice(&customer, 2900).await;
    let intent = "expand[]=payments.data.payment.payment_intent";
    let pay = format!("payment_method={method}&{intent}");
    let unpaid = world.get(&format!("/v1/invoices/{id}?{intent}")).await;
    let unpaid = unpaid.object()["payments"]["data"][0]["payment"]["payment_intent"]["id"].clone();
    let form = format!("payment_intent={}", unpaid.as_str().unwrap());
    assert_eq!(world.post("/v1/refunds", &form).await.failure().0, 400);
    world.of_invoice(&id, "pay", &pay).await.object();
    for (amount, is_possible) in [(900, true), (2001, false), (2000, true), (1, false)] {
        let refund = world
            .post("/v1/refunds", &format!("{form}&amount={amount}"))
            .await;
        match is_possible {
            true => assert_eq!(refund.object()["status"], "succeeded", "{amount}"),
            false => assert_eq!(refund.failure().0, 400, "{amount}"),
        }
    }
    let events = world.get("/v1/events?type=charge.refunded").await.object();
    let newest = &events["data"][0]["data"]["object"];
    assert_eq!(newest["amount_refunded"], 2900);
    assert_eq!(newest["customer"], customer.as_str());
}
