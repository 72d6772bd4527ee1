//! The store meets the contract of an engine, and treats errors like the engine on tokio-postgres.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use core_sqlx::SqlxConfig;
use core_storage::conformance::{ITEMS, TABLES, item};
use core_storage::fault::FaultStore;
use core_storage::sql::postgres::PostgresError;
use core_storage::{Filter, RecordStore, RowStore, Table, Value, conformance, testing};

use crate::world::{KEY, add, count, open, pool, store};

async fn conforms(rows: Arc<dyn RowStore>) {
    conformance::run(rows.clone()).await;
    conformance::records(Arc::new(RecordStore::new(rows, KEY))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_conforms() {
    let database = testing::postgres().await;
    conforms(store(&database, 16).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_conforms_in_a_schema_of_its_own() {
    let database = testing::postgres().await;
    let mut config = SqlxConfig::new(pool(&database.url, 16), KEY);
    config.schema = Some("core_suite".to_owned());
    conforms(Arc::new(FaultStore::new(open(config).await))).await;
}

#[tokio::test]
async fn the_store_is_durable_over_a_restart() {
    let database = testing::postgres().await;
    conformance::restart(|| store(&database, 4)).await;
}

#[tokio::test]
async fn concurrent_starts_migrate_once_and_the_other_engine_finds_the_same_schema() {
    let database = testing::postgres().await;
    let open = || core_sqlx::rows(SqlxConfig::new(pool(&database.url, 2), KEY), TABLES);
    let (a, b, c) = tokio::join!(open(), open(), open());
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    add(&a.unwrap(), "1").await.unwrap();
    let config = core_storage::postgres::PostgresConfig::new(&*database.url, KEY);
    let other = core_storage::postgres::rows(config, TABLES).await.unwrap();
    assert_eq!(count(&other).await.unwrap(), 1);
}

#[tokio::test]
async fn an_invalid_schema_name_is_refused() {
    let database = testing::postgres().await;
    let mut config = SqlxConfig::new(pool(&database.url, 2), KEY);
    config.schema = Some("a; DROP SCHEMA public".to_owned());
    let opened = core_sqlx::rows(config, &[]).await;
    assert!(matches!(opened, Err(StoreError::Backend(_))));
}

#[tokio::test]
async fn a_connection_that_is_lost_while_idle_is_replaced() {
    let database = testing::postgres().await;
    let options = database.url.parse().unwrap();
    let pool = sqlx::postgres::PgPoolOptions::new()
        .test_before_acquire(false)
        .connect_lazy_with(options);
    let store = open(SqlxConfig::new(pool, KEY)).await;
    database.end_connections().await;
    add(&store, "1").await.expect("a unit that writes begins");
    database.end_connections().await;
    assert_eq!(count(&store).await.expect("a count runs"), 1);
    database.end_connections().await;
    let mut tx = store.begin(Mode::Auto).await.unwrap();
    tx.now().await.expect("a single read runs");
}

#[tokio::test]
async fn a_lost_connection_leaves_the_outcome_unknown_only_in_commit() {
    let database = testing::postgres().await;
    let store = store(&database, 4).await;
    for committing in [false, true] {
        let mut tx = store.begin(Mode::Write).await.expect("a unit begins");
        tx.delete(&ITEMS, &Filter::all())
            .await
            .expect("the connection works");
        database.end_connections().await;
        let error = if committing {
            tx.commit().await.expect_err("the reply is lost")
        } else {
            let counted = tx.count(&ITEMS, &Filter::all()).await;
            counted.expect_err("the connection is lost")
        };
        let expected = match committing {
            false => matches!(error, StoreError::Unavailable(_)),
            true => matches!(error, StoreError::CommitUnknown(_)),
        };
        assert!(expected, "{error}");
        assert_eq!(error.is_certainly_not_applied(), !committing);
        let source = error.source();
        assert!(source.is_some_and(|cause| cause.is::<PostgresError>()));
    }
}

#[tokio::test]
async fn a_unit_that_waits_too_long_for_a_lock_must_be_retried() {
    let database = testing::postgres().await;
    let mut config = SqlxConfig::new(pool(&database.url, 4), KEY);
    config.timeouts.lock = Duration::from_millis(50);
    let store = open(config).await;
    add(&store, "1").await.unwrap();
    let change = [("rank", Value::Int(1))];
    let by_key = Filter::eq("id", "sqlx-1");
    let mut first = store.begin(Mode::ReadCommitted).await.unwrap();
    assert_eq!(first.update(&ITEMS, &by_key, &change).await.unwrap(), 1);
    let mut second = store.begin(Mode::ReadCommitted).await.unwrap();
    let waited = second.update(&ITEMS, &by_key, &change).await;
    assert!(matches!(waited, Err(StoreError::Retry(_))), "{waited:?}");
    first.commit().await.unwrap();
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_ended_and_its_connection_reused() {
    let database = testing::postgres().await;
    let mut config = SqlxConfig::new(pool(&database.url, 2), KEY);
    config.timeouts.statement = Duration::from_millis(50);
    let store = open(config).await;
    add(&store, "1").await.unwrap();
    let locker = testing::connect(&database.url).await;
    let lock = "BEGIN; LOCK TABLE conformance_items IN ACCESS EXCLUSIVE MODE";
    locker.batch_execute(lock).await.unwrap();
    for _ in 0..4 {
        let error = count(&store).await.expect_err("the table is locked");
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    }
    locker.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(count(&store).await.unwrap(), 1);
}

/// A table that does not exist in the database.
static MISSING: Table = Table {
    name: "missing",
    columns: ITEMS.columns,
    uniques: &[],
    indexes: &[],
    parent: None,
    append_only: false,
    archive: None,
};

/// Runs a failing call in a new unit, and drops the unit.
async fn fail(store: &Arc<dyn RowStore>, round: u64) -> StoreError {
    let mut tx = store.begin(Mode::Write).await.unwrap();
    let failed = match round % 3 {
        0 => tx.count(&MISSING, &Filter::all()).await.map(drop),
        1 => tx.delete(&MISSING, &Filter::all()).await.map(drop),
        _ => {
            let rows = vec![item("sqlx", "missing", 0)];
            tx.append(&MISSING, rows).await.unwrap();
            tx.commit().await
        }
    };
    failed.unwrap_err()
}

#[tokio::test]
async fn a_failed_unit_leaves_no_state_on_its_connection() {
    let database = testing::postgres().await;
    let store = store(&database, 1).await;
    for round in 0..6 {
        let error = fail(&store, round).await;
        assert!(matches!(error, StoreError::Backend(_)), "{error:?}");
        add(&store, &round.to_string()).await.unwrap();
        assert_eq!(count(&store).await.unwrap(), round + 1);
    }
}

#[tokio::test]
async fn a_unit_leaves_the_session_of_the_host_program_as_it_was() {
    let database = testing::postgres().await;
    let pool = pool(&database.url, 1);
    let mut config = SqlxConfig::new(pool.clone(), KEY);
    config.schema = Some("core_suite".to_owned());
    let settings = || async {
        let settings = sqlx::query_as(
            "SELECT current_setting('search_path'), current_setting('enable_seqscan'), \
             current_setting('statement_timeout')",
        );
        let settings: (String, String, String) = settings.fetch_one(&pool).await.unwrap();
        settings
    };
    let before = settings().await;
    let store = open(config).await;
    add(&store, "1").await.unwrap();
    count(&store).await.unwrap();
    for mode in [Mode::Auto, Mode::Read, Mode::Write, Mode::ReadCommitted] {
        let mut tx = store.begin(mode).await.unwrap();
        tx.count(&ITEMS, &Filter::all()).await.unwrap();
        drop(tx);
        assert_eq!(settings().await, before, "{mode:?}");
    }
    let transactions = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND state LIKE 'idle in transaction%'";
    let open: i64 = sqlx::query_scalar(transactions)
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(open, 0);
}
