//! Jobs of billing that are interrupted anywhere. In the end, everything is as without the interruption, and nothing is
//! charged twice.

use serde_json::{Value, json};

use super::{billing_records, paying_platform, platform_with_card};
use crate::world::{PaymentFault, World, WorldImage, operator};

const DECLINED: &str = "pm_card_chargeCustomerFail";

/// A change that time makes.
#[derive(Clone, Copy, Debug)]
enum Scenario {
    Renewal,
    PlannedChange,
    Cancellation,
    TrialEnd,
    TrialEndWithoutCard,
    Decline,
    LastAttempt,
    UnpaidEnd,
    Expiry,
    CreditExpiry,
}

const SCENARIOS: [Scenario; 10] = [
    Scenario::Renewal,
    Scenario::PlannedChange,
    Scenario::Cancellation,
    Scenario::TrialEnd,
    Scenario::TrialEndWithoutCard,
    Scenario::Decline,
    Scenario::LastAttempt,
    Scenario::UnpaidEnd,
    Scenario::Expiry,
    Scenario::CreditExpiry,
];

impl Scenario {
    /// Creates a platform for which the change will be due, and sets the clock to that instant. Returns its id.
    async fn prepare(self, world: &World) -> String {
        world.set_time("2027-11-01T00:00:00Z");
        let (platform, due) = match self {
            Self::TrialEnd => {
                let (platform, _) = platform_with_card(world).await;
                self.begin_trial(world, &platform).await;
                (platform, "2027-11-15T00:00:00Z")
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
            _ => "2027-12-01T00:00:00Z",
        }
    }
}

/// Returns the records of a platform's billing, without the times of payments. An invoice is paid later if the store of
/// the ledger fails.
async fn records(world: &World, platform: &str) -> Value {
    let mut records = billing_records(world, platform).await;
    for invoice in records["invoices"].as_array_mut().unwrap() {
        let _ = invoice.as_object_mut().unwrap().remove("paidAt");
    }
    records
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

/// Prepares a scenario, and makes its change.
async fn prepare(world: World, scenario: Scenario) -> (World, Preparation) {
    let world = world.with_empty_store();
    let platform = scenario.prepare(&world).await;
    let image = world.image();
    world.bill().await;
    finish(&world).await;
    let prepared = Preparation {
        expected: records(&world, &platform).await,
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
            finish(&world).await;
            let found = records(&world, &prepared.platform).await;
            assert_eq!(found, prepared.expected, "{scenario:?} {call}");
            let charges = world.count_charges(&prepared.platform).await;
            assert_eq!(charges, prepared.charges, "{scenario:?} {call}");
            if !failed {
                assert!(call > 10, "{scenario:?} has only {call} calls");
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
            let found = records(&world, &prepared.platform).await;
            assert_eq!(
                without_times(&found),
                without_times(&prepared.expected),
                "{scenario:?} {faults:?}"
            );
        }
    }
}

/// Returns what an outage does not change: the status of the subscription, and the statuses and amounts of its invoices.
fn without_times(records: &Value) -> Value {
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
