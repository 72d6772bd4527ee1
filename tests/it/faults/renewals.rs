//! F1: `kill -9` while subscriptions are renewed, on one node or on three nodes that tick at the same time.

use std::time::Duration;

use core_domain::access::RecordKey;
use core_domain::billing::{
    Customer, CustomerQuery, Invoice, InvoiceQuery, InvoiceStatus, LedgerCharge, LedgerChargeQuery,
    LedgerOutcome,
};
use core_domain::kernel::Timestamp;
use core_domain::port::{Mode, Persisted, Store, UnitOfWork, Within};
use core_domain::provisioning::{Job, JobQuery, JobStatus};
use futures_util::stream::{self, StreamExt};
use http::StatusCode;
use serde_json::{Value, json};

use super::site::{Site, in_time, on_both_databases};
use crate::world::{
    ALL_JOBS, Call, Installation, PlatformMember, Rng, SERVICE_KEY, Server, list, run,
};

/// With [`MONTHS`], 1,000 renewals. On two processors, a debug build needs 11 s on SQLite and 50 s on Postgres. With 500
/// subscriptions and two months, Postgres needs 70 s.
const SUBSCRIPTIONS: usize = 250;

/// The months in which each subscription is invoiced: at the end of its trial, and then once a month.
const MONTHS: [&str; 4] = ["-01-", "-02-", "-03-", "-04-"];

const INVOICES: usize = SUBSCRIPTIONS * MONTHS.len();

/// The price of a month in minor units.
const PRICE: usize = 2_900;

/// Later than the real date. Trials of one day end on 16 January.
const START: &str = "2031-01-15T00:00:00Z";

/// After the last renewal, and before the next one.
const END: &str = "2031-04-20T00:00:00Z";

/// More than the number of nodes, so that each is killed. Fewer than the number of lost leases after which a job fails.
const KILLS: usize = 4;

/// The number of requests at a time that create subscriptions.
const WRITERS: usize = 4;

/// The pause between two looks at the number of invoices. Without it, the looks would take the processor time of the
/// servers.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// - A clock that can be moved, and a tick of each node once a second.
/// - Leases that end soon after their holder has died, but that a busy node keeps.
/// - Few jobs at a time, so that a kill interrupts exactly these and most others are still queued.
const SETTINGS: [&str; 8] = [
    "--set",
    "settings.billing.test_clock=true",
    "--set",
    "settings.billing.tick_every=1s",
    "--set",
    "settings.worker.lease=5s",
    "--set",
    "settings.worker.slots=8",
];

on_both_databases! {
    after_kills_during_renewals_each_period_is_invoiced_and_charged_once,
}

async fn after_kills_during_renewals_each_period_is_invoiced_and_charged_once(site: Site) {
    let mut nodes = Vec::new();
    for _ in 0..site.max_nodes() {
        nodes.push(site.start(&SETTINGS).await);
    }
    let at_start = nodes[0].send("billing", tick(&json!({ "now": START })));
    let _ = at_start.await.expect(200);
    let numbers = stream::iter(0..SUBSCRIPTIONS);
    let trials = numbers.map(|number| Trial::start(&nodes[number % nodes.len()], number));
    let trials: Vec<Trial> = trials.buffer_unordered(WRITERS).collect().await;

    let at_end = nodes[0].try_send("billing", tick(&json!({ "now": END })));
    tokio::select! {
        () = wait_for_invoices(&site, 1) => {}
        answer = at_end => panic!("nothing was renewed: {answer:?}"),
    }
    let rng = Rng::new(11);
    for kill in 0..KILLS {
        let step = INVOICES / (KILLS + 1);
        wait_for_invoices(&site, kill * step + rng.below(step) + 1).await;
        // Killing waits until the process has ended, because the database stays in use until then.
        nodes.remove(0).kill().await;
        let committed = count_invoices(site.reader().await.as_ref()).await;
        assert!(
            committed < INVOICES as u64,
            "the kill was after the renewals"
        );
        nodes.push(site.start(&SETTINGS).await);
    }
    tick_until_done(&site, &nodes[0]).await;
    for node in nodes {
        assert!(node.terminate().await.success());
    }
    assert_invoiced_once(&site, &trials).await;
    assert_journal_agrees(&site).await;
    site.assert_consistent().await;
}

/// A subscription that begins with a trial.
struct Trial {
    subscription: String,
    /// The instant at which the first period begins.
    ends_at: String,
}

impl Trial {
    async fn start(server: &Server, number: usize) -> Self {
        let platform = PlatformMember::operating(server, &format!("engines-{number}")).await;
        let body = json!({ "platformId": platform.platform, "tier": "starter", "trialDays": 1,
            "paymentMethodId": "pm_card_visa", "billingEmail": "billing@example.org" });
        let call = Call::post("/subscription", &body).bearer(SERVICE_KEY);
        let call = call.header("idempotency-key", platform.platform);
        // In a small table, Postgres takes writers of different rows for conflicting ones, and can refuse a unit each time
        // that it is run again.
        let created = loop {
            let answer = server.send("billing", call.clone()).await;
            if answer.status != StatusCode::SERVICE_UNAVAILABLE {
                break answer.expect(201);
            }
        };
        Self {
            subscription: created.id(),
            ends_at: created.text("trialEndsAt").to_owned(),
        }
    }

    /// Returns the starts of the periods that must be invoiced.
    fn periods(&self) -> [String; MONTHS.len()] {
        MONTHS.map(|month| self.ends_at.replacen(MONTHS[0], month, 1))
    }
}

fn tick(body: &Value) -> Call {
    Call::post("/internal/billing/tick", body).bearer(SERVICE_KEY)
}

async fn count_invoices(store: &dyn Store) -> u64 {
    let mut uow = store.begin(Mode::Read).await.unwrap();
    let invoices = Invoice::repository(uow.repositories(RecordKey::for_tests()));
    // Each invoice here has an amount due, so the provider gets it.
    let query = InvoiceQuery::PushedSince(Timestamp::EPOCH);
    let count = invoices.count(Within::Installation, &query).await.unwrap();
    uow.rollback().await;
    count
}

/// Waits until this many invoices are committed.
async fn wait_for_invoices(site: &Site, count: usize) {
    let reader = site.reader().await;
    let mut looks = tokio::time::interval(LOOK_EVERY);
    in_time(async {
        while count_invoices(reader.as_ref()).await < count as u64 {
            looks.tick().await;
        }
    })
    .await;
}

/// Ticks on a node until nothing is due any more.
async fn tick_until_done(site: &Site, node: &Server) {
    let reader = site.reader().await;
    let done = async {
        loop {
            let ticked = node.send("billing", tick(&json!({}))).await.json;
            if (&ticked["running"], &ticked["waiting"]) == (&json!(0), &json!(0)) {
                return;
            }
            // The changes of a failed job would stay due.
            assert_no_job_failed(reader.as_ref()).await;
        }
    };
    in_time(done).await;
}

async fn assert_no_job_failed(store: &dyn Store) {
    let mut uow = store.begin(Mode::Read).await.unwrap();
    let failed = JobQuery::Of {
        platform_id: None,
        status: Some(JobStatus::Failed),
    };
    let failed: Vec<Job> = list(uow.as_mut(), failed).await;
    uow.rollback().await;
    assert_eq!(failed, []);
}

/// Checks that each period has one invoice and each invoice one charge, and that the invoices of a customer are numbered
/// without a gap.
async fn assert_invoiced_once(site: &Site, trials: &[Trial]) {
    let store = site.store().await;
    let mut uow = store.begin(Mode::Read).await.unwrap();
    let jobs: Vec<Job> = list(uow.as_mut(), ALL_JOBS).await;
    assert!(
        jobs.iter().any(|job| job.lost_leases > 0),
        "some jobs were running when a node was killed"
    );
    let customers: Vec<Customer> = list(uow.as_mut(), CustomerQuery::All).await;
    assert_eq!(customers.len(), trials.len());
    let mut periods = Vec::with_capacity(INVOICES);
    for customer in customers {
        let of_customer = InvoiceQuery::Of {
            customer_id: customer.id.clone(),
            status: None,
        };
        let invoices: Vec<Invoice> = list(uow.as_mut(), of_customer).await;
        let numbers = invoices
            .iter()
            .map(|invoice| invoice.number.clone().unwrap());
        let mut numbers: Vec<String> = numbers.collect();
        numbers.sort();
        let gapless = (1..).map(|position| customer.invoice_number(position));
        assert_eq!(numbers, gapless.take(MONTHS.len()).collect::<Vec<_>>());
        for invoice in invoices {
            assert_charged_once(uow.as_mut(), &invoice).await;
            periods.push((
                invoice.subscription_id.unwrap().as_str().to_owned(),
                invoice.period_start.to_rfc3339(),
                invoice.billing_reason.as_str(),
            ));
        }
    }
    uow.rollback().await;
    let expected = trials.iter().flat_map(|trial| {
        let subscription = &trial.subscription;
        let starts = trial.periods().into_iter();
        starts.map(|start| (subscription.clone(), start, "subscription_cycle"))
    });
    let mut expected: Vec<_> = expected.collect();
    expected.sort();
    periods.sort();
    assert_eq!(periods, expected);
}

async fn assert_charged_once(uow: &mut dyn UnitOfWork, invoice: &Invoice) {
    let amounts = (invoice.status, invoice.amount_paid, invoice.attempt_count);
    let paid = (InvoiceStatus::Paid, PRICE as i64, 1);
    assert_eq!(amounts, paid, "{invoice:?}");
    let charges = LedgerChargeQuery::Of(invoice.id.clone());
    let charges: Vec<LedgerCharge> = list(uow, charges).await;
    let outcomes: Vec<_> = charges.iter().map(|charge| charge.outcome).collect();
    assert_eq!(outcomes, [LedgerOutcome::Paid], "{invoice:?}");
}

/// Checks that the journal has two entries for each invoice, when it became final and when it was paid, and agrees with
/// all records.
async fn assert_journal_agrees(site: &Site) {
    let url = site.url();
    let command = ["--database-url", &url, "verify-journal"];
    let output = run(site.data.path(), &command, "").await;
    let entries = 2 * INVOICES;
    let sum = entries * PRICE;
    let expected = format!(
        "usd: debit {sum}, credit {sum}\n\
         verified: {entries} entries, {SUBSCRIPTIONS} customers, {INVOICES} invoices, 0 credits; differences: 0\n"
    );
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}
