//! Statements of a host program in a unit of work of the suite: both are committed, or neither.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use core_domain::kernel::{Error, StoreError};
use core_domain::port::{Mode, Store, UnitOfWork, Within, transact};
use core_domain::shared::StoredResponse;
use core_domain::testing::RecordKey;
use core_sqlx::SqlxConfig;
use core_sqlx::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use core_sqlx::sqlx::{self, Connection, PgPool};
use core_storage::sqlite::{self, SqliteConfig};
use core_storage::testing::{self, TestDatabase};
use core_suite::units::{enlist_sqlite, enlist_sqlx};
use core_testkit::manual_clock;
use futures_util::future::join_all;
use tempfile::TempDir;

use crate::world::Backend;

const KEY: [u8; 32] = [7; 32];
const ORDERS: &str = "CREATE TABLE orders (article TEXT NOT NULL PRIMARY KEY)";
const INSERT: &str = "INSERT INTO orders VALUES ($1)";
const COUNT: &str = "SELECT COUNT(*) FROM orders";

/// A store, and a table of the host program in its database.
struct Host {
    store: Arc<dyn Store>,
    database: Database,
}

enum Database {
    Sqlite(TempDir),
    Postgres(
        PgPool,
        #[expect(dead_code, reason = "dropped with the host")] TestDatabase,
    ),
}

impl Host {
    async fn on_sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.sqlite");
        let own = sqlite::rusqlite::Connection::open(&path).unwrap();
        own.execute_batch(ORDERS).unwrap();
        let config = SqliteConfig::new(path, manual_clock(), KEY);
        Self {
            store: sqlite::open(config).await.unwrap(),
            database: Database::Sqlite(folder),
        }
    }

    /// Opens a store on a pool with this number of connections, with the tables of the suite in this schema.
    async fn on_sqlx(connections: u32, schema: Option<&str>) -> Self {
        let database = testing::postgres().await;
        let options: PgConnectOptions = database.url.parse().unwrap();
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .connect_lazy_with(options.statement_cache_capacity(1_024));
        sqlx::raw_sql(ORDERS).execute(&pool).await.unwrap();
        let mut config = SqlxConfig::new(pool.clone(), KEY);
        config.schema = schema.map(str::to_owned);
        Self {
            store: core_sqlx::open(config).await.unwrap(),
            database: Database::Postgres(pool, database),
        }
    }

    async fn both() -> [Self; 2] {
        [Self::on_sqlite().await, Self::on_sqlx(8, None).await]
    }

    fn pool(&self) -> &PgPool {
        match &self.database {
            Database::Postgres(pool, _) => pool,
            Database::Sqlite(_) => panic!("the host has no pool"),
        }
    }

    async fn begin(&self) -> Box<dyn UnitOfWork> {
        self.store.begin(Mode::Write).await.unwrap()
    }

    /// Inserts an order in the unit.
    async fn order(&self, unit: &mut dyn UnitOfWork, article: &str) -> Result<(), StoreError> {
        match &self.database {
            Database::Sqlite(_) => {
                enlist_sqlite(unit, |own| own.execute(INSERT, [article]).map(drop)).await
            }
            Database::Postgres(..) => {
                enlist_sqlx(unit, |own, _| {
                    let insert = sqlx::query(INSERT).bind(article);
                    Box::pin(async move { insert.execute(own).await.map(drop) })
                })
                .await
            }
        }
    }

    /// Returns the number of committed orders.
    async fn orders(&self) -> i64 {
        match &self.database {
            Database::Sqlite(folder) => {
                let path = folder.path().join("app.sqlite");
                let own = sqlite::rusqlite::Connection::open(path).unwrap();
                own.query_row(COUNT, [], |row| row.get(0)).unwrap()
            }
            Database::Postgres(pool, _) => {
                let count = sqlx::query_scalar(COUNT).fetch_one(pool);
                count.await.unwrap()
            }
        }
    }

    /// Returns whether the record with this key is committed.
    async fn has_record(&self, key: &str) -> bool {
        let mut unit = self.store.begin(Mode::Auto).await.unwrap();
        let records = unit.repositories(RecordKey::for_tests()).idempotency_keys();
        let found = records.get(Within::Installation, key).await.unwrap();
        found.is_some()
    }
}

/// Adds a record of the suite.
async fn add_record(unit: &mut dyn UnitOfWork, key: &str) -> Result<(), StoreError> {
    let now = unit.now().await?;
    let record = StoredResponse {
        id: key.to_owned(),
        request_hash: String::new(),
        status: 201,
        headers: Vec::new(),
        body: String::new(),
        needs_proof: false,
        created_at: now,
        expires_at: now,
    };
    let records = unit.repositories(RecordKey::for_tests()).idempotency_keys();
    records.insert(record).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_and_a_row_of_the_host_are_committed_together_or_not_at_all() {
    for host in Host::both().await {
        let mut unit = host.begin().await;
        add_record(unit.as_mut(), "a").await.unwrap();
        host.order(unit.as_mut(), "chair").await.unwrap();
        add_record(unit.as_mut(), "b").await.unwrap();
        host.order(unit.as_mut(), "table").await.unwrap();
        unit.commit().await.unwrap();
        assert_eq!(host.orders().await, 2);
        assert!(host.has_record("a").await && host.has_record("b").await);

        let mut unit = host.begin().await;
        add_record(unit.as_mut(), "c").await.unwrap();
        host.order(unit.as_mut(), "lamp").await.unwrap();
        unit.rollback().await;
        let mut unit = host.begin().await;
        host.order(unit.as_mut(), "lamp").await.unwrap();
        add_record(unit.as_mut(), "c").await.unwrap();
        drop(unit);
        assert_eq!(host.orders().await, 2);
        assert!(!host.has_record("c").await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_statement_of_the_host_undoes_the_unit_and_is_not_retried() {
    for host in Host::both().await {
        let mut unit = host.begin().await;
        host.order(unit.as_mut(), "chair").await.unwrap();
        unit.commit().await.unwrap();
        let host = &host;
        let refused = transact(host.store.as_ref(), |unit, _| {
            Box::pin(async move {
                add_record(unit, "a").await?;
                host.order(unit, "chair").await?;
                Ok(())
            })
        });
        let Err(Error::Store(error)) = refused.await else {
            panic!("the article is a duplicate");
        };
        assert!(matches!(error, StoreError::Backend(_)), "{error:?}");
        assert!(!host.has_record("a").await);

        let mut unit = host.begin().await;
        host.order(unit.as_mut(), "chair").await.unwrap_err();
        add_record(unit.as_mut(), "a").await.unwrap_err();
        unit.commit().await.unwrap_err();
        assert!(!host.has_record("a").await);
        assert_eq!(host.orders().await, 1);
    }
}

#[tokio::test]
async fn a_unit_that_does_not_write_runs_no_statement_of_the_host() {
    for host in Host::both().await {
        for mode in [Mode::Auto, Mode::Read] {
            let mut unit = host.store.begin(mode).await.unwrap();
            host.order(unit.as_mut(), "chair").await.unwrap_err();
        }
        assert_eq!(host.orders().await, 0);
    }
}

async fn another_store_refuses(backend: Backend) {
    let opened = backend.open(manual_clock()).await;
    let mut unit = opened.store.begin(Mode::Write).await.unwrap();
    if backend != Backend::Sqlx {
        let enlisted = enlist_sqlx(unit.as_mut(), |_, _| Box::pin(async { Ok(()) })).await;
        assert!(matches!(enlisted, Err(StoreError::Backend(_))));
    } else {
        let enlisted = enlist_sqlite(unit.as_mut(), |_| Ok(())).await;
        assert!(matches!(enlisted, Err(StoreError::Backend(_))));
    }
    unit.commit().await.unwrap_err();
}

#[tokio::test]
async fn a_store_without_such_a_connection_refuses() {
    for backend in Backend::ALL {
        another_store_refuses(backend).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn units_of_the_host_that_conflict_are_run_again() {
    for host in Host::both().await {
        let host = &host;
        let counter = "CREATE TABLE counter (value BIGINT NOT NULL)";
        let insert = "INSERT INTO counter VALUES (0)";
        let mut unit = host.begin().await;
        for statement in [counter, insert] {
            match &host.database {
                Database::Sqlite(_) => {
                    let run = enlist_sqlite(unit.as_mut(), |own| own.execute(statement, []));
                    run.await.map(drop).unwrap();
                }
                Database::Postgres(..) => {
                    let run = enlist_sqlx(unit.as_mut(), |own, _| {
                        Box::pin(async move { sqlx::query(statement).execute(own).await })
                    });
                    run.await.map(drop).unwrap();
                }
            }
        }
        unit.commit().await.unwrap();
        let increments = (0..24).map(|number| async move {
            let key = format!("{number}");
            let key = key.as_str();
            let run = transact(host.store.as_ref(), |unit, _| {
                Box::pin(async move {
                    let value = read_counter(host, unit).await?;
                    add_record(unit, key).await?;
                    write_counter(host, unit, value + 1).await?;
                    Ok(())
                })
            });
            run.await.unwrap();
        });
        join_all(increments).await;
        let mut unit = host.begin().await;
        assert_eq!(read_counter(host, unit.as_mut()).await.unwrap(), 24);
        assert!(host.has_record("0").await && host.has_record("23").await);
    }
}

async fn read_counter(host: &Host, unit: &mut dyn UnitOfWork) -> Result<i64, StoreError> {
    const READ: &str = "SELECT value FROM counter";
    match &host.database {
        Database::Sqlite(_) => {
            enlist_sqlite(unit, |own| own.query_row(READ, [], |row| row.get(0))).await
        }
        Database::Postgres(..) => {
            enlist_sqlx(unit, |own, _| {
                Box::pin(sqlx::query_scalar(READ).fetch_one(own))
            })
            .await
        }
    }
}

async fn write_counter(
    host: &Host,
    unit: &mut dyn UnitOfWork,
    value: i64,
) -> Result<(), StoreError> {
    const WRITE: &str = "UPDATE counter SET value = $1";
    match &host.database {
        Database::Sqlite(_) => {
            enlist_sqlite(unit, |own| own.execute(WRITE, [value]).map(drop)).await
        }
        Database::Postgres(..) => {
            enlist_sqlx(unit, |own, _| {
                let write = sqlx::query(WRITE).bind(value);
                Box::pin(async move { write.execute(own).await.map(drop) })
            })
            .await
        }
    }
}

/// Runs concurrent units, every tenth of which also runs one of these statements, which fails. Returns which units were
/// committed. Checks that each outcome is true.
async fn run_group(host: &Host, failing: &[(&'static str, bool)]) -> Vec<bool> {
    let mut unit = host.begin().await;
    host.order(unit.as_mut(), "first").await.unwrap();
    unit.commit().await.unwrap();
    let units = (0..10 * failing.len()).map(|number| async move {
        let mut unit = host.begin().await;
        let key = format!("{number}");
        add_record(unit.as_mut(), &key).await?;
        host.order(unit.as_mut(), &key).await?;
        if number % 10 == 9 {
            let (statement, is_cached) = failing[number / 10];
            let ended = enlist_sqlite(unit.as_mut(), |own| match is_cached {
                true => own.prepare_cached(statement)?.execute([]),
                false => own.execute(statement, []),
            });
            assert!(ended.await.is_err(), "{statement}");
        }
        unit.commit().await.map(drop)
    });
    let outcomes: Vec<Result<(), StoreError>> = join_all(units).await;
    let mut committed = Vec::new();
    for (number, outcome) in outcomes.iter().enumerate() {
        if let Err(error) = outcome {
            assert!(error.is_certainly_not_applied(), "{error:?}");
        }
        let is_committed = host.has_record(&number.to_string()).await;
        assert_eq!(is_committed, outcome.is_ok(), "{number}: {outcome:?}");
        committed.push(is_committed);
    }
    let orders = committed.iter().filter(|committed| **committed).count();
    assert_eq!(host.orders().await, i64::try_from(orders).unwrap() + 1);
    committed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_on_sqlite_cannot_end_the_transaction_of_a_group() {
    let host = Host::on_sqlite().await;
    let refused = [
        ("COMMIT", false),
        ("ROLLBACK", false),
        ("BEGIN", false),
        ("RELEASE unit", false),
        ("ROLLBACK TO Unit", false),
        ("RELEASE host", false),
    ];
    let committed = run_group(&host, &refused).await;
    let others = committed.iter().enumerate();
    assert!(
        others
            .into_iter()
            .all(|(number, committed)| *committed == (number % 10 != 9))
    );
}

/// SQLite itself rolls the transaction back, with all units of the group.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_that_sqlite_makes_for_a_host_fails_the_group_and_is_reported() {
    let undoing = [
        ("INSERT OR ROLLBACK INTO orders VALUES ('first')", false),
        // Prepared by the engine, so it needs no authorization.
        ("COMMIT", true),
    ];
    for failing in undoing {
        let host = Host::on_sqlite().await;
        run_group(&host, &[failing]).await;
        let mut unit = host.begin().await;
        add_record(unit.as_mut(), "next").await.unwrap();
        unit.commit().await.unwrap();
    }
}

#[tokio::test]
async fn a_transaction_of_a_host_on_sqlx_is_a_savepoint() {
    let host = Host::on_sqlx(1, None).await;
    let order = |article: &'static str, commits: bool| {
        let host = &host;
        async move {
            let mut unit = host.begin().await;
            add_record(unit.as_mut(), article).await.unwrap();
            let enlisted = enlist_sqlx(unit.as_mut(), |own, _| {
                Box::pin(async move {
                    let mut kept = own.begin().await?;
                    let insert = sqlx::query(INSERT).bind(article);
                    insert.execute(&mut *kept).await?;
                    kept.commit().await?;
                    let mut undone = own.begin().await?;
                    let again = sqlx::query(INSERT).bind(article);
                    again.execute(&mut *undone).await.unwrap_err();
                    undone.rollback().await
                })
            });
            enlisted.await.unwrap();
            match commits {
                true => unit.commit().await.map(drop).unwrap(),
                false => unit.rollback().await,
            }
        }
    };
    order("chair", false).await;
    assert_eq!(host.orders().await, 0);
    order("chair", true).await;
    assert_eq!(host.orders().await, 1);
    assert!(host.has_record("chair").await);
    // The driver knows that no transaction is open on the connection.
    let mut own = host.pool().acquire().await.unwrap();
    assert!(!own.is_in_transaction());
    let mut transaction = own.begin().await.unwrap();
    let insert = sqlx::query(INSERT).bind("table").execute(&mut *transaction);
    insert.await.unwrap();
    transaction.rollback().await.unwrap();
    drop(own);
    assert_eq!(host.orders().await, 1);
}

#[tokio::test]
async fn a_host_on_sqlx_that_ends_the_transaction_fails_the_unit() {
    let host = Host::on_sqlx(2, None).await;
    for ending in ["COMMIT", "ROLLBACK", "SELECT 1 / 0"] {
        let mut unit = host.begin().await;
        add_record(unit.as_mut(), ending).await.unwrap();
        let enlisted = enlist_sqlx(unit.as_mut(), |own, _| {
            Box::pin(async move {
                // The host ignores the error of its statement.
                let _ = sqlx::raw_sql(ending).execute(own).await;
                Ok(())
            })
        });
        let error = enlisted.await.expect_err(ending);
        // What the host has committed cannot be undone.
        assert_eq!(error.is_certainly_not_applied(), ending == "SELECT 1 / 0");
        assert_eq!(host.has_record(ending).await, ending == "COMMIT");
        add_record(unit.as_mut(), "b").await.unwrap_err();
        unit.commit().await.unwrap_err();
        assert!(!host.has_record("b").await);
        let own = host.pool().acquire().await.unwrap();
        assert!(!own.is_in_transaction());
    }
}

#[tokio::test]
async fn a_host_on_sqlx_sees_its_own_search_path() {
    let host = Host::on_sqlx(2, Some("core_suite")).await;
    // A table with the name of one of the suite.
    let own = "CREATE TABLE idempotency_keys (article TEXT NOT NULL)";
    sqlx::raw_sql(own).execute(host.pool()).await.unwrap();
    let mut unit = host.begin().await;
    let enlisted = enlist_sqlx(unit.as_mut(), |own, _| {
        Box::pin(async move {
            let insert = sqlx::query("INSERT INTO idempotency_keys VALUES ('chair')");
            insert.execute(&mut *own).await?;
            sqlx::query_scalar("SELECT current_setting('search_path')")
                .fetch_one(own)
                .await
        })
    });
    let path: String = enlisted.await.unwrap();
    assert!(!path.contains("core_suite"), "{path}");
    add_record(unit.as_mut(), "a").await.unwrap();
    host.order(unit.as_mut(), "chair").await.unwrap();
    unit.commit().await.unwrap();
    assert!(host.has_record("a").await);
    let rows = sqlx::query_scalar("SELECT COUNT(*) FROM public.idempotency_keys");
    let rows: i64 = rows.fetch_one(host.pool()).await.unwrap();
    assert_eq!((rows, host.orders().await), (1, 1));
}

/// Cancels a unit after each number of polls, so that every await is a point of cancellation.
#[tokio::test]
async fn a_unit_of_a_host_on_sqlx_can_be_cancelled_at_any_point() {
    let host = Host::on_sqlx(1, None).await;
    for polls in 1..60 {
        let work = async {
            let mut unit = host.begin().await;
            add_record(unit.as_mut(), "a").await.unwrap();
            host.order(unit.as_mut(), "chair").await.unwrap();
            add_record(unit.as_mut(), "b").await.unwrap();
            unit.rollback().await;
        };
        let mut work = pin!(work);
        let mut left = polls;
        std::future::poll_fn(|cx| {
            left -= 1;
            match work.as_mut().poll(cx) {
                Poll::Pending if left > 0 => Poll::Pending,
                _ => Poll::Ready(()),
            }
        })
        .await;
    }
    for _ in 0..60 {
        assert_eq!(host.orders().await, 0);
        let own = host.pool().acquire().await.unwrap();
        assert!(!own.is_in_transaction());
    }
    assert!(!host.has_record("a").await);
}
