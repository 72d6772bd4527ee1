//! The metrics of the store: units of work and connections. Units that take long are logged.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::access::RecordKey;
use core_domain::kernel::{Effects, StoreError, Timestamp};
use core_domain::port::{
    CellState, HostStatements, Mode, PoolState, Repositories, StatementTime, Store, UnitOfWork,
};
use core_http::kernel::metrics::{Buckets, Counter, Definition, Gauge, Histogram, Metrics, Sample};
use tokio::time::Instant;

const UNITS: Definition<2> = Definition {
    name: "core_store_units_total",
    help: "Units of work that have ended, by outcome. `conflict`: the commit conflicted with another unit. `unknown`: the reply to the commit was lost. `failed`: the store failed.",
    labels: ["mode", "outcome"],
};

const DURATION: Definition<1> = Definition {
    name: "core_store_unit_duration_seconds",
    help: "Time from the request of a unit of work to its end.",
    labels: ["mode"],
};

const WAIT: Definition<1> = Definition {
    name: "core_store_begin_duration_seconds",
    help: "Time that a unit of work waited for a connection or for its turn.",
    labels: ["mode"],
};

const COMMIT: Definition<0> = Definition {
    name: "core_store_commit_duration_seconds",
    help: "Time of a commit.",
    labels: [],
};

const OPEN: Definition<1> = Definition {
    name: "core_store_units_open",
    help: "Units of work in progress, including those that wait for a connection.",
    labels: ["mode"],
};

const RETRIES: Definition<0> = Definition {
    name: "core_store_retries_total",
    help: "Units of work that were run again because they conflicted with another unit.",
    labels: [],
};

const CONNECTIONS: Definition<2> = Definition {
    name: "core_store_pool_connections",
    help: "Open connections of the store.",
    labels: ["pool", "state"],
};

const LIMIT: Definition<1> = Definition {
    name: "core_store_pool_limit",
    help: "Maximum number of connections of the store.",
    labels: ["pool"],
};

const WAITING: Definition<1> = Definition {
    name: "core_store_pool_waiting",
    help: "Units of work that wait for a connection or for their turn to write.",
    labels: ["pool"],
};

const CELL_REACHED: Definition<1> = Definition {
    name: "core_store_cell_reached",
    help: "1 if the database of the cell responds to this process, otherwise 0. The home cell is not included.",
    labels: ["cell"],
};

/// How a unit of work has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Committed,
    RolledBack,
    Conflict,
    Unknown,
    Failed,
}

/// The values of the label `outcome`, in the order of [`Outcome`].
const OUTCOMES: [&str; 5] = ["committed", "rolled-back", "conflict", "unknown", "failed"];

impl Outcome {
    fn of_commit(result: &Result<Effects, StoreError>) -> Self {
        match result {
            Ok(_) => Self::Committed,
            Err(StoreError::Retry(_)) => Self::Conflict,
            Err(error) if error.is_certainly_not_applied() => Self::Failed,
            Err(_) => Self::Unknown,
        }
    }
}

/// The series of a mode.
#[derive(Debug)]
struct ModeSeries {
    mode: &'static str,
    outcomes: [Counter; OUTCOMES.len()],
    duration: Histogram,
    wait: Histogram,
    open: Gauge,
}

impl ModeSeries {
    fn new(metrics: &Metrics, mode: &'static str) -> Self {
        let units = metrics.counters(&UNITS);
        Self {
            mode,
            outcomes: OUTCOMES.map(|outcome| units.with([mode, outcome])),
            duration: metrics
                .histograms(&DURATION, Buckets::REQUESTS)
                .with([mode]),
            wait: metrics.histograms(&WAIT, Buckets::REQUESTS).with([mode]),
            open: metrics.gauges(&OPEN).with([mode]),
        }
    }
}

/// The metrics of a store.
#[derive(Debug)]
struct StoreMetrics {
    auto: ModeSeries,
    read: ModeSeries,
    write: ModeSeries,
    read_committed: ModeSeries,
    /// Units of reads on a replica.
    stale: ModeSeries,
    commit: Histogram,
    retries: Counter,
    slow_unit: Duration,
}

impl StoreMetrics {
    const fn series(&self, mode: Option<Mode>) -> &ModeSeries {
        match mode {
            Some(Mode::Auto) => &self.auto,
            Some(Mode::Read) => &self.read,
            Some(Mode::Write) => &self.write,
            Some(Mode::ReadCommitted) => &self.read_committed,
            None => &self.stale,
        }
    }
}

/// A store that measures the units of work of another one.
#[derive(Debug)]
pub(crate) struct MeteredStore {
    store: Arc<dyn Store>,
    metrics: Arc<StoreMetrics>,
}

impl MeteredStore {
    /// Creates a store that measures the units of `store`. Units that take longer than `slow_unit` are logged.
    pub(crate) fn new(store: Arc<dyn Store>, metrics: &Metrics, slow_unit: Duration) -> Self {
        let series = |mode| ModeSeries::new(metrics, mode);
        Self {
            store,
            metrics: Arc::new(StoreMetrics {
                auto: series("auto"),
                read: series("read"),
                write: series("write"),
                read_committed: series("read-committed"),
                stale: series("stale"),
                commit: metrics.histograms(&COMMIT, Buckets::REQUESTS).with([]),
                retries: metrics.counters(&RETRIES).with([]),
                slow_unit,
            }),
        }
    }
}

#[async_trait]
impl Store for MeteredStore {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError> {
        let mut measured = Measurement::begin(&self.metrics, Some(mode));
        match self.store.begin(mode).await {
            Ok(unit) => Ok(measured.into_unit(unit)),
            Err(error) => {
                measured.outcome = Outcome::Failed;
                Err(error)
            }
        }
    }

    async fn begin_stale(&self) -> Option<Box<dyn UnitOfWork>> {
        let began = Instant::now();
        let unit = self.store.begin_stale().await?;
        let measured = Measurement::begin(&self.metrics, None).since(began);
        Some(measured.into_unit(unit))
    }

    async fn back_off(&self, run: u32) {
        self.metrics.retries.increment();
        self.store.back_off(run).await;
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.store.check().await
    }

    fn uptime(&self) -> Duration {
        self.store.uptime()
    }

    fn retry_timeout(&self) -> Duration {
        self.store.retry_timeout()
    }

    fn pools(&self) -> Vec<PoolState> {
        self.store.pools()
    }

    fn cells(&self) -> Vec<CellState> {
        self.store.cells()
    }
}

/// A unit of work that is measured. It is counted when this value is dropped.
struct Measurement {
    metrics: Arc<StoreMetrics>,
    /// `None` for a unit on a replica.
    mode: Option<Mode>,
    began: Instant,
    outcome: Outcome,
    /// The slowest statements before the end of the unit.
    statements: Vec<StatementTime>,
    /// The duration of the commit, in which a store may send the last statement.
    commit: Option<Duration>,
}

impl Measurement {
    fn begin(metrics: &Arc<StoreMetrics>, mode: Option<Mode>) -> Self {
        let measured = Self {
            metrics: Arc::clone(metrics),
            mode,
            began: Instant::now(),
            // A unit that is dropped is rolled back.
            outcome: Outcome::RolledBack,
            statements: Vec::new(),
            commit: None,
        };
        measured.series().open.increment();
        measured
    }

    /// Sets the instant at which the unit was requested.
    fn since(mut self, began: Instant) -> Self {
        self.began = began;
        self
    }

    /// Records the wait for a unit that is open, and returns the unit with its measurement.
    fn into_unit(self, unit: Box<dyn UnitOfWork>) -> Box<dyn UnitOfWork> {
        self.series().wait.record(self.began.elapsed());
        Box::new(MeteredUnit {
            unit,
            measured: self,
        })
    }

    fn series(&self) -> &ModeSeries {
        self.metrics.series(self.mode)
    }

    fn log_if_slow(&self, took: Duration) {
        if took < self.metrics.slow_unit {
            return;
        }
        let (mode, outcome) = (self.series().mode, OUTCOMES[self.outcome as usize]);
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(
            mode,
            outcome,
            duration_ms = millis(took),
            commit_ms = self.commit.map(millis),
            statements = statements_text(&self.statements),
            "a unit of work took long"
        );
    }
}

impl Drop for Measurement {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        let series = self.series();
        series.open.decrement();
        series.outcomes[self.outcome as usize].increment();
        series.duration.record(took);
        self.log_if_slow(took);
    }
}

/// Maximum length of the text of a statement in the log, in characters.
const MAX_STATEMENT_CHARS: usize = 300;

/// Returns the statements as text for the log: each with its duration, and without values.
fn statements_text(statements: &[StatementTime]) -> String {
    let texts = statements.iter().map(|statement| {
        let text: String = statement.text.chars().take(MAX_STATEMENT_CHARS).collect();
        let cut = if text.len() < statement.text.len() {
            ".."
        } else {
            ""
        };
        format!("{:.1?} {text}{cut}", statement.duration)
    });
    texts.collect::<Vec<_>>().join("; ")
}

struct MeteredUnit {
    unit: Box<dyn UnitOfWork>,
    measured: Measurement,
}

#[async_trait]
impl UnitOfWork for MeteredUnit {
    async fn now(&mut self) -> Result<Timestamp, StoreError> {
        self.unit.now().await
    }

    fn effects(&mut self) -> &mut Effects {
        self.unit.effects()
    }

    fn repositories(&mut self, key: RecordKey) -> &mut dyn Repositories {
        self.unit.repositories(key)
    }

    async fn enlist(&mut self, statements: &mut dyn HostStatements) -> Result<(), StoreError> {
        self.unit.enlist(statements).await
    }

    async fn commit(self: Box<Self>) -> Result<Effects, StoreError> {
        let Self {
            mut unit,
            mut measured,
        } = *self;
        measured.statements = unit.take_slowest_statements();
        // Until the reply, the outcome is unknown.
        measured.outcome = Outcome::Unknown;
        let began = Instant::now();
        let result = unit.commit().await;
        let took = began.elapsed();
        measured.metrics.commit.record(took);
        measured.commit = Some(took);
        measured.outcome = Outcome::of_commit(&result);
        result
    }

    async fn rollback(mut self: Box<Self>) {
        self.measured.statements = self.unit.take_slowest_statements();
        self.unit.rollback().await;
    }
}

/// Registers the gauges of the store's connections, which are read when the metrics are rendered.
pub(crate) fn register_pools(metrics: &Metrics, store: &Arc<dyn Store>) {
    let pools = Arc::clone(store);
    metrics.observe_gauge(&CONNECTIONS, move || {
        let states = |pool: PoolState| {
            [("in-use", pool.in_use), ("idle", pool.idle)].map(|(state, number)| {
                number.map(|number| Sample::new([pool.name, state], number as f64))
            })
        };
        pools
            .pools()
            .into_iter()
            .flat_map(states)
            .flatten()
            .collect()
    });
    let pools = Arc::clone(store);
    metrics.observe_gauge(&LIMIT, move || {
        let limit = |pool: PoolState| Sample::new([pool.name], pool.limit as f64);
        pools.pools().into_iter().map(limit).collect()
    });
    let pools = Arc::clone(store);
    metrics.observe_gauge(&WAITING, move || {
        let waiting = |pool: PoolState| {
            let number = pool.waiting?;
            Some(Sample::new([pool.name], number as f64))
        };
        pools.pools().into_iter().filter_map(waiting).collect()
    });
}

/// Registers the gauge of the store's cells, which is read when the metrics are rendered.
pub(crate) fn register_cells(metrics: &Metrics, store: &Arc<dyn Store>) {
    let store = Arc::clone(store);
    metrics.observe_gauge(&CELL_REACHED, move || {
        let reached = |cell: CellState| {
            let value = if cell.is_reached { 1.0 } else { 0.0 };
            Sample::new([cell.name], value)
        };
        store.cells().into_iter().map(reached).collect()
    });
}

#[cfg(test)]
mod tests {
    use core_domain::kernel::{OutboxId, Timestamp};
    use core_domain::port::transact;
    use core_domain::shared::OutboxMessage;
    use core_domain::testing::SeededEntropy;
    use core_domain::testing::{ManualClock, RecordKey};
    use core_storage::memory::{MemoryConfig, open};
    use serde_json::json;

    use super::*;

    /// Creates the error of a commit.
    type NewError = fn() -> StoreError;

    /// A store whose commits fail with a scripted error.
    #[derive(Debug)]
    struct Failing(Arc<dyn Store>, NewError);

    struct FailingUnit(Box<dyn UnitOfWork>, NewError);

    #[async_trait]
    impl Store for Failing {
        async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError> {
            if mode == Mode::ReadCommitted {
                return Err(StoreError::unavailable("no connection"));
            }
            Ok(Box::new(FailingUnit(self.0.begin(mode).await?, self.1)))
        }

        async fn back_off(&self, _: u32) {}
    }

    #[async_trait]
    impl UnitOfWork for FailingUnit {
        async fn now(&mut self) -> Result<Timestamp, StoreError> {
            self.0.now().await
        }

        fn effects(&mut self) -> &mut Effects {
            self.0.effects()
        }

        fn repositories(&mut self, key: RecordKey) -> &mut dyn Repositories {
            self.0.repositories(key)
        }

        async fn commit(self: Box<Self>) -> Result<Effects, StoreError> {
            Err(self.1())
        }

        async fn rollback(self: Box<Self>) {}
    }

    fn memory() -> Arc<dyn Store> {
        open(MemoryConfig {
            clock: Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000))),
            cursor_key: [1; 32].into(),
        })
    }

    fn store_with_metrics(store: Arc<dyn Store>) -> (Metrics, MeteredStore) {
        let metrics = Metrics::new();
        let store = MeteredStore::new(store, &metrics, Duration::from_secs(1));
        (metrics, store)
    }

    /// Returns the value of a series, which must be rendered.
    fn value(metrics: &Metrics, series: &str) -> f64 {
        let text = metrics.render();
        let value = text.lines().find_map(|line| line.strip_prefix(series));
        let value = value.and_then(|value| value.trim().parse().ok());
        value.unwrap_or_else(|| panic!("{series} is missing: {text}"))
    }

    fn units(metrics: &Metrics, mode: &str, outcome: &str) -> f64 {
        let labels = format!("{{mode=\"{mode}\",outcome=\"{outcome}\"}}");
        value(metrics, &format!("core_store_units_total{labels}"))
    }

    #[tokio::test(start_paused = true)]
    async fn every_end_of_a_unit_is_counted_once() {
        let (metrics, store) = store_with_metrics(memory());
        drop(store.begin(Mode::Read).await.unwrap());
        store.begin(Mode::Write).await.unwrap().rollback().await;
        let unit = store.begin(Mode::Write).await.unwrap();
        assert_eq!(
            value(&metrics, "core_store_units_open{mode=\"write\"}"),
            1.0
        );
        tokio::time::advance(Duration::from_secs(3)).await;
        unit.commit().await.unwrap();
        assert_eq!(units(&metrics, "read", "rolled-back"), 1.0);
        assert_eq!(units(&metrics, "write", "rolled-back"), 1.0);
        assert_eq!(units(&metrics, "write", "committed"), 1.0);
        for mode in ["auto", "read", "write", "read-committed"] {
            let open = format!("core_store_units_open{{mode=\"{mode}\"}}");
            assert_eq!(value(&metrics, &open), 0.0);
        }
        let duration = "core_store_unit_duration_seconds";
        assert_eq!(
            value(&metrics, &format!("{duration}_sum{{mode=\"write\"}}")),
            3.0
        );
        assert_eq!(
            value(&metrics, &format!("{duration}_count{{mode=\"write\"}}")),
            2.0
        );
        assert_eq!(
            value(&metrics, "core_store_commit_duration_seconds_count"),
            1.0
        );
    }

    #[tokio::test]
    async fn failures_are_counted_by_their_kind() {
        let cases: [(NewError, &str); 3] = [
            (|| StoreError::unavailable("the disk is full"), "failed"),
            (|| StoreError::commit_unknown("no reply"), "unknown"),
            (|| StoreError::retry("a conflict"), "conflict"),
        ];
        for (error, outcome) in cases {
            let (metrics, store) = store_with_metrics(Arc::new(Failing(memory(), error)));
            let committed = store.begin(Mode::Write).await.unwrap().commit().await;
            assert!(committed.is_err());
            assert_eq!(units(&metrics, "write", outcome), 1.0, "{outcome}");
            assert!(store.begin(Mode::ReadCommitted).await.is_err());
            assert_eq!(units(&metrics, "read-committed", "failed"), 1.0);
        }
    }

    #[tokio::test]
    async fn a_unit_that_is_run_again_is_counted_as_a_retry() {
        let conflict = || StoreError::retry("a conflict");
        let (metrics, store) = store_with_metrics(Arc::new(Failing(memory(), conflict)));
        let run = transact(&store, |_, _| Box::pin(async { Ok(()) })).await;
        assert!(run.is_err());
        let conflicts = units(&metrics, "write", "conflict");
        assert!(conflicts > 1.0);
        assert_eq!(value(&metrics, "core_store_retries_total"), conflicts - 1.0);
    }

    #[tokio::test]
    async fn a_metered_unit_writes_like_the_unit_itself() {
        let (_, store) = store_with_metrics(memory());
        let now = Timestamp::from_seconds(1_800_000_000);
        let message = &OutboxMessage {
            id: OutboxId::generate(now, &SeededEntropy::new(1)),
            topic: "thing".to_owned(),
            payload: json!({}),
            attempts: 0,
            run_at: now,
            created_at: now,
        };
        let written = transact(&store, |uow, _| {
            Box::pin(async move {
                let repositories = uow.repositories(RecordKey::for_tests());
                repositories
                    .outbox_messages()
                    .insert(message.clone())
                    .await?;
                Ok(())
            })
        });
        written.await.unwrap();
        let mut unit = store.begin(Mode::Read).await.unwrap();
        let messages = unit.repositories(RecordKey::for_tests()).outbox_messages();
        let within = core_domain::port::Within::Installation;
        let found = messages.get(within, message.id.as_str()).await.unwrap();
        assert_eq!(
            found.map(|found| found.topic.clone()),
            Some("thing".to_owned())
        );
    }

    #[test]
    fn the_log_shows_slow_statements_with_their_durations_and_cuts_long_ones() {
        let statement = |text: &str, millis| StatementTime {
            text: text.into(),
            duration: Duration::from_millis(millis),
        };
        let long = "x".repeat(400);
        let statements = [statement("SELECT $1", 1_200), statement(&long, 3)];
        let text = statements_text(&statements);
        assert!(text.starts_with("1.2s SELECT $1; 3.0ms xxx"), "{text}");
        assert!(text.ends_with("x..") && text.len() < 340, "{text}");
    }
}
