//! The overview of the whole book, and invoices that operators generate.

use serde_json::{Value, json};

use super::paying_platform;
use crate::world::{World, on_every_store, operator};

async fn overview(world: &World) -> Value {
    let shown = world.billing.get(&operator(), "/operator/overview").await;
    shown.expect(200).json
}

async fn the_overview_counts_customers_subscriptions_and_money(world: World) {
    world.set_time("2027-11-01T00:00:00Z");
    let empty = overview(&world).await;
    assert_eq!((&empty["mrr"], &empty["customers"]), (&json!(0), &json!(0)));
    assert_eq!(empty["subscriptions"]["past_due"], 0);
    paying_platform(&world, "growth").await;
    let other = world.create_platform("spindles").await;
    let customer = world.customer(&other).await;
    world.attach_card(&customer, "pm_card_visa").await;
    world.set_time("2027-11-01T00:00:00Z");
    let body =
        json!({ "platformId": other, "tier": "starter", "interval": "year", "trialDays": 0 });
    let yearly = world.billing.post(&operator(), "/subscription", body).await;
    let _ = yearly.expect(201);
    let unpaid = world.create_platform("bobbins").await;
    let customer = world.customer(&unpaid).await;
    let _ = world.subscribe(&unpaid, "scale").await.expect(201);
    let body = json!({ "customerId": customer, "amount": 700, "description": "Welcome" });
    let granted = world
        .billing
        .post(&operator(), "/operator/credits", body)
        .await;
    let _ = granted.expect(201);
    let shown = overview(&world).await;
    assert_eq!(shown["customers"], 3);
    assert_eq!(shown["subscriptions"]["active"], 2);
    assert_eq!(shown["subscriptions"]["incomplete"], 1);
    assert_eq!(
        shown["byTier"],
        json!({ "free": 0, "starter": 1, "growth": 1, "scale": 1 })
    );
    assert_eq!(
        (&shown["mrr"], &shown["arr"]),
        (&json!(9900 + 2417), &json!(12 * (9900 + 2417)))
    );
    assert_eq!(
        shown["openInvoices"],
        json!({ "count": 1, "amount": 49_900 })
    );
    assert_eq!(shown["overdue"], json!({ "count": 0, "amount": 0 }));
    assert_eq!(shown["revenue30d"], 9900 + 29_000 + 49_900);
    assert_eq!(shown["creditsOutstanding"], 700);
    assert_eq!(
        shown["webhooks"],
        json!({ "lastEventAt": null, "failed": 0 })
    );
    world.set_time("2027-12-15T00:00:00Z");
    assert_eq!(overview(&world).await["revenue30d"], 0);
}
on_every_store!(the_overview_counts_customers_subscriptions_and_money);

#[tokio::test]
async fn the_store_counts_and_sums_the_overview() {
    let (world, queries_of) = World::faulty();
    paying_platform(&world, "growth").await;
    drop(queries_of.take_queries());
    assert_eq!(overview(&world).await["byTier"]["growth"], 1);
    let queries = queries_of.take_queries().into_iter();
    let tables: Vec<&str> = queries.map(|select| select.table.name).collect();
    assert_eq!(tables, ["billing_received_events"]);
}

async fn usage_after_the_end_of_a_subscription_is_invoiced_on_request(world: World) {
    let (platform, customer) = paying_platform(&world, "starter").await;
    let body = json!({ "customerId": customer });
    let generate = || {
        let (api, body) = (world.billing.clone(), body.clone());
        async move {
            api.post(&operator(), "/operator/invoices/generate", body)
                .await
        }
    };
    generate().await.expect_error(409, "NOTHING_TO_INVOICE");
    let subscription = world.subscription_of(&platform).await;
    world
        .owe_usage(&platform, subscription["id"].as_str().unwrap(), 500)
        .await;
    let generated = generate().await.expect(201).json;
    let seen = ["status", "billingReason", "amountDue", "amountPaid"];
    let seen = seen.map(|field| generated[field].clone());
    assert_eq!(
        seen,
        [json!("paid"), json!("manual"), json!(500), json!(500)]
    );
    generate().await.expect_error(409, "NOTHING_TO_INVOICE");
    world.assert_books_balance().await;
}
on_every_store!(usage_after_the_end_of_a_subscription_is_invoiced_on_request);

#[tokio::test]
async fn a_generated_invoice_without_a_card_stays_open() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let customer = world.customer(&platform).await;
    let subscription = world.subscribe(&platform, "starter").await.expect(201).id();
    world.owe_usage(&platform, &subscription, 500).await;
    let body = json!({ "customerId": customer });
    let path = "/operator/invoices/generate";
    let generated = world
        .billing
        .post(&operator(), path, body)
        .await
        .expect(201);
    assert_eq!(generated.text("status"), "open");
    let missing = json!({ "customerId": "0192f3ab-0000-7000-8000-000000000000" });
    let missing = world.billing.post(&operator(), path, missing).await;
    missing.expect_error(404, "NOT_FOUND");
}
