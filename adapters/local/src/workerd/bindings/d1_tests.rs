//! Tests of the D1 limits, without a worker.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::types::Value as SqlValue;
use serde_json::{Value, json};

use super::calls::Calls;
use super::d1_query;
use super::d1_request::Query;
use super::d1_result::RowFormat;
use crate::error::LocalError;
use crate::execution::Execution;
use crate::limits::BindingLimits;
use crate::sqlite;

/// A query prefix that produces endless rows.
const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";

struct World {
    _folder: tempfile::TempDir,
    path: PathBuf,
    limits: BindingLimits,
}

async fn world(limits: BindingLimits) -> World {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("database.sqlite");
    sqlite::create_database(&path, "CREATE TABLE t (x)")
        .await
        .unwrap();
    World {
        _folder: folder,
        path,
        limits,
    }
}

impl World {
    async fn run(&self, sql: &str, params: Vec<SqlValue>) -> Result<Value, LocalError> {
        let call = Calls::new(self.limits).acquire().await.unwrap();
        let execution = Execution::with_shared_threads(self.limits);
        let sql = sql.to_owned();
        let queries = vec![Query { sql, params }];
        let text = d1_query::run(&self.path, &execution, queries, RowFormat::Rows, call).await?;
        Ok(serde_json::from_slice(&text).unwrap())
    }

    async fn rows(&self, sql: &str) -> Result<Value, LocalError> {
        let mut answer = self.run(sql, Vec::new()).await?;
        Ok(answer[0]["results"]["rows"].take())
    }

    /// Returns the message of the limit that a statement exceeds.
    async fn limit_error(&self, sql: &str) -> String {
        match self.rows(sql).await {
            Err(LocalError::Limit(message)) => message,
            other => panic!("{sql}: {other:?}"),
        }
    }

    /// Returns the SQLite message for a refused statement.
    async fn sqlite_error(&self, sql: &str) -> String {
        match self.rows(sql).await {
            Err(LocalError::Sqlite(error)) => error.to_string(),
            other => panic!("{sql}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn endless_select_stops_at_the_row_limit() {
    let world = world(BindingLimits {
        result_rows: 10,
        ..BindingLimits::default()
    })
    .await;
    let message = world
        .limit_error(&format!("{ENDLESS} SELECT i FROM n"))
        .await;
    assert!(message.contains("10 rows"), "{message}");
    let ten = world
        .rows(&format!("{ENDLESS} SELECT i FROM n LIMIT 10"))
        .await;
    assert_eq!(ten.unwrap().as_array().unwrap().len(), 10);
}

#[tokio::test]
async fn endless_select_stops_at_the_size_limit() {
    let world = world(BindingLimits {
        result_rows: usize::MAX,
        result_bytes: 1_000_000,
        ..BindingLimits::default()
    })
    .await;
    for cell in ["hex(randomblob(1000))", "randomblob(1000)", "i"] {
        let message = world
            .limit_error(&format!("{ENDLESS} SELECT {cell} FROM n"))
            .await;
        assert!(message.contains("1000000 bytes"), "{message}");
    }
}

#[tokio::test]
async fn results_respect_the_memory_limit_of_the_worker() {
    let world = world(BindingLimits {
        memory_bytes: 64 * 1024,
        ..BindingLimits::default()
    })
    .await;
    let message = world
        .limit_error(&format!("{ENDLESS} SELECT i FROM n"))
        .await;
    assert!(message.contains("65536 bytes"), "{message}");
}

#[tokio::test]
async fn rows_of_earlier_statements_count_toward_the_limit() {
    let world = world(BindingLimits {
        result_rows: 10,
        ..BindingLimits::default()
    })
    .await;
    let sql = format!("{ENDLESS} SELECT i FROM n; SELECT 1");
    assert!(world.limit_error(&sql).await.contains("10 rows"));
    assert_eq!(
        world.rows("SELECT 1; SELECT 2").await.unwrap(),
        json!([[2]])
    );
    assert_eq!(world.rows("-- nothing").await.unwrap(), json!([]));
}

#[tokio::test]
async fn statement_stops_after_the_call_timeout() {
    let world = world(BindingLimits {
        call_timeout: Duration::from_millis(100),
        ..BindingLimits::default()
    })
    .await;
    let started = Instant::now();
    let endless = [
        format!("{ENDLESS} SELECT count(*) FROM n"),
        format!("{ENDLESS} INSERT INTO t SELECT i FROM n"),
    ];
    for sql in endless {
        let message = world.limit_error(&sql).await;
        assert!(message.contains("0.1 seconds"), "{message}");
    }
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(world.rows("SELECT * FROM t").await.unwrap(), json!([]));
}

#[tokio::test]
async fn statement_stops_after_its_caller_is_dropped() {
    let world = world(BindingLimits::default()).await;
    let sql = format!("{ENDLESS} INSERT INTO t SELECT i FROM n");
    let call = world.run(&sql, Vec::new());
    assert!(
        tokio::time::timeout(Duration::from_millis(100), call)
            .await
            .is_err()
    );
    // The first statement holds the lock until it is stopped.
    let insert = world.run("INSERT INTO t VALUES (1)", Vec::new()).await;
    assert_eq!(insert.unwrap()[0]["meta"]["changes"], 1);
}

#[tokio::test]
async fn database_size_is_limited() {
    let world = world(BindingLimits {
        database_bytes: 100 * 1024,
        ..BindingLimits::default()
    })
    .await;
    let grow = format!("{ENDLESS} INSERT INTO t SELECT randomblob(1000) FROM n");
    let message = world.limit_error(&grow).await;
    assert!(message.contains("102400 bytes"), "{message}");
    world.rows("INSERT INTO t VALUES (1)").await.unwrap();
    assert!(std::fs::metadata(&world.path).unwrap().len() <= 100 * 1024);
}

#[tokio::test]
async fn limits_of_d1_are_enforced() {
    let world = world(BindingLimits::default()).await;
    assert!(world.rows("SELECT length(zeroblob(2000000))").await.is_ok());
    for sql in [
        "SELECT zeroblob(2000001)",
        "SELECT hex(randomblob(1000001))",
        &format!("SELECT {}", "1 + ".repeat(25_000) + "1"),
        &format!("SELECT {}", vec!["1"; 101].join(",")),
        "SELECT ?101",
        "SELECT 1 LIKE '123456789012345678901234567890123456789012345678901'",
    ] {
        assert!(
            world.rows(sql).await.is_err(),
            "{}",
            &sql[..sql.len().min(60)]
        );
    }
    let long = vec![SqlValue::Text("x".repeat(2_000_001))];
    assert!(world.run("SELECT ?", long).await.is_err());
}

#[tokio::test]
async fn statements_cannot_reveal_paths_or_access_other_files() {
    let world = world(BindingLimits::default()).await;
    let path = world.path.to_str().unwrap();
    for sql in [
        "PRAGMA database_list",
        "SELECT * FROM pragma_database_list",
        "SELECT file FROM pragma_database_list()",
        "PRAGMA temp_store_directory = '/tmp'",
        "PRAGMA max_page_count = 1000000000",
        "PRAGMA hard_heap_limit = 1",
        "PRAGMA cache_size = -1000000",
        "PRAGMA query_only = OFF",
        "PRAGMA page_size = 512",
        "PRAGMA journal_mode = OFF",
        "ATTACH '/tmp/other.sqlite' AS other",
        "ATTACH '/tmp/' || 'other.sqlite' AS other",
        "VACUUM INTO '/tmp/copy.sqlite'",
        "SELECT load_extension('/tmp/library')",
        "COMMIT",
        "BEGIN",
        "SAVEPOINT s",
    ] {
        let message = world.sqlite_error(sql).await;
        assert!(!message.contains(path), "{sql}: {message}");
    }
    let missing = World {
        path: world.path.join("none"),
        ..world
    };
    let error = missing.rows("SELECT 1").await.unwrap_err();
    assert!(!error.to_string().contains(missing.path.to_str().unwrap()));
}

#[tokio::test]
async fn d1_pragmas_and_full_text_search_work() {
    let world = world(BindingLimits::default()).await;
    let columns = world.rows("PRAGMA table_info(t)").await.unwrap();
    assert_eq!(columns[0][1], "x");
    let search = "CREATE VIRTUAL TABLE words USING fts5(word); INSERT INTO words VALUES ('plain words'); \
                  SELECT word FROM words('plain')";
    assert_eq!(world.rows(search).await.unwrap(), json!([["plain words"]]));
    world.rows("PRAGMA optimize").await.unwrap();
}

#[tokio::test]
async fn select_does_not_wait_for_writers() {
    let world = world(BindingLimits::default()).await;
    world.rows("INSERT INTO t VALUES (1)").await.unwrap();
    let writer = Connection::open(&world.path).unwrap();
    writer
        .execute_batch("BEGIN IMMEDIATE; DELETE FROM t")
        .unwrap();
    let started = Instant::now();
    assert_eq!(world.rows("SELECT x FROM t").await.unwrap(), json!([[1]]));
    // A statement that needs the write lock waits for five seconds.
    assert!(started.elapsed() < Duration::from_secs(4));
    assert!(world.rows("INSERT INTO t VALUES (2)").await.is_err());
    writer.execute_batch("ROLLBACK").unwrap();
    let both = world
        .rows("SELECT x FROM t; INSERT INTO t VALUES (2) RETURNING x")
        .await;
    assert_eq!(both.unwrap(), json!([[2]]));
}
