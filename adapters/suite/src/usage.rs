//! Metered usage of the host program, and that of the gateway and of the sites of the local provider.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use core_domain::access::authorize_operator;
use core_domain::billing::Metric;
use core_domain::billing::usage::{
    IngestUsage, IngestedUsage, MAX_EVENTS, NewUsageEvent, UsageKey,
};
use core_domain::kernel::{Context, Entropy, Error, PlatformId, Result, Timestamp, hex};
use core_domain::port::{Mode, Store, TrafficMeter, transact_in};
use core_domain::use_case::billing::Billing;
use core_domain::use_case::shared::usage;
use core_http::billing::UsageMetrics;
use core_http::gateway::{ExhaustedRequests, UsageMeter};
use core_http::kernel::metrics::Metrics;
use tokio::sync::watch;

use crate::background_task::{BackgroundTask, wait_for_grace};

/// Time between two reports of the gateway.
const FLUSH_EVERY: Duration = Duration::from_secs(10);

/// The program that reports the usage of the gateway.
const SOURCE: &str = "gateway";

/// Reports usage of platforms from the host program.
#[derive(Clone, Debug)]
pub struct Usage {
    store: Arc<dyn Store>,
    billing: Arc<Billing>,
    cx: Context,
    metrics: UsageMetrics,
}

impl Usage {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        billing: Arc<Billing>,
        entropy: Arc<dyn Entropy>,
        metrics: &Metrics,
    ) -> Self {
        Self {
            store,
            billing,
            cx: Context::system(entropy),
            metrics: UsageMetrics::new(metrics),
        }
    }

    /// Stores at most 1,000 events and adds them to the sums. Each event counts once, however often it is reported. The
    /// result has the outcome of each event.
    ///
    /// # Errors
    /// - `VALIDATION_ERROR` if the batch is empty or has more than 1,000 events, or an event breaks a rule. No event is
    ///   stored.
    /// - `CONFLICT` if a sum would exceed 63 bits. No event is stored.
    pub async fn report(&self, events: Vec<NewUsageEvent>) -> Result<IngestedUsage> {
        let scope = authorize_operator(&self.cx)?;
        let (store, metering) = (self.store.as_ref(), self.billing.metering());
        let batch = IngestUsage { events };
        let usage = usage::ingest(&self.cx, &scope, store, metering, batch).await?;
        self.metrics.count(&usage);
        Ok(usage)
    }
}

/// The billing that the usage of the gateway is reported to: in this process or in another one.
#[async_trait]
pub(crate) trait UsageSink: Send + Sync + std::fmt::Debug {
    /// Returns the current instant of billing.
    async fn now(&self) -> Result<Timestamp>;

    /// Stores events; see [`Usage::report`].
    async fn report(&self, events: Vec<NewUsageEvent>) -> Result<()>;

    /// Returns the exhausted quota of requests of a platform, if it has one and has used it up.
    async fn find_exhausted(&self, platform: &PlatformId) -> Result<Option<ExhaustedRequests>>;
}

#[async_trait]
impl UsageSink for Usage {
    async fn now(&self) -> Result<Timestamp> {
        let clock = self.billing.clock;
        transact_in(Mode::Read, self.store.as_ref(), |uow, _| {
            Box::pin(async move { clock.now(uow).await })
        })
        .await
    }

    async fn report(&self, events: Vec<NewUsageEvent>) -> Result<()> {
        Self::report(self, events).await.map(drop)
    }

    async fn find_exhausted(&self, platform: &PlatformId) -> Result<Option<ExhaustedRequests>> {
        let metering = self.billing.metering();
        let used = transact_in(Mode::Read, self.store.as_ref(), |uow, _| {
            Box::pin(async move { usage::exhausted_requests(uow, metering, platform).await })
        });
        let used = used.await?;
        Ok(used.map(|price| ExhaustedRequests {
            used: price.quantity,
            limit: price.price.included,
        }))
    }
}

/// The usage of a platform since the last report.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    requests: u64,
    bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    counts: HashMap<PlatformId, Counts>,
    exhausted: HashMap<PlatformId, ExhaustedRequests>,
}

/// Counts requests and bytes of platforms at the gateway and at their sites, in memory.
#[derive(Debug, Default)]
pub(crate) struct GatewayMeter(Mutex<State>);

impl GatewayMeter {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_counts(&self) -> bool {
        !self.state().counts.is_empty()
    }

    fn take_counts(&self) -> BTreeMap<PlatformId, Counts> {
        std::mem::take(&mut self.state().counts)
            .into_iter()
            .collect()
    }

    fn exhausted_platforms(&self) -> Vec<PlatformId> {
        self.state().exhausted.keys().cloned().collect()
    }

    fn set_exhausted(&self, platform: PlatformId, exhausted: Option<ExhaustedRequests>) {
        let mut state = self.state();
        match exhausted {
            Some(exhausted) => state.exhausted.insert(platform, exhausted),
            None => state.exhausted.remove(&platform),
        };
    }
}

impl TrafficMeter for GatewayMeter {
    fn count(&self, platform: &PlatformId, response_bytes: u64) {
        let mut state = self.state();
        // Copies the id only for the first request after a report.
        if let Some(counts) = state.counts.get_mut(platform) {
            counts.add(response_bytes);
        } else {
            let counts = state.counts.entry(platform.clone()).or_default();
            counts.add(response_bytes);
        }
    }
}

impl UsageMeter for GatewayMeter {
    fn find_exhausted(&self, platform: &PlatformId) -> Option<ExhaustedRequests> {
        self.state().exhausted.get(platform).copied()
    }
}

impl Counts {
    const fn add(&mut self, bytes: u64) {
        self.requests = self.requests.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// The background task that reports the counts of the gateway.
pub(crate) struct GatewayReporter {
    pub(crate) meter: Arc<GatewayMeter>,
    pub(crate) sink: Arc<dyn UsageSink>,
    pub(crate) entropy: Arc<dyn Entropy>,
    /// `true` if the gateway refuses platforms that have exhausted their requests.
    pub(crate) enforces_quotas: bool,
}

/// The reports of one process. The id of an event names the process and the report, so that a repeated delivery counts
/// once.
struct Reports {
    process: String,
    window: u64,
    /// Events that are not stored yet. They keep their ids until they are.
    pending: Vec<NewUsageEvent>,
}

impl GatewayReporter {
    /// Starts reporting on the current tokio runtime. After a stop, it reports the last counts and ends. A store that
    /// does not respond delays the stop by at most [`GRACE`](crate::background_task::GRACE).
    pub(crate) fn start(self) -> BackgroundTask {
        BackgroundTask::start(|stopped| async move {
            tokio::select! {
                () = self.run(stopped.clone()) => {}
                () = wait_for_grace(stopped) => {}
            }
        })
    }

    async fn run(self, mut stopped: watch::Receiver<bool>) {
        let mut random = [0_u8; 16];
        self.entropy.fill(&mut random);
        let mut reports = Reports {
            process: hex(&random),
            window: 0,
            pending: Vec::new(),
        };
        loop {
            tokio::select! {
                () = tokio::time::sleep(FLUSH_EVERY) => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
            if let Err(error) = self.flush(&mut reports).await {
                tracing::warn!(?error, "the usage of the gateway could not be reported");
            }
            if *stopped.borrow() {
                return;
            }
        }
    }

    /// Reports the counts since the last report. While an earlier report is not stored, counting continues in memory.
    async fn flush(&self, reports: &mut Reports) -> Result<()> {
        self.send_pending(reports).await?;
        let mut counts = BTreeMap::new();
        if self.meter.has_counts() {
            // Read before the counts are taken, so that a failure loses none.
            let now = self.sink.now().await?;
            counts = self.meter.take_counts();
            reports.add(&counts, now);
            self.send_pending(reports).await?;
        }
        if self.enforces_quotas {
            self.refresh_exhausted(counts.into_keys()).await?;
        }
        Ok(())
    }

    async fn send_pending(&self, reports: &mut Reports) -> Result<()> {
        while !reports.pending.is_empty() {
            let first = reports.pending.len().min(MAX_EVENTS);
            let batch = reports.pending.iter().take(first).cloned().collect();
            match self.sink.report(batch).await {
                Ok(_) => {}
                // A later attempt would fail as well.
                Err(error @ Error::Invalid(_)) => {
                    tracing::warn!(?error, "usage of the gateway was refused and is lost");
                }
                Err(error) => return Err(error),
            }
            reports.pending.drain(..first);
        }
        Ok(())
    }

    /// Reads again which platforms have exhausted their requests: those that sent some, and those that were exhausted.
    async fn refresh_exhausted(&self, active: impl Iterator<Item = PlatformId>) -> Result<()> {
        let known = self.meter.exhausted_platforms();
        for platform in active.chain(known) {
            let exhausted = self.sink.find_exhausted(&platform).await?;
            self.meter.set_exhausted(platform, exhausted);
        }
        Ok(())
    }
}

impl Reports {
    /// Turns counts into events with new ids.
    fn add(&mut self, counts: &BTreeMap<PlatformId, Counts>, time: Timestamp) {
        self.window += 1;
        for (platform, counts) in counts {
            let metrics = [
                (Metric::Requests, counts.requests),
                (Metric::EgressBytes, counts.bytes),
            ];
            for (metric, quantity) in metrics {
                let text = format!("gw:{}:{}:{metric}", self.process, self.window);
                let (Ok(id), Ok(source)) = (UsageKey::parse(&text), UsageKey::parse(SOURCE)) else {
                    continue;
                };
                self.pending.push(NewUsageEvent {
                    id,
                    source,
                    platform_id: platform.clone(),
                    stack_id: None,
                    tenant_id: None,
                    metric: metric.to_string(),
                    quantity: i64::try_from(quantity).unwrap_or(i64::MAX),
                    time,
                    corrects_id: None,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core_domain::billing::usage::{UsageEvent, UsageEventQuery};
    use core_domain::billing::{PlanCatalog, TaxTable};
    use core_domain::kernel::{Cipher, Name, Slug};
    use core_domain::port::{Persisted, Within};
    use core_domain::registry::{CreatePlatform, Platform, PlatformOwner, Tier};
    use core_domain::testing::{ManualClock, MockPayments, RecordKey, SeededEntropy};
    use core_domain::use_case::billing::clock::BillingClock;
    use core_domain::use_case::billing::page_links::PageLinks;
    use core_storage::fault::FaultStore;
    use core_storage::memory::MemoryRows;
    use core_storage::{RecordStore, RowStore};

    use super::*;

    const KEY: [u8; 32] = [7; 32];
    const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);
    const LATER: Timestamp = Timestamp::from_seconds(1_900_000_000);

    /// The platforms whose requests are counted.
    const PLATFORMS: [&str; 2] = [
        "00000000-0000-7000-8000-000000000001",
        "00000000-0000-7000-8000-000000000002",
    ];

    fn platform(number: usize) -> PlatformId {
        PlatformId::parse(PLATFORMS[number]).unwrap()
    }

    /// A gateway and its store, which fails on demand.
    struct MeteredGateway {
        meter: Arc<GatewayMeter>,
        usage: Usage,
        faults: FaultStore,
        entropy: Arc<dyn Entropy>,
    }

    impl MeteredGateway {
        async fn new() -> Self {
            let clock = Arc::new(ManualClock::at(NOW));
            let faults = FaultStore::new(MemoryRows::new(clock));
            let rows: Arc<dyn RowStore> = Arc::new(faults.clone());
            let store: Arc<dyn Store> = Arc::new(RecordStore::new(rows, KEY));
            let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::new(7));
            let mut uow = store.begin(Mode::Write).await.unwrap();
            for (number, id) in PLATFORMS.iter().enumerate() {
                let command = CreatePlatform {
                    name: Name::parse("Engines").unwrap(),
                    slug: Slug::parse(&format!("engines-{number}")).unwrap(),
                    tier: Tier::Starter,
                    cf_account_id: None,
                    repo_name: None,
                };
                let id = PlatformId::parse(id).unwrap();
                let created = Platform::create(id, PlatformOwner::default(), command, NOW);
                let platforms = Platform::repository(uow.repositories(RecordKey::for_tests()));
                platforms.insert(created).await.unwrap();
            }
            uow.commit().await.unwrap();
            let billing = Billing {
                plans: PlanCatalog::default(),
                payments: Arc::new(MockPayments::new()),
                clock: BillingClock::Store,
                cipher: Cipher::new(KEY, Arc::clone(&entropy)),
                pages: PageLinks::new(None, Vec::new(), &KEY),
                taxes: Arc::new(TaxTable::default()),
                issuer: None,
            };
            Self {
                meter: Arc::default(),
                usage: Usage::new(
                    store,
                    Arc::new(billing),
                    Arc::clone(&entropy),
                    &Metrics::new(),
                ),
                faults,
                entropy,
            }
        }

        /// Returns a reporter like that of a new process with the same store.
        fn reporter(&self) -> GatewayReporter {
            GatewayReporter {
                meter: Arc::clone(&self.meter),
                sink: Arc::new(self.usage.clone()),
                entropy: Arc::clone(&self.entropy),
                enforces_quotas: true,
            }
        }

        /// Counts a request with 10 bytes for each platform.
        fn visit(&self) {
            for number in 0..PLATFORMS.len() {
                self.meter.count(&platform(number), 10);
            }
        }

        /// Returns the stored requests and bytes of each platform.
        async fn stored_counts(&self) -> Vec<[i64; 2]> {
            let mut uow = self.usage.store.begin(Mode::Read).await.unwrap();
            let events = UsageEvent::repository(uow.repositories(RecordKey::for_tests()));
            let all = UsageEventQuery::ReceivedBefore(LATER);
            let found = events
                .list(Within::Installation, &all, 1_000)
                .await
                .unwrap();
            let sum = |number: usize, metric: Metric| {
                let own = found.iter().filter(|event| {
                    event.platform_id == platform(number) && event.metric == metric
                });
                own.map(|event| event.quantity).sum()
            };
            let sums = |number| [Metric::Requests, Metric::EgressBytes].map(|m| sum(number, m));
            (0..PLATFORMS.len()).map(sums).collect()
        }
    }

    fn reports(process: &str) -> Reports {
        Reports {
            process: process.to_owned(),
            window: 0,
            pending: Vec::new(),
        }
    }

    #[tokio::test]
    async fn each_flush_reports_what_was_counted_since_the_one_before() {
        let gateway = MeteredGateway::new().await;
        let (reporter, mut reports) = (gateway.reporter(), reports("a"));
        for flush in 1..=3 {
            gateway.visit();
            gateway.visit();
            reporter.flush(&mut reports).await.unwrap();
            assert_eq!(gateway.stored_counts().await, [[2 * flush, 20 * flush]; 2]);
        }
        reporter.flush(&mut reports).await.unwrap();
        assert_eq!(gateway.stored_counts().await, [[6, 60]; 2]);
    }

    #[tokio::test]
    async fn a_failed_or_lost_report_is_repeated_and_counts_once() {
        let gateway = MeteredGateway::new().await;
        let (reporter, mut reports) = (gateway.reporter(), reports("a"));
        let mut expected = 0;
        for call in 1.. {
            gateway.visit();
            gateway.faults.fail_call(call);
            let flushed = reporter.flush(&mut reports).await;
            let has_failed = gateway.faults.has_failed();
            gateway.faults.fail_call(u32::MAX);
            assert!(flushed.is_err() || !has_failed, "{call}");
            gateway.visit();
            gateway.faults.lose_reply(1);
            let _ = reporter.flush(&mut reports).await;
            gateway.faults.lose_reply(u32::MAX);
            reporter.flush(&mut reports).await.unwrap();
            expected += 2;
            assert_eq!(
                gateway.stored_counts().await,
                [[expected, 10 * expected]; 2],
                "{call}"
            );
            if !has_failed {
                assert!(call > 5, "a flush has only {call} calls");
                return;
            }
        }
    }

    #[tokio::test]
    async fn a_process_that_dies_at_any_call_loses_at_most_one_report_and_doubles_none() {
        for call in 1.. {
            let gateway = MeteredGateway::new().await;
            let mut first = reports("a");
            gateway.visit();
            gateway.reporter().flush(&mut first).await.unwrap();
            gateway.visit();
            gateway.faults.fail_from_call(call);
            let _ = gateway.reporter().flush(&mut first).await;
            let has_died = gateway.faults.has_failed();
            gateway.faults.fail_call(u32::MAX);
            // The counts in memory are gone.
            gateway.meter.take_counts();
            gateway.visit();
            gateway.reporter().flush(&mut reports("b")).await.unwrap();
            let stored = gateway.stored_counts().await;
            let is_expected = |sums: &[i64; 2]| [[2, 20], [3, 30]].contains(sums);
            assert!(stored.iter().all(is_expected), "{call}: {stored:?}");
            if !has_died {
                assert_eq!(stored, [[3, 30]; 2]);
                return;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn counts_are_reported_every_ten_seconds_and_at_the_end() {
        let gateway = MeteredGateway::new().await;
        let task = gateway.reporter().start();
        gateway.visit();
        tokio::time::sleep(FLUSH_EVERY - Duration::from_secs(1)).await;
        assert_eq!(gateway.stored_counts().await, [[0, 0]; 2]);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(gateway.stored_counts().await, [[1, 10]; 2]);
        gateway.visit();
        task.stop().await;
        assert_eq!(gateway.stored_counts().await, [[2, 20]; 2]);
    }
}
