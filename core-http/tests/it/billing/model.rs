//! Random sequences of requests, while time passes and the payment provider fails. After each of them the books balance, and
//! the rules of billing hold. Both payment providers make the same records.

use std::collections::BTreeMap;

use core_domain::billing::{
    PaymentAttempt, PaymentAttemptQuery, Subscription, SubscriptionQuery, SubscriptionStatus,
};
use core_domain::kernel::{InvoiceId, PlatformId, SubscriptionId};
use core_domain::testing::cases;
use core_stripe_fake::FakeStripe;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::charges::recover;
use super::{billing_records, named_platform_with_card, records_without_times, webhooks};
use crate::world::{PaymentFault, World, on_every_store, operator, usage_event};

/// A request about the billing of one platform, or an event beside it.
#[derive(Clone, Debug)]
enum Step {
    Subscribe(&'static str),
    Change(&'static str, bool),
    Cancel(bool),
    Trial(u32),
    Override(&'static str),
    Credit(u32),
    Attach(&'static str),
    Use(u32),
    /// The next charge fails.
    Fail(PaymentFault),
    /// Time passes, and billing makes what is due then.
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
        2 => (1_u32..9_000_000).prop_map(Step::Use),
        3 => (1_u64..4_000_000).prop_map(Step::Wait),
    ]
}

fn fault() -> impl Strategy<Value = PaymentFault> {
    prop::sample::select(vec![
        PaymentFault::Unreachable,
        PaymentFault::AnswerLost,
        PaymentFault::DeclinedForGood,
    ])
}

/// A step, or a failure of the provider.
fn faulty_step() -> impl Strategy<Value = Step> {
    prop_oneof![8 => step(), 1 => fault().prop_map(Step::Fail)]
}

/// A step, a failure of its first charge, and the events that Stripe sends after it, in any order and repeatedly.
#[derive(Clone, Debug)]
struct Round {
    fault: Option<PaymentFault>,
    step: Step,
    events: Vec<Index>,
}

fn round() -> impl Strategy<Value = Round> {
    let fault = prop::option::weighted(0.2, fault());
    let events = prop::collection::vec(any::<Index>(), 0..8);
    (fault, step(), events).prop_map(|(fault, step, events)| Round {
        fault,
        step,
        events,
    })
}

/// Codes of a provider that fails.
const OUTAGES: [&str; 2] = ["PAYMENT_PROVIDER_UNAVAILABLE", "PAYMENT_OUTCOME_UNKNOWN"];

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
        Step::Use(quantity) => {
            let id = format!("{}-{quantity}", world.app.clock.now().millis());
            let event = usage_event(platform, &id, "requests", i64::from(*quantity));
            world.report_usage(vec![event]).await
        }
        Step::Fail(fault) => {
            world.payments.fail_next(*fault);
            return;
        }
        Step::Wait(seconds) => {
            world.tick(*seconds);
            let _ = world.bill().await;
            return;
        }
    };
    let is_outage = OUTAGES.contains(&answer.json["error"]["code"].as_str().unwrap_or_default());
    assert!(
        is_outage || !answer.status.is_server_error(),
        "{step:?}: {}",
        answer.json
    );
}

/// Sends the picked events of the Stripe account to the webhook, and applies them. The ledger has no events.
async fn deliver(world: &World, picks: &[Index]) {
    let events = world.stripe.as_ref().map(FakeStripe::events);
    let events = events.unwrap_or_default();
    for pick in picks.iter().filter(|_| !events.is_empty()) {
        webhooks::deliver(world, pick.get(&events).clone()).await;
    }
    world.run_jobs().await;
}

/// The rules that hold at any time for the billing of a platform.
struct Rules {
    platform: String,
    /// The lines of each invoice, which never change.
    lines: BTreeMap<String, Value>,
    /// The subscriptions that have ended.
    ended: BTreeMap<SubscriptionId, SubscriptionStatus>,
}

impl Rules {
    fn of(platform: &str) -> Self {
        Self {
            platform: platform.to_owned(),
            lines: BTreeMap::new(),
            ended: BTreeMap::new(),
        }
    }

    async fn check(&mut self, world: &World) {
        world.assert_books_balance().await;
        self.check_subscriptions(world).await;
        let mut cycles = BTreeMap::<String, u32>::new();
        for invoice in world.invoices(&self.platform).await {
            assert_invoice_adds_up(&invoice);
            if invoice["billingReason"] == "subscription_cycle" {
                let boundary = format!("{} {}", invoice["subscriptionId"], invoice["periodStart"]);
                // A resumed subscription whose card was declined has a void invoice for the boundary.
                let is_void = invoice["status"] == "void";
                *cycles.entry(boundary).or_default() += u32::from(!is_void);
            }
            let id = invoice["id"].as_str().unwrap().to_owned();
            let lines = self.lines.entry(id).or_insert(invoice["lines"].clone());
            assert_eq!(*lines, invoice["lines"], "{invoice}");
            let charged = world.charged_amounts(&invoice).await;
            assert!(charged.len() <= 1, "{invoice}");
            assert_one_open_attempt(world, &invoice).await;
        }
        assert!(cycles.values().all(|invoices| *invoices <= 1), "{cycles:?}");
        let usage = world.usage_of(&self.platform, "/usage/current").await;
        assert!(usage["estimatedTotal"].as_i64().unwrap() >= 0, "{usage}");
    }

    /// Asserts that at most one subscription is live, and that ended ones stay as they are.
    async fn check_subscriptions(&mut self, world: &World) {
        let platform = PlatformId::parse(&self.platform).unwrap();
        let all = SubscriptionQuery::OfPlatform(platform);
        let mut live = 0;
        for subscription in world.all::<Subscription>(&all).await {
            if subscription.status.is_live() {
                live += 1;
                assert!(!self.ended.contains_key(&subscription.id));
                continue;
            }
            let id = subscription.id.clone();
            let ended = self.ended.entry(id).or_insert(subscription.status);
            assert_eq!(*ended, subscription.status);
        }
        assert!(live <= 1);
    }

    /// Asserts that the provider has charged the amounts that are paid. No outcome may be open.
    async fn check_charges(&self, world: &World) {
        for invoice in world.invoices(&self.platform).await {
            let charged: i64 = world.charged_amounts(&invoice).await.iter().sum();
            assert_eq!(invoice["amountPaid"], charged, "{invoice}");
        }
    }
}

/// Asserts that no two charges of an invoice run at a time, and that none runs for an invoice that is not open.
async fn assert_one_open_attempt(world: &World, invoice: &Value) {
    let id = InvoiceId::parse(invoice["id"].as_str().unwrap()).unwrap();
    let open = PaymentAttemptQuery::OpenOf(id);
    let open = world.all::<PaymentAttempt>(&open).await.len();
    let most = usize::from(invoice["status"] == "open" || invoice["status"] == "draft");
    assert!(open <= most, "{open} attempts of {invoice}");
}

fn assert_invoice_adds_up(invoice: &Value) {
    let minor = |field: &str| invoice[field].as_i64().unwrap();
    let lines = invoice["lines"].as_array().unwrap().iter();
    let lines: i64 = lines.map(|line| line["amount"].as_i64().unwrap()).sum();
    assert_eq!(lines, minor("subtotal"), "{invoice}");
    let total = minor("subtotal") - minor("discountTotal") + minor("taxTotal");
    assert_eq!(total, minor("total"), "{invoice}");
    let due = minor("total") - minor("creditsApplied") - minor("balanceApplied");
    assert!(due == minor("amountDue") && due >= 0, "{invoice}");
    let is_open = invoice["status"] == "open" || invoice["status"] == "paid";
    let settled = minor("amountPaid") + minor("amountRemaining");
    assert!(!is_open || settled == due, "{invoice}");
}

/// Lets the jobs that wait for the provider try again, soon enough that none is given up.
async fn wait_for_provider(world: &World) {
    for _ in 0..20 {
        if world.bill().await.waiting == 0 {
            return;
        }
        world.tick(5 * 60);
    }
    panic!("the jobs still wait");
}

/// Runs steps on one platform, and asserts the rules after each. The next one can begin while an outcome is open.
async fn play(world: &World, steps: &[Step]) {
    let (platform, customer) = named_platform_with_card(world, "engines").await;
    let mut rules = Rules::of(&platform);
    for step in steps {
        run(world, &platform, &customer, step).await;
        wait_for_provider(world).await;
        rules.check(world).await;
    }
    // When the provider works again, everything is settled.
    world.payments.forget_faults();
    run(world, &platform, &customer, &Step::Wait(90_000)).await;
    wait_for_provider(world).await;
    rules.check(world).await;
    rules.check_charges(world).await;
}

/// Runs rounds on one platform with a subscription, and asserts the rules after each, when its outcome is known. Returns the
/// platform.
async fn play_rounds(world: &World, rounds: &[Round]) -> String {
    let (platform, customer) = named_platform_with_card(world, "engines").await;
    let _ = world.subscribe(&platform, "starter").await.expect(201);
    let mut rules = Rules::of(&platform);
    for round in rounds {
        if let Some(fault) = round.fault {
            world.payments.fail_next(fault);
        }
        run(world, &platform, &customer, &round.step).await;
        world.payments.forget_faults();
        deliver(world, &round.events).await;
        for _ in 0..2 {
            world.tick(5 * 60);
            let _ = recover(world, &world.billing_parts).await;
            assert_eq!(world.bill().await.waiting, 0);
        }
        rules.check(world).await;
        rules.check_charges(world).await;
    }
    platform
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(48)))]

    #[test]
    fn the_rules_hold_after_every_request(steps in prop::collection::vec(faulty_step(), 1..24)) {
        block_on(async { play(&World::new(), &steps).await });
    }

    #[test]
    fn billing_that_is_late_makes_the_same_as_billing_in_time(
        steps in prop::collection::vec(step(), 1..12), parts in 2_u64..6,
    ) {
        block_on(async {
            let worlds = [World::new(), World::new()];
            let mut records = Vec::new();
            for (world, parts) in worlds.iter().zip([1, parts]) {
                let (platform, customer) = named_platform_with_card(world, "engines").await;
                let _ = world.subscribe(&platform, "starter").await.expect(201);
                for step in &steps {
                    for part in split(step, parts) {
                        run(world, &platform, &customer, &part).await;
                    }
                }
                records.push(billing_records(world, &platform).await);
            }
            assert_eq!(records[0], records[1]);
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(24)))]

    #[test]
    fn both_providers_make_the_same_records(rounds in prop::collection::vec(round(), 1..24)) {
        block_on(async {
            let worlds = [World::new(), World::new().at_stripe().await];
            let mut records = Vec::new();
            for world in worlds {
                let platform = play_rounds(&world, &rounds).await;
                records.push(records_without_times(&world, &platform).await);
            }
            assert_eq!(records[0], records[1]);
        });
    }
}

/// Splits a time into parts with the same sum.
fn split(step: &Step, parts: u64) -> Vec<Step> {
    let Step::Wait(seconds) = step else {
        return vec![step.clone()];
    };
    let part = seconds / parts;
    let mut waits = vec![Step::Wait(part); usize::try_from(parts - 1).unwrap()];
    waits.push(Step::Wait(seconds - part * (parts - 1)));
    waits
}

fn block_on(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(future);
}

async fn the_rules_hold_on_every_store(world: World) {
    let steps = prop::collection::vec(faulty_step(), 40);
    let steps = steps.new_tree(&mut TestRunner::default()).unwrap();
    play(&world, &steps.current()).await;
}
on_every_store!(the_rules_hold_on_every_store);

async fn the_rules_hold_at_stripe_on_every_store(world: World) {
    let rounds = prop::collection::vec(round(), 40);
    let rounds = rounds.new_tree(&mut TestRunner::default()).unwrap();
    play_rounds(&world.at_stripe().await, &rounds.current()).await;
}
on_every_store!(the_rules_hold_at_stripe_on_every_store);
