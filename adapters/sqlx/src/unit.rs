//! A unit of work on a connection of the pool.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::{HostStatements, Mode};
use core_storage::Visit;
use core_storage::sql::postgres::{PostgresError, RunError, UuidTexts, begin, now};
use core_storage::sql::{Cost, Executor, Statement};
use futures_util::TryStreamExt;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection, PgPool, Row};
use tokio::time::timeout;

use crate::config::SqlxConfig;
use crate::error::run_error;
use crate::lease::{Lease, Work};
use crate::schema::search_path;
use crate::values::{Answer, arguments};

/// Opens the transaction of a read that is not bounded, and of every read if the suite has a schema of its own.
const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY";

/// The pool and the settings that the units of a store share.
pub(crate) struct StoreInner {
    pub(crate) pool: PgPool,
    /// The statement that sets the search path of the suite; `None` if it is the one of the host program.
    pub(crate) search_path: Option<String>,
    /// The statements that open a unit of each mode.
    openings: Openings,
    /// Maximum wait for a reply; `None` means no limit.
    answer_timeout: Option<Duration>,
}

/// The statements that open a unit. They return its time, the id of the server's process, and the search path of the host
/// program.
struct Openings {
    auto: Arc<str>,
    read: Arc<str>,
    write: Arc<str>,
    read_committed: Arc<str>,
}

impl Openings {
    fn new(settings: &str) -> Self {
        let opening = |mode| {
            let begin = begin(mode).unwrap_or(BEGIN_READ);
            let now = now();
            let text = format!(
                "{begin}; SELECT ({now}), pg_backend_pid(), current_setting('search_path'); {settings}"
            );
            text.into()
        };
        Self {
            auto: opening(Mode::Auto),
            read: opening(Mode::Read),
            write: opening(Mode::Write),
            read_committed: opening(Mode::ReadCommitted),
        }
    }

    fn of(&self, mode: Mode) -> Arc<str> {
        let opening = match mode {
            Mode::Auto => &self.auto,
            Mode::Read => &self.read,
            Mode::Write => &self.write,
            Mode::ReadCommitted => &self.read_committed,
        };
        opening.clone()
    }
}

impl std::fmt::Debug for StoreInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The options of the pool contain the password.
        f.debug_struct("StoreInner")
            .field("connections", &self.pool.size())
            .finish_non_exhaustive()
    }
}

impl StoreInner {
    pub(crate) fn new(config: &SqlxConfig) -> Self {
        let settings = config.timeouts.settings();
        let settings = settings
            .iter()
            .map(|(name, value)| format!("SET LOCAL {name} = {value}"));
        let search_path = config.schema.as_deref().map(search_path);
        let settings: Vec<String> = settings.chain(search_path.clone()).collect();
        Self {
            pool: config.pool.clone(),
            search_path,
            openings: Openings::new(&settings.join("; ")),
            answer_timeout: config.timeouts.answer_timeout(config.answer_margin),
        }
    }

    /// Waits for the reply to a statement, up to the limit.
    async fn wait_for_reply<T>(
        &self,
        work: impl Future<Output = Result<T, RunError>>,
    ) -> Result<T, RunError> {
        match self.answer_timeout {
            Some(limit) => {
                let answered = timeout(limit, work).await;
                answered.unwrap_or(Err(RunError::TimedOut))
            }
            None => work.await,
        }
    }
}

/// The properties of an open transaction, which the statements that open a unit return.
struct OpenTransaction {
    now: Timestamp,
    process: i32,
    host_search_path: String,
}

impl OpenTransaction {
    fn read(row: &PgRow) -> Option<Self> {
        let text = |at: usize| row.try_get_raw(at).ok()?.as_str().ok().map(str::to_owned);
        Some(Self {
            now: Timestamp::from_millis(text(0)?.parse().ok()?),
            process: text(1)?.parse().ok()?,
            host_search_path: text(2)?,
        })
    }
}

/// A unit of work: a transaction, or single reads without one. A transaction that is dropped is rolled back.
pub(crate) struct Unit {
    shared: Arc<StoreInner>,
    lease: Lease,
    mode: Mode,
    state: State,
    now: Option<Timestamp>,
    /// The search path of the host program, once the transaction is open.
    host_search_path: String,
    /// The number of lost idle connections that may still be replaced. 0 after the first statement.
    replacements_left: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// No transaction yet.
    Before,
    Open,
}

async fn open(connection: &mut PgConnection, text: Arc<str>) -> Result<OpenTransaction, RunError> {
    let rows = sqlx::raw_sql(AssertSqlSafe(text)).fetch_all(connection);
    let rows = rows.await.map_err(run_error)?;
    let opened = rows.first().and_then(OpenTransaction::read);
    opened.ok_or_else(|| RunError::Visit(StoreError::backend("the time could not be read")))
}

async fn execute(
    connection: &mut PgConnection,
    statement: &Statement<'_>,
) -> Result<u64, RunError> {
    let arguments = arguments(statement).map_err(RunError::Visit)?;
    let query = sqlx::query_with(AssertSqlSafe(statement.text.clone()), arguments);
    let done = query.execute(connection).await.map_err(run_error)?;
    Ok(done.rows_affected())
}

/// Runs a query and passes its rows to the visitor. Sets `shown` once a row was passed. The text is that of the
/// statement, or a variant of it.
async fn fetch(
    connection: &mut PgConnection,
    text: Arc<str>,
    statement: &Statement<'_>,
    visit: Visit<'_>,
    shown: &mut bool,
) -> Result<(), RunError> {
    let arguments = arguments(statement).map_err(RunError::Visit)?;
    let query = sqlx::query_with(AssertSqlSafe(text), arguments);
    let (mut rows, mut uuids) = (query.fetch(connection), UuidTexts::default());
    while let Some(row) = rows.try_next().await.map_err(run_error)? {
        *shown = true;
        let row = Answer::new(&row, statement.columns, &mut uuids);
        visit(&row.map_err(RunError::Visit)?).map_err(RunError::Visit)?;
    }
    Ok(())
}

/// Returns whether the error means that the transaction, or the savepoint in it, does not exist any more.
fn is_ended(error: &PostgresError) -> bool {
    matches!(error.sqlstate(), Some("25P01" | "3B001"))
}

/// Runs statements of the host program in a savepoint, with its search path. Afterwards `own` sets the search path of the
/// suite. There is no limit for all of them together; the server limits each statement.
async fn run_host(
    connection: &mut PgConnection,
    host_search_path: Option<&str>,
    own: Option<&str>,
    statements: &mut dyn HostStatements,
) -> Result<(), RunError> {
    let mut savepoint = connection.begin().await.map_err(run_error)?;
    if let Some(path) = host_search_path {
        let set = sqlx::query("SELECT set_config('search_path', $1, true)").bind(path);
        set.execute(&mut *savepoint).await.map_err(run_error)?;
    }
    let connection: &mut PgConnection = &mut savepoint;
    let ran = statements.run(connection).await;
    ran.map_err(RunError::Visit)?;
    if let Some(own) = own {
        let set = sqlx::raw_sql(AssertSqlSafe(own)).execute(&mut *savepoint);
        set.await.map_err(run_error)?;
    }
    // Fails if the host program has ended the transaction, or if one of its statements has failed.
    savepoint.commit().await.map_err(|error| {
        let error = run_error(error);
        match &error {
            RunError::Driver(reported) if is_ended(reported) => {
                let text = "the host program has ended the transaction of the unit";
                RunError::Visit(StoreError::commit_unknown(text))
            }
            _ => error,
        }
    })
}

impl Unit {
    /// Creates a unit that opens its transaction with its first statement.
    pub(crate) async fn begin(shared: &Arc<StoreInner>, mode: Mode) -> Result<Self, StoreError> {
        Ok(Self {
            lease: Lease::acquire(&shared.pool).await?,
            shared: shared.clone(),
            mode,
            state: State::Before,
            now: None,
            host_search_path: String::new(),
            replacements_left: shared.pool.size().saturating_add(1),
        })
    }

    /// Records the outcome of a statement.
    fn record_outcome<T>(&mut self, outcome: Result<T, RunError>) -> Result<T, StoreError> {
        self.replacements_left = 0;
        // The driver is in an unknown state after a reply that did not arrive.
        self.lease.work = Work::None;
        outcome.map_err(|error| {
            if error.is_lost() {
                self.lease.forget();
            }
            error.into_failure()
        })
    }

    /// Replaces a connection that was lost while it was idle. Returns whether to run the statement again.
    async fn has_reconnected<T>(
        &mut self,
        outcome: &Result<T, RunError>,
    ) -> Result<bool, StoreError> {
        // After a reply that timed out, the caller does not wait a second time.
        let is_lost = |error: &RunError| error.is_lost() && !error.is_timed_out();
        if self.replacements_left == 0 || !outcome.as_ref().is_err_and(is_lost) {
            return Ok(false);
        }
        self.replacements_left -= 1;
        self.lease.reconnect().await?;
        Ok(true)
    }

    /// Opens the transaction, unless it is open.
    async fn open(&mut self) -> Result<(), StoreError> {
        if self.state == State::Open {
            return Ok(());
        }
        let text = self.shared.openings.of(self.mode);
        let shared = self.shared.clone();
        let outcome = loop {
            self.lease.work = Work::Statement;
            self.lease.in_transaction = true;
            let connection = self.lease.connection()?;
            let outcome = shared.wait_for_reply(open(connection, text.clone())).await;
            if !self.has_reconnected(&outcome).await? {
                break outcome;
            }
        };
        let opened = self.record_outcome(outcome)?;
        self.state = State::Open;
        self.now = Some(opened.now);
        self.lease.process = Some(opened.process);
        self.host_search_path = opened.host_search_path;
        Ok(())
    }

    /// Returns whether the statement needs no transaction. It then runs with the settings of the host program.
    fn is_single_read(&self, statement: &Statement<'_>) -> bool {
        self.mode == Mode::Auto
            && self.state == State::Before
            && statement.cost == Cost::Bounded
            && self.shared.search_path.is_none()
    }

    /// Runs a query without a transaction.
    async fn fetch_single(
        &mut self,
        statement: &Statement<'_>,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        // The plan of a prepared statement depends on the settings with which it was made. A different text keeps plans
        // with sequential scans out of serializable transactions.
        let text: Arc<str> = format!("{} -- single", statement.text).into();
        let shared = self.shared.clone();
        let mut shown = false;
        let outcome = loop {
            self.lease.work = Work::Statement;
            let connection = self.lease.connection()?;
            let fetched = fetch(connection, text.clone(), statement, &mut *visit, &mut shown);
            let outcome = shared.wait_for_reply(fetched).await;
            if shown || !self.has_reconnected(&outcome).await? {
                break outcome;
            }
        };
        self.record_outcome(outcome)
    }
}

impl Executor for Unit {
    async fn execute(&mut self, statement: &Statement<'_>) -> Result<u64, StoreError> {
        self.open().await?;
        self.lease.work = Work::Statement;
        let shared = self.shared.clone();
        let connection = self.lease.connection()?;
        let outcome = shared.wait_for_reply(execute(connection, statement)).await;
        self.record_outcome(outcome)
    }

    async fn fetch(
        &mut self,
        statement: &Statement<'_>,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        if self.is_single_read(statement) {
            return self.fetch_single(statement, visit).await;
        }
        self.open().await?;
        self.lease.work = Work::Statement;
        let shared = self.shared.clone();
        let connection = self.lease.connection()?;
        let text = statement.text.clone();
        let mut shown = false;
        let fetched = fetch(connection, text, statement, visit, &mut shown);
        let outcome = shared.wait_for_reply(fetched).await;
        self.record_outcome(outcome)
    }

    async fn now(&mut self) -> Result<Option<Timestamp>, StoreError> {
        if self.mode != Mode::Auto {
            self.open().await?;
        }
        Ok(self.now)
    }

    async fn enlist(&mut self, statements: &mut dyn HostStatements) -> Result<(), StoreError> {
        self.open().await?;
        self.lease.work = Work::Statement;
        let counted = self.lease.count_transaction().await;
        self.record_outcome(counted)?;
        self.lease.work = Work::Statement;
        let own = self.shared.search_path.clone();
        let host = own.is_some().then_some(&*self.host_search_path);
        let connection = self.lease.connection()?;
        let outcome = run_host(connection, host, own.as_deref(), statements).await;
        self.record_outcome(outcome)
    }

    async fn commit(mut self) -> Result<(), StoreError> {
        // A unit that changed nothing is rolled back without waiting for the reply.
        if self.state == State::Before || matches!(self.mode, Mode::Auto | Mode::Read) {
            return Ok(());
        }
        self.lease.work = Work::Commit;
        let shared = self.shared.clone();
        let outcome = shared.wait_for_reply(self.lease.commit()).await;
        self.lease.work = Work::None;
        match outcome {
            Ok(()) => {
                self.lease.in_transaction = false;
                Ok(())
            }
            Err(error) => {
                if error.is_lost() {
                    self.lease.forget();
                }
                Err(error.into_commit_failure())
            }
        }
    }

    async fn rollback(self) {}
}
