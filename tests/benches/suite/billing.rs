//! Measures metered usage and renewals of subscriptions, through the billing service without a socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use core_domain::kernel::{Clock, Timestamp};
use core_http::kernel::bytes_body;
use core_suite::{Suite, SystemClock};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, from_value, json};
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::fill;
use crate::harness::backend::{Location, Place};
use crate::harness::cpu::Cores;
use crate::harness::installation::SERVICE_KEY;
use crate::harness::process::{Process, print_message};
use crate::plan::Plan;
use crate::report::Report;

/// The number of senders of single events.
const SENDERS: u32 = 32;

/// The number of senders of batches for one platform.
const BATCH_SENDERS: u32 = 8;

/// The number of events in a batch.
const BATCH: u32 = 1_000;

/// The goals for memory, SQLite and Postgres: events per second in batches and one by one, and renewals per second.
const GOALS: [[f64; 3]; 3] = [
    [80_000.0, 30_000.0, 20_000.0],
    [10_000.0, 4_000.0, 1_500.0],
    [1_500.0, 500.0, 250.0],
];

/// The store, the duration of each measurement of usage, and the number of subscriptions to renew.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Billing {
    location: Location,
    duration: Duration,
    subscriptions: u32,
}

/// The results.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct BillingResult {
    /// Events per second: one sender of batches; the same when every second event is known; eight senders of batches;
    /// single events.
    events: [f64; 4],
    /// The median of `/usage/current` in microseconds after few and after all events.
    current_us: [f64; 2],
    /// Renewals per second, from the tick until every invoice is paid.
    renewals: f64,
}

pub(crate) fn measure(plan: &Plan, report: &mut Report) {
    for backend in &plan.backends {
        let place = Place::new(*backend);
        let config = Billing {
            location: place.location.clone(),
            duration: plan.queueing,
            subscriptions: plan.subscriptions,
        };
        let mut process = Process::in_role("billing", &json!(config), Cores::All);
        let measured: BillingResult = from_value(process.wait_for("billed")).unwrap();
        process.end();
        let goal = |row: usize| GOALS[row].get(*backend as usize).copied();
        let rows = [
            (
                "usage events/s, batches of 1,000",
                measured.events[0],
                goal(0),
            ),
            ("the same, half of them known", measured.events[1], None),
            (
                "the same, 8 senders for one platform",
                measured.events[2],
                None,
            ),
            (
                "usage events/s, one a request, 32 senders",
                measured.events[3],
                goal(1),
            ),
            ("renewals/s", measured.renewals, goal(2)),
            (
                "/usage/current, us, after 1,000 events",
                measured.current_us[0],
                None,
            ),
            (
                "/usage/current, us, after all events",
                measured.current_us[1],
                None,
            ),
        ];
        for (name, value, goal) in rows {
            report.billing(name, *backend, value, goal);
        }
    }
}

/// The role of that process.
pub(crate) async fn run(config: Billing) {
    let builder = config.location.suite().settings(|settings| {
        settings.billing.allow_simulated_payments = true;
        settings.billing.test_clock = true;
    });
    let suite = builder.service_key(SERVICE_KEY).build().await.unwrap();
    let world = World::of(Arc::new(suite), config.subscriptions).await;
    let duration = config.duration;
    world.report(world.batch(0, 0, BATCH)).await;
    let few = world.current_us().await;
    let events = [
        world.send_batches(1, duration, 1, false).await,
        world.send_batches(2, duration, 1, true).await,
        world.send_batches(3, duration, BATCH_SENDERS, false).await,
        world.send_single_events(duration).await,
    ];
    let result = BillingResult {
        events,
        current_us: [few, world.current_us().await],
        renewals: world.renew().await,
    };
    print_message("billed", &json!(result));
}

/// A suite with platforms. The first one reports usage, and the others have subscriptions.
#[derive(Clone)]
pub(crate) struct World {
    suite: Arc<Suite>,
    subscriptions: u32,
    /// The time of all events, so that repeated ones are equal.
    at: Timestamp,
}

impl World {
    /// Creates platforms, each with a subscription.
    pub(crate) async fn of(suite: Arc<Suite>, subscriptions: u32) -> Self {
        let units = suite.units();
        for first in (0..=subscriptions).step_by(500) {
            let rows = first..(first + 500).min(subscriptions + 1);
            let inserted = units.transact(|uow, _| {
                let rows = rows.clone();
                Box::pin(async move { fill::insert(uow, rows).await })
            });
            inserted.await.unwrap();
        }
        let world = Self {
            suite,
            subscriptions,
            at: SystemClock.now(),
        };
        world
            .for_each_platform(|world, platform| async move {
                let body = json!({ "platformId": platform, "tier": "starter", "trialDays": 0,
                "paymentMethodId": "pm_card_visa", "billingEmail": "billing@example.org" });
                let created = world.send("POST", "/subscription", Some(body)).await;
                assert_eq!(created["status"], "active", "{created}");
            })
            .await;
        world
    }

    /// Runs something for each platform, with 32 at a time.
    async fn for_each_platform<F: Future<Output = ()> + Send + 'static>(
        &self,
        action: impl Fn(Self, String) -> F + Clone + Send + 'static,
    ) {
        let next = Arc::new(AtomicU32::new(0));
        let mut callers = JoinSet::new();
        for _ in 0..SENDERS {
            let (world, action, next) = (self.clone(), action.clone(), Arc::clone(&next));
            callers.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number > world.subscriptions {
                        return;
                    }
                    action(world.clone(), fill::id(number)).await;
                }
            });
        }
        callers.join_all().await;
    }

    /// Sends a request to the billing service, and returns the body of its response.
    async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {SERVICE_KEY}"))
            .header("content-type", "application/json");
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let request = request.body(bytes_body(body)).unwrap();
        let response = self.suite.billing().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let is_expected = status.is_success() || status == StatusCode::ACCEPTED;
        assert!(is_expected, "{status} {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }

    /// Returns events of the first platform with the numbers from `first` on.
    fn batch(&self, part: u32, first: u32, count: u32) -> Vec<Value> {
        let event = |number: u32| {
            json!({ "id": format!("{part}-{number}"), "source": "bench", "platformId": fill::id(0),
                "metric": "requests", "quantity": 1, "time": self.at })
        };
        (first..first + count).map(event).collect()
    }

    /// Reports events.
    async fn report(&self, events: Vec<Value>) {
        let body = Some(json!({ "events": events }));
        let reported = self.send("POST", "/internal/usage/events", body).await;
        assert_eq!(reported["rejected"], 0, "{reported}");
    }

    /// Sends batches for a time. Returns the number of events per second. If `repeats`, half of each batch repeats events of
    /// the batch before.
    async fn send_batches(&self, part: u32, time: Duration, senders: u32, repeats: bool) -> f64 {
        let (since, next) = (Instant::now(), Arc::new(AtomicU32::new(1)));
        let mut callers = JoinSet::new();
        for _ in 0..senders {
            let (world, next) = (self.clone(), Arc::clone(&next));
            callers.spawn(async move {
                while since.elapsed() < time {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let step = if repeats { BATCH / 2 } else { BATCH };
                    world.report(world.batch(part, number * step, BATCH)).await;
                }
            });
        }
        callers.join_all().await;
        let sent = (next.load(Ordering::Relaxed) - 1) * BATCH;
        f64::from(sent) / since.elapsed().as_secs_f64()
    }

    /// Sends single events of 32 platforms for a time. Returns their number per second.
    async fn send_single_events(&self, time: Duration) -> f64 {
        let (since, sent) = (Instant::now(), Arc::new(AtomicU32::new(0)));
        let mut callers = JoinSet::new();
        for sender in 0..SENDERS {
            let (world, sent) = (self.clone(), Arc::clone(&sent));
            let platform = fill::id(sender % (self.subscriptions + 1));
            callers.spawn(async move {
                while since.elapsed() < time {
                    let number = sent.fetch_add(1, Ordering::Relaxed);
                    let mut events = world.batch(4, number, 1);
                    events[0]["platformId"] = json!(platform);
                    world.report(events).await;
                }
            });
        }
        callers.join_all().await;
        f64::from(sent.load(Ordering::Relaxed)) / since.elapsed().as_secs_f64()
    }

    /// Returns the median time of the current usage in microseconds.
    async fn current_us(&self) -> f64 {
        let path = format!("/usage/current?platformId={}", fill::id(0));
        let mut times = Vec::new();
        for _ in 0..101 {
            let since = Instant::now();
            self.send("GET", &path, None).await;
            times.push(since.elapsed().as_secs_f64() * 1e6);
        }
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }

    /// Moves the clock past the end of every period, and waits until all invoices are made and paid. Returns their number per
    /// second.
    pub(crate) async fn renew(&self) -> f64 {
        let later = SystemClock
            .now()
            .plus(Duration::from_secs(32 * 24 * 60 * 60));
        let since = Instant::now();
        let mut body = json!({ "now": Timestamp::from_seconds(later.seconds()) });
        loop {
            let ticked = self
                .send("POST", "/internal/billing/tick", Some(body))
                .await;
            if ticked["running"] == 0 {
                assert_eq!(ticked["waiting"], 0, "{ticked}");
                break;
            }
            body = json!({});
        }
        f64::from(self.subscriptions + 1) / since.elapsed().as_secs_f64()
    }
}
