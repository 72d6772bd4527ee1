//! Billing, beyond what the generated tests cover.

mod access;
mod charges;
mod customers;
mod dunning;
mod examples;
mod interruptions;
mod journal;
mod mails;
mod model;
mod overview;
mod pages;
mod payment_methods;
mod plan_migrations;
mod platforms;
mod quotas;
mod renewals;
mod restores;
mod subscriptions;
mod taxes;
mod ticks;
mod usage;
mod usage_periods;
mod webhooks;

use core_domain::kernel::Clock;
use serde_json::{Value, json};

use crate::world::{World, operator, platform_path};

/// Creates a platform with a paid subscription and a card, and returns its id with that of its customer.
async fn paying_platform(world: &World, tier: &str) -> (String, String) {
    let (platform, customer) = platform_with_card(world).await;
    let subscribed = world.subscribe(&platform, tier).await.expect(201);
    assert_eq!(subscribed.json["status"], "active");
    (platform, customer)
}

/// Creates a platform whose customer has a card, without a change of the time.
async fn platform_with_card(world: &World) -> (String, String) {
    named_platform_with_card(world, "engines").await
}

/// Creates a platform with this slug whose customer has a card, without a change of the time.
async fn named_platform_with_card(world: &World, slug: &str) -> (String, String) {
    let now = world.clock.now();
    let platform = world.create_platform(slug).await;
    let customer = world.customer(&platform).await;
    world.attach_card(&customer, "pm_card_visa").await;
    world.clock.set(now);
    (platform, customer)
}

/// Returns the records of a platform's billing, without what differs from run to run.
async fn billing_records(world: &World, platform: &str) -> Value {
    let mut invoices = world.invoices(platform).await;
    let mut subscription = world.subscription_of(platform).await;
    let own = [
        "id",
        "number",
        "customerId",
        "platformId",
        "subscriptionId",
        "provider",
        "providerId",
        "updatedAt",
        "latestInvoiceId",
        "version",
        "defaultPaymentMethodId",
        "hostedInvoiceUrl",
    ];
    for value in invoices.iter_mut().chain([&mut subscription]) {
        let fields = value.as_object_mut().unwrap();
        own.iter().for_each(|field| drop(fields.remove(*field)));
    }
    for line in invoices
        .iter_mut()
        .flat_map(|invoice| invoice["lines"].as_array_mut().unwrap())
    {
        drop(line.as_object_mut().unwrap().remove("id"));
    }
    // Invoices of one instant have no order.
    invoices.sort_by_key(|invoice| (invoice["createdAt"].to_string(), invoice.to_string()));
    let shown = world.platform(platform).await;
    let (status, tier) = (&shown["status"], &shown["tier"]);
    json!({ "invoices": invoices, "subscription": subscription, "status": status, "tier": tier })
}

/// Returns the records of a platform's billing with the mails to its customer and the sums of all accounts, but without the
/// times of payments. An invoice is paid later if the payment provider fails.
async fn records_without_times(world: &World, platform: &str) -> Value {
    let mut records = billing_records(world, platform).await;
    for invoice in records["invoices"].as_array_mut().unwrap() {
        let _ = invoice.as_object_mut().unwrap().remove("paidAt");
    }
    let mut mails = mails::subjects(world).await;
    mails.sort_unstable();
    records["mails"] = json!(mails);
    let sums = world.assert_books_balance().await;
    records["sums"] = json!(format!("{sums:?}"));
    records
}

/// Returns the amounts of the lines of an invoice.
fn line_amounts(invoice: &Value) -> Vec<i64> {
    let lines = invoice["lines"].as_array().unwrap();
    let amounts = lines.iter().map(|line| line["amount"].as_i64().unwrap());
    amounts.collect()
}

impl World {
    /// Returns the record of a platform.
    async fn platform(&self, id: &str) -> Value {
        let path = platform_path(id, "");
        self.registry.get(&operator(), &path).await.expect(200).json
    }
}
