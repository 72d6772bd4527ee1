//! A server that charges invoices at Stripe, and receives its webhooks.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{BillingServer, Call, PlatformMember};

const MUST_BE_CONFIRMED: &str = "pm_card_authenticationRequired";

/// A time-out that only a hanging test reaches.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The pause between two requests for the same record.
const PAUSE: Duration = Duration::from_millis(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charge_that_is_confirmed_at_stripe_activates_the_subscription_by_its_webhook() {
    let (stripe, billing) = BillingServer::at_stripe().await;
    let member = PlatformMember::operating(&billing.server, "engines").await;
    let platform = member.platform.as_str();
    let body = json!({ "platformId": platform, "tier": "starter", "trialDays": 0,
        "paymentMethodId": MUST_BE_CONFIRMED, "billingEmail": "billing@example.org" });
    let created = billing.post("/subscription", body, 201).await;
    assert_eq!(created["status"], "incomplete");
    let invoice = only_invoice(&billing, platform).await;
    assert_eq!(invoice["status"], "open");

    stripe.confirm_charge(invoice["providerId"].as_str().unwrap());
    let active = async {
        loop {
            let path = format!("/subscription?platformId={platform}");
            if billing.send(Call::get(path), 200).await["status"] == "active" {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(TIMEOUT, active).await.unwrap();
    let paid = only_invoice(&billing, platform).await;
    assert_eq!(
        (&paid["status"], &paid["amountPaid"]),
        (&json!("paid"), &json!(2_900))
    );

    // Events that are delivered once more change nothing.
    stripe.redeliver().await;
    assert_eq!(only_invoice(&billing, platform).await, paid);
    assert_eq!(stripe.charges(), 1);
    assert!(billing.server.terminate().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refund_and_a_lost_dispute_at_stripe_are_posted_once() {
    let (stripe, billing) = BillingServer::at_stripe().await;
    for (slug, is_refund) in [("refunded", true), ("disputed", false)] {
        let member = PlatformMember::operating(&billing.server, slug).await;
        let body = json!({ "platformId": member.platform, "tier": "starter", "trialDays": 0,
            "paymentMethodId": "pm_card_visa", "billingEmail": "billing@example.org" });
        let created = billing.post("/subscription", body, 201).await;
        assert_eq!(created["status"], "active");
        let invoice = only_invoice(&billing, &member.platform).await;
        let invoice = invoice["providerId"].as_str().unwrap();
        match is_refund {
            true => drop(stripe.refund(invoice, Some(900)).unwrap()),
            false => drop(stripe.lose_dispute(invoice).unwrap()),
        }
    }
    // Both payments, without the refund and the dispute.
    let expected = 2 * 2_900 - 900 - 2_900;
    let posted = async {
        while billing.accounts().await["cash"] != expected {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(TIMEOUT, posted).await.unwrap();
    stripe.redeliver().await;
    assert_eq!(billing.accounts().await["cash"], expected);
    assert!(billing.server.terminate().await.success());
}

/// Returns the only invoice of a platform.
async fn only_invoice(billing: &BillingServer, platform: &str) -> Value {
    let invoices = billing.invoices(platform).await;
    assert_eq!(invoices.len(), 1);
    invoices.into_iter().next().unwrap().0
}
