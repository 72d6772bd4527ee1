//! Measures a tick of billing: it finds the few subscriptions that are due among many.

use std::sync::Arc;
use std::time::{Duration, Instant};

use core_domain::billing::{
    PlanCatalog, Subscription, SubscriptionQuery, SubscriptionStatus, TaxTable,
};
use core_domain::kernel::{Cipher, Clock, Context, CustomerId, Entropy, SubscriptionId, Timestamp};
use core_domain::port::{Mode, Persisted, Store, Within, transact};
use core_domain::testing::RecordKey;
use core_domain::use_case::billing::Billing;
use core_domain::use_case::billing::advance_job::queue_due;
use core_domain::use_case::billing::clock::BillingClock;
use core_domain::use_case::billing::follow::follow_changes;
use core_domain::use_case::billing::ledger::Ledger;
use core_domain::use_case::billing::page_links::PageLinks;
use core_domain::use_case::billing::usage_invoice::close_usage;
use core_suite::{Suite, SystemClock, SystemEntropy};
use serde::{Deserialize, Serialize};
use serde_json::{from_value, json};

use crate::billing::World;
use crate::fill::id;
use crate::harness::backend::{Location, Place};
use crate::harness::cpu::Cores;
use crate::harness::installation::SERVICE_KEY;
use crate::harness::process::{Process, print_message};
use crate::plan::Plan;
use crate::report::Report;

/// The number of due subscriptions.
const DUE: u32 = 10;

/// The number of subscriptions that are inserted in one unit of work.
const UNIT: u32 = 1_000;

/// The goal in milliseconds.
const GOAL: f64 = 5.0;

/// The store, and the number of subscriptions.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ticks {
    location: Location,
    subscriptions: u32,
}

pub(crate) fn measure(plan: &Plan, report: &mut Report) {
    for backend in &plan.backends {
        let place = Place::new(*backend);
        let config = Ticks {
            location: place.location.clone(),
            subscriptions: plan.ticked,
        };
        let mut process = Process::in_role("ticks", &json!(config), Cores::All);
        let millis: f64 = from_value(process.wait_for("ticked")).unwrap();
        process.end();
        let name = format!("a tick, {DUE} of {} due, ms", plan.ticked);
        report.billing_time(&name, *backend, millis, GOAL);
    }
}

/// The role of that process.
pub(crate) async fn run(config: Ticks) {
    let store = config.location.store().await;
    // The jobs of due subscriptions stay in the queue.
    let suite = Suite::builder().store(Arc::clone(&store));
    let suite = suite
        .service_key(SERVICE_KEY)
        .settings(|settings| {
            settings.billing.allow_simulated_payments = true;
            settings.worker.slots = 0;
        })
        .build();
    let suite = Arc::new(suite.await.unwrap());
    World::of(Arc::clone(&suite), 0).await;
    fill(&store, config.subscriptions).await;
    config.location.vacuum().await;
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
    let billing = billing_of(&store, &entropy);
    let cx = Context::system(entropy);
    let mut times = Vec::new();
    for _ in 0..51 {
        let since = Instant::now();
        follow_changes(&cx, store.as_ref(), &billing).await.unwrap();
        close_usage(&cx, store.as_ref(), &billing).await.unwrap();
        let due = queue_due(&cx, store.as_ref(), &billing).await.unwrap();
        times.push(since.elapsed().as_secs_f64() * 1e3);
        assert_eq!(due.running, usize::try_from(DUE).unwrap());
    }
    times.sort_by(f64::total_cmp);
    print_message("ticked", &json!(times[times.len() / 2]));
}

fn billing_of(store: &Arc<dyn Store>, entropy: &Arc<dyn Entropy>) -> Billing {
    Billing {
        plans: PlanCatalog::default(),
        payments: Arc::new(Ledger::new(Arc::clone(store), Arc::clone(entropy), true)),
        clock: BillingClock::Store,
        cipher: Cipher::new([7; 32], Arc::clone(entropy)),
        pages: PageLinks::new(None, Vec::new(), b"a secret of billing"),
        taxes: Arc::new(TaxTable::default()),
        issuer: None,
    }
}

/// Inserts subscriptions like the one that exists. The first of them are due.
async fn fill(store: &Arc<dyn Store>, subscriptions: u32) {
    let mut uow = store.begin(Mode::Read).await.unwrap();
    let records = Subscription::repository(uow.repositories(RecordKey::for_tests()));
    let active = SubscriptionQuery::WithStatus(SubscriptionStatus::Active);
    let found = records.first(Within::Installation, &active).await.unwrap();
    let pattern = &found.unwrap();
    drop(uow);
    let now = SystemClock.now();
    for first in (0..subscriptions).step_by(UNIT as usize) {
        let numbers = first..subscriptions.min(first + UNIT);
        let inserted = transact(store.as_ref(), |uow, _| {
            let numbers = numbers.clone();
            Box::pin(async move {
                let records = Subscription::repository(uow.repositories(RecordKey::for_tests()));
                let new = numbers.map(|number| subscription(pattern, number, now));
                Ok(records.append_many(new.collect()).await?)
            })
        });
        inserted.await.unwrap();
    }
}

/// Returns a subscription of another customer and without a platform.
fn subscription(pattern: &Subscription, number: u32, now: Timestamp) -> Subscription {
    let id = id(number);
    let later = Duration::from_secs(u64::from(number) + 3_600);
    let mut subscription = pattern.clone();
    subscription.id = SubscriptionId::parse(&id).unwrap();
    subscription.customer_id = CustomerId::parse(&id).unwrap();
    subscription.platform_id = None;
    subscription.due_at = Some(if number < DUE { now } else { now.plus(later) });
    subscription
}
