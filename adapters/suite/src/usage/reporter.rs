//! The background task that reports the counts of the gateway.
//!
//! A report contains the events of many platforms, whose databases can differ. If it fails, the platforms are reported
//! separately, so that one database that cannot be reached affects only its own platforms.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use core_domain::billing::Metric;
use core_domain::billing::usage::{MAX_EVENTS, NewUsageEvent, UsageKey};
use core_domain::kernel::{Entropy, Error, PlatformId, Result, Timestamp, hex};
use core_http::kernel::metrics::Metrics;
use futures_util::{StreamExt, stream};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use super::{Counts, GatewayMeter, UsageSink};
use crate::background_task::{BackgroundTask, wait_for_grace};

/// Time between two reports of the gateway.
const FLUSH_EVERY: Duration = Duration::from_secs(10);

/// The program that reports the usage of the gateway.
const SOURCE: &str = "gateway";

/// The number of events of a platform in a report: one for each metric.
const EVENTS_PER_PLATFORM: usize = 2;

/// How many platforms are processed separately at the same time. Each one can hold a connection until its database
/// times out.
const MAX_CONCURRENT: usize = 4;

/// Time after which no further platform is processed separately until the next flush.
const SEPARATE_TIME: Duration = Duration::from_secs(10);

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
    /// Events that are not stored yet, at most [`EVENTS_PER_PLATFORM`] of each platform. They keep their ids until they
    /// are stored.
    pending: BTreeMap<PlatformId, Vec<NewUsageEvent>>,
    /// The platforms that are processed separately, with the time of the last failure of the platform alone; `None` if
    /// only a report with other platforms has failed.
    failures: BTreeMap<PlatformId, Option<Instant>>,
}

/// The results of a flush.
#[derive(Default)]
struct Flush {
    /// The platforms whose events were stored or refused.
    stored: BTreeSet<PlatformId>,
    /// The first error of a platform that is tried again at the next flush.
    error: Option<Error>,
}

impl GatewayReporter {
    /// Starts reporting on the current tokio runtime. After a stop, it reports the last counts and ends. A store that
    /// does not respond delays the stop by at most [`GRACE`](crate::background_task::GRACE).
    pub(crate) fn start(self, metrics: &Metrics) -> BackgroundTask {
        let mut random = [0_u8; 16];
        self.entropy.fill(&mut random);
        // A restart after a panic continues the reports.
        let reports = Arc::new(Mutex::new(Reports::new(hex(&random))));
        let reporter = Arc::new(self);
        BackgroundTask::start("gateway-usage", metrics, move |stopped| {
            let (reporter, reports) = (Arc::clone(&reporter), Arc::clone(&reports));
            async move {
                let mut reports = reports.lock().await;
                tokio::select! {
                    () = reporter.run(&mut reports, stopped.clone()) => {}
                    () = wait_for_grace(stopped) => {}
                }
            }
        })
    }

    async fn run(&self, reports: &mut Reports, mut stopped: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(FLUSH_EVERY) => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
            if let Err(error) = self.flush(reports).await {
                tracing::warn!(
                    ?error,
                    pending_platforms = reports.pending.len(),
                    "the usage of the gateway could not be reported"
                );
            }
            if *stopped.borrow() {
                return;
            }
        }
    }

    /// Reports the counts since the last report. While an event of a platform is not stored, counting continues in
    /// memory for that platform.
    async fn flush(&self, reports: &mut Reports) -> Result<()> {
        let mut flush = Flush::default();
        self.send_counts(reports, &mut flush).await?;
        if self.send_separately(reports, &mut flush).await {
            // Reports what was counted while the earlier events were not stored.
            self.send_counts(reports, &mut flush).await?;
        }
        if self.enforces_quotas {
            self.refresh_exhausted(reports, &mut flush).await;
        }
        flush.error.map_or(Ok(()), Err)
    }

    /// Reports the platforms without failures together, with their counts since the last report.
    async fn send_counts(&self, reports: &mut Reports, flush: &mut Flush) -> Result<()> {
        if self.meter.has_counts() {
            // Read before the counts are taken, so that a failure loses none.
            let now = self.sink.now().await?;
            let pending = &reports.pending;
            let counts = self
                .meter
                .take_counts(|platform| !pending.contains_key(platform));
            reports.add(&counts, now);
        }
        for platforms in reports
            .joint_platforms()
            .chunks(MAX_EVENTS / EVENTS_PER_PLATFORM)
        {
            match self.send(reports.events_of(platforms)).await {
                Ok(()) => reports.remove(platforms, flush),
                Err(error) => {
                    tracing::warn!(
                        ?error,
                        platforms = platforms.len(),
                        "a report of usage failed; its platforms are reported separately"
                    );
                    let failures = platforms.iter().map(|platform| (platform.clone(), None));
                    reports.failures.extend(failures);
                }
            }
        }
        Ok(())
    }

    /// Reports each platform with failures in a report of its own. Returns whether a platform was stored.
    async fn send_separately(&self, reports: &mut Reports, flush: &mut Flush) -> bool {
        let platforms = reports.in_order(reports.pending.keys().cloned().collect());
        let send = |platform: &PlatformId| self.send(reports.events_of(slice::from_ref(platform)));
        let mut has_stored = false;
        for (platform, sent) in process_separately(platforms, send).await {
            match sent {
                Ok(()) => {
                    reports.remove(slice::from_ref(&platform), flush);
                    has_stored = true;
                }
                Err(error) => reports.add_failure(&platform, error, flush),
            }
        }
        has_stored
    }

    async fn send(&self, events: Vec<NewUsageEvent>) -> Result<()> {
        match self.sink.report(events).await {
            // A later attempt would fail as well.
            Err(error @ Error::Invalid(_)) => {
                tracing::warn!(?error, "usage of the gateway was refused and is lost");
                Ok(())
            }
            sent => sent,
        }
    }

    /// Reads again which platforms have exhausted their requests: those that sent some, and those that were exhausted.
    /// If that fails for a platform, its last state remains.
    async fn refresh_exhausted(&self, reports: &mut Reports, flush: &mut Flush) {
        let mut platforms = flush.stored.clone();
        platforms.extend(self.meter.exhausted_platforms());
        let find = |platform: &PlatformId| {
            let platform = platform.clone();
            async move { self.sink.find_exhausted(&platform).await }
        };
        for (platform, found) in process_separately(reports.in_order(platforms), find).await {
            match found {
                Ok(exhausted) => self.meter.set_exhausted(platform, exhausted),
                Err(error) => reports.add_failure(&platform, error, flush),
            }
        }
    }
}

/// Processes platforms, several at the same time, and returns the results. None is started after [`SEPARATE_TIME`].
async fn process_separately<T, F: Future<Output = T>>(
    platforms: Vec<PlatformId>,
    process: impl Fn(&PlatformId) -> F,
) -> Vec<(PlatformId, T)> {
    let begun = Instant::now();
    let has_time = |_: &PlatformId| begun.elapsed() < SEPARATE_TIME;
    let results = platforms.into_iter().take_while(has_time).map(|platform| {
        let result = process(&platform);
        async move { (platform, result.await) }
    });
    let results = stream::iter(results).buffer_unordered(MAX_CONCURRENT);
    results.collect().await
}

impl Reports {
    fn new(process: String) -> Self {
        Self {
            process,
            window: 0,
            pending: BTreeMap::new(),
            failures: BTreeMap::new(),
        }
    }

    /// Turns counts into events with new ids.
    fn add(&mut self, counts: &BTreeMap<PlatformId, Counts>, time: Timestamp) {
        self.window += 1;
        for (platform, counts) in counts {
            let metrics: [_; EVENTS_PER_PLATFORM] = [
                (Metric::Requests, counts.requests),
                (Metric::EgressBytes, counts.bytes),
            ];
            for (metric, quantity) in metrics {
                let text = format!("gw:{}:{}:{metric}", self.process, self.window);
                let (Ok(id), Ok(source)) = (UsageKey::parse(&text), UsageKey::parse(SOURCE)) else {
                    continue;
                };
                let events = self.pending.entry(platform.clone()).or_default();
                events.push(NewUsageEvent {
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

    /// Returns the platforms with pending events that can be reported together.
    fn joint_platforms(&self) -> Vec<PlatformId> {
        let platforms = self.pending.keys();
        let joint = platforms.filter(|platform| !self.failures.contains_key(*platform));
        joint.cloned().collect()
    }

    /// Sorts platforms: first those that have not failed alone, then by the time of their last failure.
    fn in_order(&self, platforms: BTreeSet<PlatformId>) -> Vec<PlatformId> {
        let mut ordered: Vec<PlatformId> = platforms.into_iter().collect();
        ordered.sort_by_key(|platform| self.failures.get(platform).copied().flatten());
        ordered
    }

    fn events_of(&self, platforms: &[PlatformId]) -> Vec<NewUsageEvent> {
        let pending = platforms.iter().filter_map(|one| self.pending.get(one));
        pending.flatten().cloned().collect()
    }

    /// Removes the events of these platforms, because they are stored or refused.
    fn remove(&mut self, platforms: &[PlatformId], flush: &mut Flush) {
        for platform in platforms {
            self.pending.remove(platform);
            self.failures.remove(platform);
        }
        flush.stored.extend(platforms.iter().cloned());
    }

    fn add_failure(&mut self, platform: &PlatformId, error: Error, flush: &mut Flush) {
        self.failures.insert(platform.clone(), Some(Instant::now()));
        flush.error.get_or_insert(error);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;
    use core_domain::billing::usage::{UsageEvent, UsageEventQuery};
    use core_domain::billing::{PlanCatalog, TaxTable};
    use core_domain::kernel::{Cipher, Name, Slug, StoreError};
    use core_domain::port::{Mode, Persisted, Store, TrafficMeter, Within};
    use core_domain::registry::{CreatePlatform, Platform, PlatformOwner, Tier};
    use core_domain::testing::{ManualClock, MockPayments, RecordKey, SeededEntropy};
    use core_domain::use_case::billing::Billing;
    use core_domain::use_case::billing::clock::BillingClock;
    use core_domain::use_case::billing::page_links::PageLinks;
    use core_http::gateway::{ExhaustedRequests, UsageMeter};
    use core_storage::fault::FaultStore;
    use core_storage::memory::MemoryRows;
    use core_storage::{RecordStore, RowStore};
    use tokio::time::sleep;

    use super::*;
    use crate::usage::Usage;

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
        Reports::new(process.to_owned())
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
            // A call that fails once may be repaired by a separate report.
            if flushed.is_ok() {
                let stored = gateway.stored_counts().await;
                assert_eq!(stored, [[expected + 1, 10 * expected + 10]; 2], "{call}");
            }
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
            gateway.meter.take_counts(|_| true);
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
        let task = gateway.reporter().start(&Metrics::new());
        gateway.visit();
        tokio::time::sleep(FLUSH_EVERY - Duration::from_secs(1)).await;
        assert_eq!(gateway.stored_counts().await, [[0, 0]; 2]);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(gateway.stored_counts().await, [[1, 10]; 2]);
        gateway.visit();
        task.stop().await;
        assert_eq!(gateway.stored_counts().await, [[2, 20]; 2]);
    }

    /// A billing whose platforms are in databases of their own. Each platform has exhausted its requests.
    #[derive(Debug, Default)]
    struct CellSink {
        /// The platforms whose database does not respond.
        down: Mutex<BTreeSet<PlatformId>>,
        /// The stored quantities by platform and id of the event.
        stored: Mutex<BTreeMap<(PlatformId, String), i64>>,
        /// The number of the report that panics.
        panics_at: u32,
        reports: AtomicU32,
    }

    impl CellSink {
        async fn wait_for(&self, platform: &PlatformId) -> Result<()> {
            if self.down.lock().unwrap().contains(platform) {
                sleep(Duration::from_secs(10)).await;
                return Err(StoreError::unavailable("the database does not respond").into());
            }
            Ok(())
        }

        fn set_down(&self, platforms: impl IntoIterator<Item = PlatformId>) {
            *self.down.lock().unwrap() = platforms.into_iter().collect();
        }

        /// Returns the stored requests of each platform.
        fn requests(&self) -> Vec<i64> {
            let mut requests = BTreeMap::new();
            for ((platform, id), quantity) in self.stored.lock().unwrap().iter() {
                if id.ends_with(&Metric::Requests.to_string()) {
                    *requests.entry(platform.clone()).or_default() += quantity;
                }
            }
            let of_platform = |number| requests.get(&cell(number)).copied().unwrap_or(0);
            (0..CELLS).map(of_platform).collect()
        }
    }

    #[async_trait]
    impl UsageSink for CellSink {
        async fn now(&self) -> Result<Timestamp> {
            Ok(NOW)
        }

        async fn report(&self, events: Vec<NewUsageEvent>) -> Result<()> {
            let report = self.reports.fetch_add(1, Ordering::SeqCst) + 1;
            assert!(report != self.panics_at, "report {report} panics");
            for event in &events {
                self.wait_for(&event.platform_id).await?;
            }
            let mut stored = self.stored.lock().unwrap();
            for event in events {
                let key = (event.platform_id, event.id.to_string());
                stored.insert(key, event.quantity);
            }
            Ok(())
        }

        async fn find_exhausted(&self, platform: &PlatformId) -> Result<Option<ExhaustedRequests>> {
            self.wait_for(platform).await?;
            let (used, limit) = (1, 1);
            Ok(Some(ExhaustedRequests { used, limit }))
        }
    }

    /// The number of platforms of a [`CellSink`].
    const CELLS: usize = 20;

    fn cell(number: usize) -> PlatformId {
        PlatformId::parse(&format!("00000000-0000-7000-8000-{number:012}")).unwrap()
    }

    fn reporter_to(sink: &Arc<CellSink>) -> GatewayReporter {
        GatewayReporter {
            meter: Arc::default(),
            sink: sink.clone(),
            entropy: Arc::new(SeededEntropy::new(7)),
            enforces_quotas: true,
        }
    }

    /// Counts a request of each platform.
    fn visit_cells(meter: &GatewayMeter) {
        for number in 0..CELLS {
            meter.count(&cell(number), 10);
        }
    }

    /// Returns the requests if the first `down` platforms have the first number, and the others the second one.
    fn split(down: usize, [first, second]: [i64; 2]) -> Vec<i64> {
        [vec![first; down], vec![second; CELLS - down]].concat()
    }

    #[tokio::test(start_paused = true)]
    async fn a_platform_whose_database_is_down_does_not_hold_up_the_others() {
        let sink = Arc::<CellSink>::default();
        let (reporter, mut reports) = (reporter_to(&sink), reports("a"));
        let meter = Arc::clone(&reporter.meter);
        sink.set_down([cell(0)]);
        for flush in 1..=3 {
            visit_cells(&meter);
            assert!(reporter.flush(&mut reports).await.is_err());
            assert_eq!(sink.requests(), split(1, [0, flush]));
        }
        let exhausted = |number| meter.find_exhausted(&cell(number)).is_some();
        assert!(!exhausted(0) && (1..CELLS).all(exhausted));
        // Only the events of the first report wait; later requests are counted in memory.
        assert_eq!(reports.pending.values().flatten().count(), 2);
        sink.set_down([]);
        reporter.flush(&mut reports).await.unwrap();
        assert_eq!(sink.requests(), [3; CELLS]);
        assert!(exhausted(0) && reports.failures.is_empty() && reports.pending.is_empty());
        visit_cells(&meter);
        let before = sink.reports.load(Ordering::SeqCst);
        reporter.flush(&mut reports).await.unwrap();
        assert_eq!(sink.reports.load(Ordering::SeqCst), before + 1);
        assert_eq!(sink.requests(), [4; CELLS]);
    }

    #[tokio::test(start_paused = true)]
    async fn many_platforms_whose_databases_hang_delay_the_others_by_few_flushes() {
        let sink = Arc::<CellSink>::default();
        let (reporter, mut reports) = (reporter_to(&sink), reports("a"));
        let meter = Arc::clone(&reporter.meter);
        let down = 2 * MAX_CONCURRENT;
        sink.set_down((0..down).map(cell));
        visit_cells(&meter);
        for _ in 0..3 {
            let begun = Instant::now();
            assert!(reporter.flush(&mut reports).await.is_err());
            assert!(
                begun.elapsed() <= SEPARATE_TIME * 2,
                "{:?}",
                begun.elapsed()
            );
        }
        assert_eq!(sink.requests(), split(down, [0, 1]));
        // From now on, the others are reported first.
        visit_cells(&meter);
        let task = tokio::spawn(async move { reporter.flush(&mut reports).await });
        sleep(Duration::from_millis(1)).await;
        assert_eq!(sink.requests(), split(down, [0, 2]));
        sink.set_down([]);
        let _ = task.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_counts_are_reported_at_a_stop_even_if_a_database_hangs() {
        let sink = Arc::<CellSink>::default();
        let reporter = reporter_to(&sink);
        let meter = Arc::clone(&reporter.meter);
        sink.set_down([cell(0)]);
        let task = reporter.start(&Metrics::new());
        visit_cells(&meter);
        sleep(Duration::from_secs(55)).await;
        assert_eq!(sink.requests(), split(1, [0, 1]));
        visit_cells(&meter);
        sleep(Duration::from_secs(60)).await;
        visit_cells(&meter);
        task.stop().await;
        assert_eq!(sink.requests(), split(1, [0, 3]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_that_panics_is_repeated_with_the_same_ids() {
        let sink = Arc::new(CellSink {
            panics_at: 2,
            ..CellSink::default()
        });
        let reporter = reporter_to(&sink);
        let meter = Arc::clone(&reporter.meter);
        let task = reporter.start(&Metrics::new());
        for _ in 0..3 {
            visit_cells(&meter);
            sleep(Duration::from_secs(20)).await;
        }
        visit_cells(&meter);
        task.stop().await;
        assert_eq!(sink.requests(), [4; CELLS]);
    }
}
