//! Jobs of billing that are interrupted anywhere. In the end, everything is as without the interruption, and nothing is
//! charged twice.

use core_domain::billing::{
    Customer, CustomerQuery, Invoice, InvoiceQuery, InvoiceStatus, LedgerCharge, LedgerChargeQuery,
    LedgerOutcome, Subscription, SubscriptionQuery,
};
use core_domain::kernel::Stored;
use core_storage::fault::FaultStore;
use http::Method;
use serde_json::{Value, json};

use super::charges::recover;
use super::plan_migrations::{configure, migrate};
use super::webhooks::{CONFIRMED, confirm, send_about, send_lost_dispute, send_refund, waiting};
use super::{paying_platform, platform_with_card, records_without_times};
use crate::world::{Answer, PaymentFault, World, WorldImage, operator};

const DECLINED: &str = "pm_card_chargeCustomerFail";

/// A change that time makes.
#[derive(Clone, Copy, Debug)]
enum Scenario {
    Renewal,
    PlannedChange,
    Cancellation,
    PlanMove,
    TrialNotice,
    TrialEnd,
    TrialEndWithoutCard,
    CardNotice,
    Decline,
    LastAttempt,
    UnpaidEnd,
    Expiry,
    CreditExpiry,
    UsageEnd,
    UsageInvoice,
    UnconfirmedChange,
    ProviderEvent,
    Refund,
    LostDispute,
}

const SCENARIOS: [Scenario; 19] = [
    Scenario::Renewal,
    Scenario::PlannedChange,
    Scenario::Cancellation,
    Scenario::PlanMove,
    Scenario::TrialNotice,
    Scenario::TrialEnd,
    Scenario::TrialEndWithoutCard,
    Scenario::CardNotice,
    Scenario::Decline,
    Scenario::LastAttempt,
    Scenario::UnpaidEnd,
    Scenario::Expiry,
    Scenario::CreditExpiry,
    Scenario::UsageEnd,
    Scenario::UsageInvoice,
    Scenario::UnconfirmedChange,
    Scenario::ProviderEvent,
    Scenario::Refund,
    Scenario::LostDispute,
];

impl Scenario {
    /// Creates a platform for which the change will be due, and sets the clock to that instant. Returns its id.
    async fn prepare(self, world: &World) -> String {
        world.set_time("2027-11-01T00:00:00Z");
        let (platform, due) = match self {
            Self::TrialNotice | Self::TrialEnd => {
                let (platform, _) = platform_with_card(world).await;
                self.begin_trial(world, &platform).await;
                let due = match self {
                    Self::TrialNotice => "2027-11-08T00:00:00Z",
                    _ => "2027-11-15T00:00:00Z",
                };
                (platform, due)
            }
            Self::CardNotice => {
                world.set_time("2034-11-10T00:00:00Z");
                let (platform, _) = paying_platform(world, "growth").await;
                (platform, "2034-12-02T00:00:00Z")
            }
            Self::TrialEndWithoutCard => {
                let platform = world.create_platform("engines").await;
                world.set_time("2027-11-01T00:00:00Z");
                self.begin_trial(world, &platform).await;
                (platform, "2027-11-15T00:00:00Z")
            }
            Self::Expiry => {
                let (platform, customer) = platform_with_card(world).await;
                world.use_card(&customer, DECLINED).await;
                let _ = world.subscribe(&platform, "growth").await.expect(201);
                (platform, "2027-11-01T23:00:00Z")
            }
            Self::ProviderEvent => {
                let (platform, invoice) = waiting(world).await;
                confirm(world, &invoice).await;
                let received = send_about(world, "evt_1", "invoice.paid", &invoice).await;
                let _ = received.expect(200);
                (platform, "2027-11-01T01:00:00Z")
            }
            Self::Refund | Self::LostDispute => {
                let (platform, _) = paying_platform(world, "growth").await;
                match self {
                    Self::Refund => send_refund(world).await,
                    _ => send_lost_dispute(world).await,
                }
                (platform, "2027-11-01T01:00:00Z")
            }
            _ => {
                let (platform, customer) = paying_platform(world, "growth").await;
                (
                    platform.clone(),
                    self.prepare_paid(world, &platform, &customer).await,
                )
            }
        };
        world.set_time(due);
        platform
    }

    async fn begin_trial(self, world: &World, platform: &str) {
        let body = json!({ "platformId": platform, "tier": "starter",
            "billingEmail": "billing@example.org" });
        let created = world.billing.post(&operator(), "/subscription", body).await;
        let _ = created.expect(201);
    }

    /// Prepares a change of a paid subscription. Returns when it is due.
    async fn prepare_paid(self, world: &World, platform: &str, customer: &str) -> &'static str {
        match self {
            Self::PlannedChange => {
                let changed = world.change_tier(platform, "starter", json!({})).await;
                let _ = changed.expect(200);
            }
            Self::PlanMove => {
                configure(world).await;
                let _ = migrate(world, "growth:1", "growth:2").await.unwrap();
            }
            Self::Cancellation => {
                let body = json!({ "platformId": platform });
                let path = "/subscription/cancel";
                let cancelled = world.billing.post(&operator(), path, body).await;
                let _ = cancelled.expect(200);
            }
            Self::CreditExpiry => {
                let body = json!({ "customerId": customer, "amount": 500, "description": "a gift",
                    "expiresAt": "2027-11-20T00:00:00Z" });
                let path = "/operator/credits";
                let granted = world.billing.post(&operator(), path, body).await;
                let _ = granted.expect(201);
                return "2027-11-20T00:00:00Z";
            }
            Self::Decline | Self::LastAttempt | Self::UnpaidEnd => {
                world.use_card(customer, DECLINED).await;
            }
            Self::UsageEnd | Self::UsageInvoice => {
                world.set_time("2027-11-16T00:00:00Z");
                world.use_metric(platform, "a", "requests", 5_000_000).await;
            }
            Self::UnconfirmedChange => {
                world.use_card(customer, CONFIRMED).await;
                world.set_time("2027-11-16T00:00:00Z");
                let changed = world.change_tier(platform, "scale", json!({})).await;
                let details =
                    &changed.expect_error(402, "PAYMENT_REQUIRED").json["error"]["details"];
                assert_eq!(details["reason"], "authentication_required");
                return "2027-11-16T23:00:00Z";
            }
            _ => {}
        }
        match self {
            Self::LastAttempt => {
                world.bill_until("2027-12-07T00:00:00Z").await;
                "2027-12-08T00:00:00Z"
            }
            Self::UnpaidEnd => {
                world.bill_until("2027-12-10T00:00:00Z").await;
                "2028-01-07T00:00:00Z"
            }
            Self::UsageInvoice => {
                world.bill_until("2027-12-01T00:00:00Z").await;
                "2027-12-02T00:00:00Z"
            }
            _ => "2027-12-01T00:00:00Z",
        }
    }
}

/// Gives waiting and interrupted jobs the time to end.
async fn finish(world: &World) {
    for _ in 0..4 {
        world.tick(301);
        world.bill().await;
    }
    world.assert_books_balance().await;
}

/// The state before a change, and that after it without an interruption.
struct Preparation {
    platform: String,
    image: WorldImage,
    expected: Value,
    /// The number of charges at the provider.
    charges: usize,
}

impl Preparation {
    /// Finishes what is due, and asserts that the result is that without an interruption.
    async fn assert_same(&self, world: &World, case: &str) {
        finish(world).await;
        assert_eq!(
            records_without_times(world, &self.platform).await,
            self.expected,
            "{case}"
        );
        let charges = world.count_charges(&self.platform).await;
        assert_eq!(charges, self.charges, "{case}");
    }
}

/// Prepares a scenario, and makes its change.
async fn prepare(world: World, scenario: Scenario) -> (World, Preparation) {
    let world = world.with_empty_store();
    let platform = scenario.prepare(&world).await;
    let image = world.image();
    world.bill().await;
    finish(&world).await;
    let prepared = Preparation {
        expected: records_without_times(&world, &platform).await,
        charges: world.count_charges(&platform).await,
        platform,
        image,
    };
    (world, prepared)
}

#[tokio::test]
async fn a_store_that_fails_at_any_call_changes_no_result_and_charges_nothing_twice() {
    let mut world = World::new();
    for scenario in SCENARIOS {
        let prepared;
        (world, prepared) = prepare(world, scenario).await;
        for call in 1.. {
            let store;
            (world, store) = world.with_faulty_image(&prepared.image);
            world.queue_billing().await;
            let failed = world.run_one_failing(&store, call).await;
            prepared
                .assert_same(&world, &format!("{scenario:?} {call}"))
                .await;
            if !failed {
                assert!(call > 10, "{scenario:?} has only {call} calls");
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_commit_whose_reply_is_lost_changes_no_result_and_charges_nothing_twice() {
    let mut world = World::new();
    for scenario in SCENARIOS {
        let prepared;
        (world, prepared) = prepare(world, scenario).await;
        for commit in 1.. {
            let store;
            (world, store) = world.with_faulty_image(&prepared.image);
            world.queue_billing().await;
            let is_lost = world.run_one_without_reply(&store, commit).await;
            // A worker whose claim was lost does not know that it has the job, until the lease ends.
            world.tick(301);
            world.run_timers().await;
            prepared
                .assert_same(&world, &format!("{scenario:?} {commit}"))
                .await;
            if !is_lost {
                assert!(commit > 2, "{scenario:?} has only {commit} commits");
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_provider_that_fails_at_any_time_changes_no_amount() {
    use PaymentFault::{AnswerLost, Unreachable};
    let mut world = World::new();
    for scenario in SCENARIOS {
        let prepared;
        (world, prepared) = prepare(world, scenario).await;
        let cases: [&[PaymentFault]; 4] = [
            &[Unreachable],
            &[AnswerLost],
            &[Unreachable, AnswerLost],
            &[AnswerLost, Unreachable],
        ];
        for faults in cases {
            world = world.with_image(&prepared.image);
            faults
                .iter()
                .for_each(|fault| world.payments.fail_next(*fault));
            world.bill().await;
            finish(&world).await;
            world.payments.forget_faults();
            let found = records_without_times(&world, &prepared.platform).await;
            assert_eq!(
                statuses_and_amounts(&found),
                statuses_and_amounts(&prepared.expected),
                "{scenario:?} {faults:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_declined_charge_that_is_interrupted_anywhere_is_repeated_as_declined_or_as_paid() {
    let mut world = World::new();
    for scenario in CHARGING_REQUESTS {
        world = world.with_empty_store();
        let (method, path, body) = scenario.prepare(&world).await;
        let image = world.image();
        let send = async |world: &World| send_once(world, &method, &path, &body).await;
        let mut expected = Vec::new();
        for is_declined in [false, true] {
            (world, _) = world.with_faulty_image(&image);
            if is_declined {
                world.payments.fail_next(PaymentFault::DeclinedForGood);
            }
            let done = send(&world).await;
            finish(&world).await;
            expected.push((done.status, all_amounts(&world).await));
        }
        assert_ne!(expected[0], expected[1], "{scenario:?}");
        for n in 1.. {
            let store;
            (world, store) = world.with_faulty_image(&image);
            StoreFault::Death.inject(&store, n);
            world.payments.fail_next(PaymentFault::DeclinedForGood);
            send(&world).await;
            let is_reached = StoreFault::Death.end(&store);
            recover(&world, &world.billing_parts).await;
            finish(&world).await;
            // The card is good again if the decline was lost.
            let again = send(&world).await;
            world.payments.forget_faults();
            let found = (again.status, all_amounts(&world).await);
            assert!(
                expected.contains(&found),
                "{scenario:?} {n} {found:?} {}",
                again.json
            );
            if !is_reached {
                break;
            }
        }
    }
}

/// Sends a request with an idempotency key, which is always the same.
async fn send_once(world: &World, method: &Method, path: &str, body: &Value) -> Answer {
    let headers = [("idempotency-key", "once")];
    let (caller, method) = (operator(), method.as_str());
    let sent = world
        .billing
        .send(&caller, method, path, &headers, body.clone());
    sent.await
}

/// A request that charges a card.
#[derive(Clone, Copy, Debug)]
enum ChargingRequest {
    Subscribe,
    SubscribePerson,
    Upgrade,
    Change,
    InvoiceNow,
}

const CHARGING_REQUESTS: [ChargingRequest; 5] = [
    ChargingRequest::Subscribe,
    ChargingRequest::SubscribePerson,
    ChargingRequest::Upgrade,
    ChargingRequest::Change,
    ChargingRequest::InvoiceNow,
];

impl ChargingRequest {
    /// Creates what the request needs, and returns the request.
    async fn prepare(self, world: &World) -> (Method, String, Value) {
        world.set_time("2027-11-01T00:00:00Z");
        if matches!(self, Self::SubscribePerson) {
            let person = world.sign_up("ada@example.org").await;
            let body = json!({ "userId": person.user_id, "priceId": "price_starter_month",
                "paymentMethodId": "pm_card_visa" });
            return (Method::POST, "/subscriptions".to_owned(), body);
        }
        let (platform, customer) = platform_with_card(world).await;
        if matches!(self, Self::Subscribe) {
            let body = json!({ "platformId": platform, "tier": "starter", "trialDays": 0,
                "billingEmail": "billing@example.org" });
            return (Method::POST, "/subscription".to_owned(), body);
        }
        let subscription = world.subscribe(&platform, "starter").await.expect(201).id();
        world.set_time("2027-11-16T00:00:00Z");
        match self {
            Self::Change => {
                let body = json!({ "priceId": "price_growth_month" });
                (
                    Method::PATCH,
                    format!("/subscriptions/{subscription}"),
                    body,
                )
            }
            Self::InvoiceNow => {
                world.owe_usage(&platform, &subscription, 700).await;
                let body = json!({ "customerId": customer });
                (Method::POST, "/operator/invoices/generate".to_owned(), body)
            }
            _ => {
                let body = json!({ "platformId": platform, "tier": "growth" });
                (Method::POST, "/subscription/change-tier".to_owned(), body)
            }
        }
    }
}

/// Returns the amounts of all subscriptions and invoices, and how often invoices were paid at the provider. Amounts of
/// invoices are in whole dollars, because the rest of a period is worth a few cents less when a request is repeated.
async fn all_amounts(world: &World) -> Value {
    let (mut subscriptions, mut invoices, mut paid) = (Vec::new(), Vec::new(), 0);
    for customer in world.all::<Customer>(&CustomerQuery::All).await {
        let id = &customer.id;
        let of_customer = SubscriptionQuery::Of(id.clone());
        for seen in world.all::<Subscription>(&of_customer).await {
            let fields = json!([seen.status, seen.tier, seen.amount, seen.billed_amount]);
            subscriptions.push(fields);
        }
        let all = InvoiceQuery::Of {
            customer_id: id.clone(),
            status: None,
        };
        for seen in world.all::<Invoice>(&all).await {
            let charges = LedgerChargeQuery::Of(seen.id.clone());
            let charges = world.all::<LedgerCharge>(&charges).await;
            let is_paid = |charge: &&Stored<LedgerCharge>| charge.outcome == LedgerOutcome::Paid;
            paid += charges.iter().filter(is_paid).count();
            // A request that was undone and repeated leaves a void invoice.
            if seen.status != InvoiceStatus::Void {
                let dollars = (seen.total + 50) / 100;
                invoices.push(json!([seen.status, dollars, seen.amount_remaining]));
            }
        }
    }
    json!({ "subscriptions": subscriptions, "invoices": invoices, "paid": paid })
}

/// A failure of the store during a request.
#[derive(Clone, Copy, Debug)]
enum StoreFault {
    /// From a call on, every call fails: the process has died.
    Death,
    /// The reply to a commit is lost.
    LostReply,
    /// One call fails.
    Once,
}

impl StoreFault {
    /// Makes the store fail at the `n`-th call or commit.
    fn inject(self, store: &FaultStore, n: u32) {
        match self {
            Self::Death => store.fail_from_call(n),
            Self::LostReply => store.lose_reply(n),
            Self::Once => store.fail_call(n),
        }
    }

    /// Ends the failure. Returns whether it was reached.
    fn end(self, store: &FaultStore) -> bool {
        let is_reached = match self {
            Self::Death | Self::Once => store.has_failed(),
            Self::LostReply => store.has_lost_reply(),
        };
        store.fail_call(u32::MAX);
        store.lose_reply(u32::MAX);
        is_reached
    }
}

#[tokio::test]
async fn a_charging_request_that_is_interrupted_anywhere_charges_once_when_it_is_repeated() {
    let mut world = World::new();
    for scenario in CHARGING_REQUESTS {
        world = world.with_empty_store();
        let (method, path, body) = scenario.prepare(&world).await;
        let image = world.image();
        let send = async |world: &World| send_once(world, &method, &path, &body).await;
        let done = send(&world).await;
        assert!(done.status.is_success(), "{scenario:?} {}", done.json);
        finish(&world).await;
        let expected = all_amounts(&world).await;
        for (fault, outage) in [
            (StoreFault::Death, None),
            (StoreFault::LostReply, None),
            (StoreFault::Once, None),
            (StoreFault::Death, Some(PaymentFault::Unreachable)),
            (StoreFault::LostReply, Some(PaymentFault::Unreachable)),
        ] {
            for n in 1.. {
                let store;
                (world, store) = world.with_faulty_image(&image);
                fault.inject(&store, n);
                if let Some(outage) = outage {
                    world.payments.fail_next(outage);
                }
                send(&world).await;
                let is_reached = fault.end(&store);
                world.payments.forget_faults();
                recover(&world, &world.billing_parts).await;
                finish(&world).await;
                let mut again = send(&world).await;
                let case = format!("{scenario:?} {fault:?} {outage:?} {n}");
                if again.status == 502 {
                    // The first request was undone, and its error was lost.
                    let code = &again.json["error"]["code"];
                    assert_eq!(code, "PAYMENT_PROVIDER_UNAVAILABLE", "{case}");
                    again = send(&world).await;
                }
                assert_eq!(again.status, done.status, "{case} {}", again.json);
                assert_eq!(all_amounts(&world).await, expected, "{case}");
                if !is_reached {
                    assert!(n > 5, "{case} is the last one");
                    break;
                }
            }
        }
    }
}

#[tokio::test]
async fn an_upgrade_that_was_interrupted_and_never_confirmed_is_refused_after_it_expired() {
    let mut world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, _) = platform_with_card(&world).await;
    let _ = world.subscribe(&platform, "starter").await.expect(201);
    world.set_time("2027-11-16T00:00:00Z");
    let body = json!({ "platformId": platform, "planId": "growth",
        "paymentMethodId": "pm_card_authenticationRequired", "billingEmail": "money@example.org",
        "idempotencyKey": "00000000-0000-4000-8000-000000000001" });
    let upgrade = async |world: &World| {
        let caller = operator();
        let sent = world
            .billing
            .post(&caller, "/api/billing/upgrade", body.clone());
        sent.await
    };
    let image = world.image();
    let mut refused = 0;
    for n in 1.. {
        let store;
        (world, store) = world.with_faulty_image(&image);
        StoreFault::Death.inject(&store, n);
        upgrade(&world).await;
        let is_reached = StoreFault::Death.end(&store);
        if !is_reached {
            break;
        }
        recover(&world, &world.billing_parts).await;
        finish(&world).await;
        world.tick(23 * 3_600 + 1);
        world.bill().await;
        let mut again = upgrade(&world).await;
        if again.status == 502 {
            // The first request was undone, and its error was lost.
            again = upgrade(&world).await;
        }
        let case = format!("{n} {}", again.json);
        if again.status == 402 {
            let error = &again.json["error"];
            assert_eq!(error["code"], "PAYMENT_REQUIRED", "{case}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains("must be confirmed"), "{case}");
            refused += 1;
        } else {
            // The first request had not come as far as the charge, so this one is the first that made it.
            assert_eq!(again.status, 200, "{case}");
            assert_eq!(again.json["status"], "requires_action", "{case}");
            assert!(again.json["clientSecret"].is_string(), "{case}");
        }
    }
    assert!(
        refused > 0,
        "the upgrade was never interrupted after the charge"
    );
}

/// Returns what an outage does not change: the status of the subscription, and the statuses and amounts of its invoices.
fn statuses_and_amounts(records: &Value) -> Value {
    let invoices = records["invoices"].as_array().unwrap().iter();
    let amounts = invoices.map(|invoice| {
        let fields = ["status", "total", "amountPaid", "amountRemaining"];
        fields.map(|field| invoice[field].clone())
    });
    json!([
        records["subscription"]["status"],
        amounts.collect::<Vec<_>>()
    ])
}
