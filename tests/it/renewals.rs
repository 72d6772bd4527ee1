//! A year of billing in a complete installation: its ticker, worker, ledger and test clock, on every store.

use core_suite::Suite;
use serde_json::json;

use crate::world::{Backend, Call, Fresh, Installation, PlatformMember, SERVICE_KEY};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_tick_renews_a_subscription_for_a_year() {
    for backend in Backend::ALL {
        let fresh = Fresh::on(backend).await;
        let builder = fresh.builder.clone().settings(|settings| {
            settings.billing.test_clock = true;
            settings.billing.allow_simulated_payments = true;
        });
        let suite = builder.build().await.unwrap();
        let platform = PlatformMember::operating(&suite, "engines").await.platform;
        let body = json!({ "platformId": platform, "tier": "starter", "trialDays": 0,
            "paymentMethodId": "pm_card_visa", "billingEmail": "billing@example.org" });
        let created = send(&suite, Call::post("/subscription", &body)).await;
        assert_eq!(created.expect(201).json["status"], "active");
        let now = send(&suite, Call::post("/internal/billing/tick", &json!({}))).await;
        let now = now.expect(200).json["now"].as_str().unwrap().to_owned();
        let (year, rest) = now.split_once('-').unwrap();
        let next_year = year.parse::<u32>().unwrap() + 1;
        let later = json!({ "now": format!("{next_year}-{rest}") });
        let ticked = send(&suite, Call::post("/internal/billing/tick", &later)).await;
        let left = (&ticked.json["running"], &ticked.json["waiting"]);
        assert_eq!(left, (&json!(0), &json!(0)), "{backend:?} {}", ticked.json);
        let path = format!("/invoices?platformId={platform}&status=paid&limit=100");
        let paid = send(&suite, Call::get(path)).await.expect(200);
        let paid = paid.json["data"].as_array().unwrap();
        assert_eq!(paid.len(), 13, "{backend:?}");
        suite.shutdown().await;
    }
}

async fn send(suite: &Suite, call: Call) -> core_http::kernel::testing::Answer {
    suite.send("billing", call.bearer(SERVICE_KEY)).await
}
