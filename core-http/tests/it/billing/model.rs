//! Random sequences of requests. After each of them the journal balances, and all balances follow from it.

use core_domain::testing::cases;
use proptest::prelude::*;
use serde_json::json;

use crate::world::{World, operator};

/// A request about the billing of one platform.
#[derive(Clone, Debug)]
enum Step {
    Subscribe(&'static str),
    Change(&'static str, bool),
    Cancel(bool),
    Trial(u32),
    Override(&'static str),
    Credit(u32),
    Attach(&'static str),
    Wait(u64),
}

fn tier() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["starter", "growth", "scale"])
}

fn step() -> impl Strategy<Value = Step> {
    let cards = vec![
        "pm_card_visa",
        "pm_card_chargeCustomerFail",
        "pm_card_authenticationRequired",
        "pm_card_chargeDeclined",
    ];
    prop_oneof![
        3 => tier().prop_map(Step::Subscribe),
        5 => (tier(), any::<bool>()).prop_map(|(tier, now)| Step::Change(tier, now)),
        1 => any::<bool>().prop_map(Step::Cancel),
        1 => (1_u32..40).prop_map(Step::Trial),
        1 => tier().prop_map(Step::Override),
        2 => (1_u32..20_000).prop_map(Step::Credit),
        2 => prop::sample::select(cards).prop_map(Step::Attach),
        3 => (1_u64..300_000).prop_map(Step::Wait),
    ]
}

/// Sends the request. It may be refused, but it never fails on our side.
async fn run(world: &World, platform: &str, customer: &str, step: &Step) {
    let subscription = format!("/subscription?platformId={platform}");
    let seen = world.billing.get(&operator(), &subscription).await;
    let id = seen.json["id"].as_str().unwrap_or("none").to_owned();
    let answer = match step {
        Step::Subscribe(tier) => world.subscribe(platform, tier).await,
        Step::Change(tier, now) => {
            let effective = if *now { "now" } else { "auto" };
            let more = json!({ "effective": effective });
            world.change_tier(platform, tier, more).await
        }
        Step::Cancel(immediately) => {
            let body = json!({ "platformId": platform, "immediately": immediately });
            world
                .billing
                .post(&operator(), "/subscription/cancel", body)
                .await
        }
        Step::Trial(days) => {
            let path = format!("/operator/subscriptions/{id}/trial");
            world
                .billing
                .post(&operator(), &path, json!({ "trialDays": days }))
                .await
        }
        Step::Override(tier) => {
            let path = format!("/operator/subscriptions/{id}/override");
            let body = json!({ "tier": tier, "reason": "a test" });
            world.billing.patch(&operator(), &path, body).await
        }
        Step::Credit(amount) => {
            let body = json!({ "customerId": customer, "amount": amount, "description": "a test" });
            world
                .billing
                .post(&operator(), "/operator/credits", body)
                .await
        }
        Step::Attach(card) => {
            let path = format!("/payment-methods/{card}/attach");
            let body = json!({ "customerId": customer });
            let attached = world.billing.post(&operator(), &path, body.clone()).await;
            if !attached.is_success() {
                return;
            }
            let path = format!("/payment-methods/{}/set-default", attached.id());
            world.billing.post(&operator(), &path, body).await
        }
        Step::Wait(seconds) => {
            world.tick(*seconds);
            return;
        }
    };
    assert!(
        !answer.status.is_server_error(),
        "{step:?}: {}",
        answer.json
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(48)))]

    #[test]
    fn the_books_balance_after_every_request(steps in prop::collection::vec(step(), 1..24)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = World::new();
            let platform = world.create_platform("engines").await;
            let customer = world.customer(&platform).await;
            world.attach_card(&customer, "pm_card_visa").await;
            for step in &steps {
                run(&world, &platform, &customer, step).await;
                world.assert_books_balance().await;
            }
        });
    }
}
