//! A year of one customer, played by the test clock on both payment providers: trial, upgrade, metered usage, declined
//! renewals, suspension, recovery, downgrade, credit and cancellation. With `--nocapture` the test prints every invoice and
//! the balance of every account.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use crate::world::{BillingServer, Call, PlatformMember, run};

const DECLINED: &str = "pm_card_chargeCustomerFail";

/// Later than the real date, because the clock of billing only runs forward.
const START: &str = "2032-01-05T00:00:00Z";

/// An invoice: its reason, the first day of its period, its total and the amount that was paid, both in cents.
type InvoiceRow<'a> = (&'a str, &'a str, i64, i64);

const INVOICES: [InvoiceRow<'static>; 10] = [
    ("subscription_cycle", "2032-01-20", 2_900, 2_900),
    // 10 of 31 days are left: -935 and 3,194.
    ("subscription_update", "2032-01-20", 2_259, 2_259),
    ("subscription_cycle", "2032-02-20", 9_900, 9_900),
    // 250,000 requests are included for 21 of 31 days, and 1,000,000 for the rest: 4,508,064 are charged.
    ("usage", "2032-01-20", 225, 225),
    ("subscription_cycle", "2032-03-20", 9_900, 9_900),
    ("subscription_cycle", "2032-04-20", 9_900, 9_900),
    ("subscription_cycle", "2032-05-20", 2_900, 2_900),
    // A credit of 50.00 pays this invoice, and a part of the next one.
    ("subscription_cycle", "2032-06-20", 2_900, 0),
    ("subscription_cycle", "2032-07-20", 2_900, 800),
    ("subscription_cycle", "2032-08-20", 2_900, 2_900),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_year_of_a_customer_has_the_same_invoices_and_journal_on_both_providers() {
    let on_ledger = play_year(BillingServer::start(&[]).await).await;
    let (stripe, billing) = BillingServer::at_stripe().await;
    let at_stripe = play_year(billing).await;

    for year in [&on_ledger, &at_stripe] {
        year.print();
        assert_eq!(year.invoices(), INVOICES);
        let sum: i64 = year.accounts.values().sum();
        assert_eq!(sum, 0, "{:?}", year.accounts);
    }
    assert_eq!(on_ledger.accounts, at_stripe.accounts);
    // The provider has charged the same amounts.
    let paid: i64 = INVOICES.iter().map(|invoice| invoice.3).sum();
    assert_eq!(at_stripe.accounts["cash"], paid);
    let charged = stripe.invoices().into_iter();
    let charged = charged.map(|invoice| invoice["amount_paid"].as_i64().unwrap());
    assert_eq!(charged.sum::<i64>(), paid);
    assert!(!stripe.events().is_empty());
}

/// The result of a year.
struct Year {
    documents: Vec<Value>,
    /// The sum of each account: debits are positive. Accounts of customers are named without their ids.
    accounts: BTreeMap<String, i64>,
}

impl Year {
    fn invoices(&self) -> Vec<InvoiceRow<'_>> {
        let rows = self.documents.iter().map(|invoice| {
            (
                invoice["billingReason"].as_str().unwrap(),
                &invoice["periodStart"].as_str().unwrap()[.."2032-01-20".len()],
                invoice["total"].as_i64().unwrap(),
                invoice["amountPaid"].as_i64().unwrap(),
            )
        });
        rows.collect()
    }

    #[expect(
        clippy::print_stdout,
        reason = "a person reads the invoices of the year"
    )]
    fn print(&self) {
        for invoice in &self.documents {
            println!(
                "{} {:<20} {} {:>6} {:>6} {}",
                invoice["number"].as_str().unwrap(),
                invoice["billingReason"].as_str().unwrap(),
                &invoice["periodStart"].as_str().unwrap()[..10],
                invoice["total"],
                invoice["amountPaid"],
                invoice["status"].as_str().unwrap(),
            );
        }
        for (account, sum) in &self.accounts {
            println!("{account:<24} {sum:>8}");
        }
    }
}

/// Plays the year on a new server.
async fn play_year(billing: BillingServer) -> Year {
    billing.advance(START).await;
    let member = PlatformMember::operating(&billing.server, "engines").await;
    let platform = member.platform.as_str();
    let customer = begin_trial(&billing, platform).await;
    billing.advance("2032-02-10T00:00:00Z").await;
    let upgrade = json!({ "platformId": platform, "tier": "growth",
        "prorationDate": "2032-02-10T00:00:00Z" });
    billing
        .post("/subscription/change-tier", upgrade, 200)
        .await;
    billing.advance("2032-02-12T00:00:00Z").await;
    let event = json!({ "id": "a", "source": "meter", "platformId": platform,
        "metric": "requests", "quantity": 5_000_000, "time": "2032-02-12T00:00:00Z" });
    billing
        .post("/internal/usage/events", json!({ "events": [event] }), 200)
        .await;
    billing.advance("2032-03-01T00:00:00Z").await;

    use_card(&billing, &customer, DECLINED).await;
    billing.advance("2032-03-22T00:00:00Z").await;
    assert_eq!(status_of(&billing, platform).await, "past_due");
    billing.advance("2032-03-29T00:00:00Z").await;
    assert_eq!(status_of(&billing, platform).await, "unpaid");
    billing.advance("2032-04-02T00:00:00Z").await;
    use_card(&billing, &customer, "pm_card_visa").await;
    assert_eq!(status_of(&billing, platform).await, "active");

    billing.advance("2032-05-01T00:00:00Z").await;
    let downgrade = json!({ "platformId": platform, "tier": "starter" });
    billing
        .post("/subscription/change-tier", downgrade, 200)
        .await;
    billing.advance("2032-06-01T00:00:00Z").await;
    let credit = json!({ "customerId": customer, "amount": 5_000, "description": "Sorry" });
    billing.post("/operator/credits", credit, 201).await;
    billing.advance("2032-09-01T00:00:00Z").await;
    let cancel = json!({ "platformId": platform });
    billing.post("/subscription/cancel", cancel, 200).await;
    billing.advance("2033-01-05T00:00:00Z").await;
    assert_eq!(status_of(&billing, platform).await, "canceled");

    let invoices = billing.invoices(platform).await.into_iter();
    let documents = invoices.map(|(invoice, _)| invoice).collect();
    let accounts = billing.accounts().await;
    assert!(billing.server.terminate().await.success());
    let verified = run(billing.data.path(), &["verify-journal"], "").await;
    assert!(verified.status.success(), "{verified:?}");
    Year {
        documents,
        accounts,
    }
}

/// Subscribes a platform to a trial that ends on 20 January. Returns the id of its customer.
async fn begin_trial(billing: &BillingServer, platform: &str) -> String {
    let body = json!({ "platformId": platform, "tier": "starter",
        "paymentMethodId": "pm_card_visa", "billingEmail": "billing@example.org" });
    let created = billing.post("/subscription", body, 201).await;
    assert_eq!(created["status"], "trialing");
    let subscription = created["id"].as_str().unwrap();
    let path = format!("/operator/subscriptions/{subscription}/override");
    let body = json!({ "trialEndsAt": "2032-01-20T00:00:00Z", "reason": "An exact anchor" });
    billing
        .send(Call::post(path, &body).by(&Method::PATCH), 200)
        .await;
    created["customerId"].as_str().unwrap().to_owned()
}

/// Attaches a card to a customer, and makes it the default.
async fn use_card(billing: &BillingServer, customer: &str, card: &str) {
    let body = json!({ "customerId": customer });
    let path = format!("/payment-methods/{card}/attach");
    let attached = billing.post(&path, body.clone(), 200).await;
    let path = format!(
        "/payment-methods/{}/set-default",
        attached["id"].as_str().unwrap()
    );
    billing.post(&path, body, 200).await;
}

async fn status_of(billing: &BillingServer, platform: &str) -> String {
    let path = format!("/subscription?platformId={platform}");
    let subscription = billing.send(Call::get(path), 200).await;
    subscription["status"].as_str().unwrap().to_owned()
}
