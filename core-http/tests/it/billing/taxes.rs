//! Taxes on invoices, and the details of issuer and customer that an invoice keeps.

use core_domain::billing::Account;
use serde_json::{Value, json};

use super::{named_platform_with_card, paying_platform, platform_with_card};
use crate::world::{World, on_every_store, operator, usage_event, with_fields};

const NOVEMBER: &str = "2027-11-01T00:00:00Z";
const MIDDLE: &str = "2027-11-16T00:00:00Z";
const DECEMBER: &str = "2027-12-02T00:00:00Z";

fn address(country: &str) -> Value {
    json!({ "line1": "Rue 1", "line2": null, "postalCode": "75001", "city": "Paris", "state": null, "country": country })
}

impl World {
    /// Sets the address and the tax id of a customer.
    async fn move_customer(&self, customer: &str, country: &str, tax_id: Option<&str>) {
        let body = json!({ "address": address(country), "taxId": tax_id });
        let path = format!("/customers/{customer}");
        let updated = self.billing.patch(&operator(), &path, body).await;
        assert_eq!(updated.expect(200).json["address"]["country"], country);
    }

    /// Returns the sum of the journal's account for taxes that the issuer owes.
    async fn owed_tax(&self) -> i128 {
        let sums = self.assert_books_balance().await;
        -sums.sum(core_domain::billing::Currency::USD, Account::Tax)
    }

    /// Returns an invoice as a page.
    async fn document(&self, invoice: &Value) -> String {
        let path = format!("/invoices/{}", invoice["id"].as_str().unwrap());
        let html = [("accept", "text/html")];
        let page = self
            .billing
            .send(&operator(), "GET", &path, &html, Value::Null)
            .await;
        String::from_utf8(page.expect(200).bytes.to_vec()).unwrap()
    }
}

/// Returns treatment, basis points and tax of each line.
fn line_taxes(invoice: &Value) -> Vec<(String, i64, i64)> {
    let lines = invoice["lines"].as_array().unwrap().iter();
    let taxes = lines.map(|line| &line["tax"]);
    taxes
        .map(|tax| {
            (
                tax["treatment"].as_str().unwrap().to_owned(),
                tax["basisPoints"].as_i64().unwrap(),
                tax["amount"].as_i64().unwrap(),
            )
        })
        .collect()
}

fn amounts(invoice: &Value) -> [i64; 4] {
    ["subtotal", "taxTotal", "total", "amountDue"].map(|field| invoice[field].as_i64().unwrap())
}

async fn the_country_of_the_customer_decides_about_the_tax(world: World) {
    world.set_time(NOVEMBER);
    world.taxes.set(&[("DE", 1_900), ("FR", 2_000)]);
    for (country, tax_id, tax, line, note) in [
        (
            "DE",
            Some("DE999"),
            551,
            ("taxed", 1_900),
            "Tax 19 % on 29.00 USD",
        ),
        ("FR", None, 580, ("taxed", 2_000), "Tax 20 % on 29.00 USD"),
        (
            "FR",
            Some("FR999"),
            0,
            ("reverse_charge", 0),
            "the recipient of the services owes",
        ),
        ("US", None, 0, ("untaxed", 0), "Subtotal"),
    ] {
        let owed = world.owed_tax().await;
        let slug = format!("engines-{tax}-{}", country.to_lowercase());
        let (platform, customer) = named_platform_with_card(&world, &slug).await;
        world.move_customer(&customer, country, tax_id).await;
        let _ = world.subscribe(&platform, "starter").await.expect(201);
        let invoice = world.last_invoice(&platform).await;
        assert_eq!(amounts(&invoice), [2_900, tax, 2_900 + tax, 2_900 + tax]);
        assert_eq!(invoice["amountPaid"], 2_900 + tax);
        assert_eq!(line_taxes(&invoice), [(line.0.to_owned(), line.1, tax)]);
        assert_eq!(world.owed_tax().await - owed, i128::from(tax));
        let page = world.document(&invoice).await;
        assert!(page.contains(note), "{page}");
    }
}

async fn a_change_is_previewed_and_charged_with_its_tax(world: World) {
    world.set_time(NOVEMBER);
    world.taxes.set(&[("DE", 1_900)]);
    let (platform, _) = paying_platform(&world, "starter").await;
    world.set_time(MIDDLE);
    let query = format!("/subscription/proration-preview?platformId={platform}&tier=growth");
    let preview = world.billing.get(&operator(), &query).await.expect(200);
    let _ = world
        .change_tier(&platform, "growth", json!({}))
        .await
        .expect(200);
    let invoice = world.last_invoice(&platform).await;
    // -14.50 and 49.50, each with 19 percent: -2.755 and 9.405.
    assert_eq!(amounts(&invoice), [3_500, 665, 4_165, 4_165]);
    assert_eq!(preview.json["taxTotal"], invoice["taxTotal"]);
    assert_eq!(preview.json["amountDueNow"], invoice["amountDue"]);
    assert_eq!(preview.json["nextInvoiceAmount"], 9_900 + 1_881);
    let _ = world.bill_until(DECEMBER).await;
    assert_eq!(world.last_invoice(&platform).await["total"], 9_900 + 1_881);
    world.assert_books_balance().await;
}

async fn a_credit_has_the_rate_of_the_charge_that_it_returns(world: World) {
    world.set_time(NOVEMBER);
    world.taxes.set(&[("DE", 1_900), ("FR", 2_000)]);
    let (platform, customer) = paying_platform(&world, "starter").await;
    let owed = world.owed_tax().await;
    world.set_time(MIDDLE);
    world.move_customer(&customer, "FR", None).await;
    let _ = world
        .change_tier(&platform, "growth", json!({}))
        .await
        .expect(200);
    let upgrade = line_taxes(&world.last_invoice(&platform).await);
    let taxed = |points, tax| ("taxed".to_owned(), points, tax);
    assert_eq!(upgrade, [taxed(1_900, -276), taxed(2_000, 990)]);
    // Back in the same second, and at home again: the tax of both changes is that of two starters.
    world.move_customer(&customer, "DE", None).await;
    let now = json!({ "effective": "now" });
    let _ = world
        .change_tier(&platform, "starter", now)
        .await
        .expect(200);
    let undone = line_taxes(&world.last_invoice(&platform).await);
    assert_eq!(undone, [taxed(2_000, -990), taxed(1_900, 276)]);
    assert_eq!(world.owed_tax().await, owed);
}

async fn a_cancelled_invoice_returns_its_tax(world: World) {
    world.set_time(NOVEMBER);
    world.taxes.set(&[("DE", 1_900)]);
    let (platform, customer) = paying_platform(&world, "starter").await;
    let owed = world.owed_tax().await;
    world.set_time(MIDDLE);
    world
        .use_card(&customer, "pm_card_chargeCustomerFail")
        .await;
    let refused = world.change_tier(&platform, "growth", json!({})).await;
    refused.expect_error(402, "PAYMENT_REQUIRED");
    let invoices = world.invoices(&platform).await;
    assert_eq!(invoices.last().unwrap()["status"], "void");
    assert_eq!(world.owed_tax().await, owed);
}

async fn late_usage_has_the_rate_of_its_period(world: World) {
    world.set_time(NOVEMBER);
    world.taxes.set(&[("DE", 1_900), ("FR", 2_000)]);
    let (platform, customer) = paying_platform(&world, "starter").await;
    world
        .use_metric(&platform, "a", "requests", 50_000_000)
        .await;
    let _ = world.bill_until(DECEMBER).await;
    world.move_customer(&customer, "FR", None).await;
    let late = json!({ "time": "2027-11-30T00:00:00Z" });
    let late = with_fields(usage_event(&platform, "late", "requests", 10_000_000), late);
    let _ = world.report_usage(vec![late]).await.expect(200);
    let _ = world.bill_until("2028-01-02T00:00:00Z").await;
    let mut rates = Vec::new();
    for invoice in world.invoices(&platform).await {
        for line in invoice["lines"].as_array().unwrap() {
            if line["metric"] == "requests" {
                let kind = line["type"].as_str().unwrap().to_owned();
                rates.push((kind, line["tax"]["basisPoints"].as_i64().unwrap()));
            }
        }
    }
    let expected = [
        ("usage".to_owned(), 1_900),
        ("usage_adjustment".to_owned(), 1_900),
    ];
    assert_eq!(rates, expected);
    world.assert_books_balance().await;
}

async fn a_final_invoice_keeps_issuer_customer_and_tax(world: World) {
    world.set_time(NOVEMBER);
    world.taxes.set(&[("FR", 2_000)]);
    let (platform, customer) = platform_with_card(&world).await;
    world.move_customer(&customer, "FR", None).await;
    let _ = world.subscribe(&platform, "starter").await.expect(201);
    let before = world.last_invoice(&platform).await;
    let page = world.document(&before).await;
    assert_eq!(before["issuer"]["taxId"], "DE123456789");
    assert_eq!(before["customer"]["address"], address("FR"));
    for text in [
        "Platform GmbH",
        "10115 Berlin",
        "Germany",
        "75001 Paris",
        "France",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    world.move_customer(&customer, "DE", Some("DE1")).await;
    world.taxes.set(&[("FR", 550)]);
    let path = format!("/platforms/{platform}");
    let _ = world.registry.delete(&operator(), &path).await;
    let _ = world.bill().await;
    let path = format!("/invoices/{}", before["id"].as_str().unwrap());
    let after = world.billing.get(&operator(), &path).await.expect(200).json;
    assert_eq!(after, before);
    assert_eq!(world.document(&before).await, page);
}

on_every_store! {
    the_country_of_the_customer_decides_about_the_tax,
    a_change_is_previewed_and_charged_with_its_tax,
    a_credit_has_the_rate_of_the_charge_that_it_returns,
    a_cancelled_invoice_returns_its_tax,
    late_usage_has_the_rate_of_its_period,
    a_final_invoice_keeps_issuer_customer_and_tax,
}

#[tokio::test]
async fn a_trial_on_a_paid_subscription_returns_the_tax_as_well() {
    let world = World::new();
    world.set_time(NOVEMBER);
    world.taxes.set(&[("DE", 1_900)]);
    let (platform, _) = paying_platform(&world, "starter").await;
    let subscription = world.subscription_of(&platform).await;
    let id = subscription["id"].as_str().unwrap();
    let path = format!("/operator/subscriptions/{id}/trial");
    let body = json!({ "trialDays": 14 });
    let started = world.billing.post(&operator(), &path, body).await;
    assert_eq!(started.expect(200).json["status"], "trialing");
    assert_eq!(
        amounts(&world.last_invoice(&platform).await),
        [-2_900, -551, -3_451, 0]
    );
    assert_eq!(world.owed_tax().await, 0);
}

#[tokio::test]
async fn addresses_and_tax_ids_are_checked_and_can_be_cleared() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let customer = world.customer(&platform).await;
    let path = format!("/customers/{customer}");
    let with = |field: &str, value: Value| {
        let mut address = address("FR");
        address[field] = value;
        json!({ "address": address })
    };
    for bad in [
        with("country", json!("XX")),
        with("country", json!("fr")),
        with("country", Value::Null),
        with("city", json!("")),
        with("line1", json!("x".repeat(201))),
        with("street", json!("Rue 1")),
        json!({ "address": "Rue 1" }),
        json!({ "address": { "country": "FR" } }),
        json!({ "taxId": "D" }),
        json!({ "taxId": "DE_1" }),
        json!({ "taxId": 5 }),
    ] {
        let refused = world.billing.patch(&operator(), &path, bad.clone()).await;
        assert_eq!(refused.status, 400, "{bad}");
        let mut new = bad.clone();
        new["email"] = json!("ada@example.org");
        let refused = world.billing.post(&operator(), "/customers", new).await;
        assert_eq!(refused.status, 400, "{bad}");
    }
    world.move_customer(&customer, "FR", Some("fr 1")).await;
    let kept = world.billing.get(&operator(), &path).await.expect(200);
    assert_eq!(kept.json["taxId"], "FR 1");
    let cleared = json!({ "address": null, "taxId": null });
    let cleared = world
        .billing
        .patch(&operator(), &path, cleared)
        .await
        .expect(200);
    assert_eq!(cleared.json["address"], Value::Null);
    assert_eq!(cleared.json["taxId"], Value::Null);
}
