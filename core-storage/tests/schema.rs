//! The migrations make exactly what the tables describe, and the descriptions make sense.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]
#![cfg(all(feature = "conformance", feature = "sqlite", feature = "postgres"))]

use std::collections::BTreeSet;
use std::sync::Arc;

use core_domain::kernel::{ManualClock, Timestamp};
use core_storage::postgres::{self, PostgresConfig};
use core_storage::sql::ddl::{Dialect, create};
use core_storage::sqlite::{self, SqliteConfig};
use core_storage::{Table, Type, VERSION, tables, testing};
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};

const KEY: [u8; 32] = [7; 32];
const ADVICE: &str = "migrations and tables differ: print a table's SQL with `cargo run -p core-storage \
     --features sqlite --example ddl -- <sqlite|postgres> <table>` and bring the migration in line";

fn described(dialect: Dialect) -> String {
    let tables = tables::all();
    let texts = tables
        .into_iter()
        .map(|table| create(table, dialect, false));
    texts.collect::<Vec<_>>().join("\n")
}

/// Columns and indexes, a line each.
async fn sqlite_schema(path: &std::path::Path) -> BTreeSet<String> {
    let mut connection =
        SqliteConnection::connect(&format!("sqlite://{}?mode=rwc", path.display()))
            .await
            .unwrap();
    let columns = "SELECT m.name || '.' || c.cid || ' ' || c.name || ' ' || c.type || ' ' || c.\"notnull\" || ' ' || c.pk \
         FROM sqlite_schema m JOIN pragma_table_xinfo(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' \
         AND m.name <> 'schema_migrations'";
    let strict = "SELECT name || ' strict ' || strict FROM pragma_table_list \
         WHERE schema = 'main' AND name NOT LIKE 'sqlite%' AND name <> 'schema_migrations'";
    let indexes = "SELECT sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL";
    let mut schema = BTreeSet::new();
    for question in [columns, strict, indexes] {
        let lines: Vec<String> = sqlx::query_scalar(AssertSqlSafe(question))
            .fetch_all(&mut connection)
            .await
            .unwrap();
        schema.extend(lines);
    }
    connection.close().await.unwrap();
    schema
}

#[tokio::test]
async fn sqlite_migrations_make_the_described_schema() {
    let folder = tempfile::tempdir().unwrap();
    let (migrated, fresh) = (folder.path().join("migrated"), folder.path().join("fresh"));
    let clock = Arc::new(ManualClock::at(Timestamp::EPOCH));
    let store = sqlite::open(SqliteConfig::new(&migrated, clock, KEY));
    drop(store.await.expect("migrations run"));
    let mut connection =
        SqliteConnection::connect(&format!("sqlite://{}?mode=rwc", fresh.display()))
            .await
            .unwrap();
    let text = AssertSqlSafe(described(Dialect::Sqlite));
    sqlx::raw_sql(text).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let (migrated, fresh) = (sqlite_schema(&migrated).await, sqlite_schema(&fresh).await);
    assert_eq!(migrated, fresh, "{ADVICE}");
}

async fn postgres_schema(url: &str) -> BTreeSet<String> {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let columns = "SELECT format('%s.%s %s %s %s %s', table_name, ordinal_position, column_name, data_type, \
         is_nullable, collation_name) FROM information_schema.columns \
         WHERE table_schema = 'public' AND table_name <> 'schema_migrations'";
    let indexes = "SELECT indexdef FROM pg_indexes \
         WHERE schemaname = 'public' AND tablename <> 'schema_migrations'";
    let mut schema = BTreeSet::new();
    for question in [columns, indexes] {
        let lines: Vec<String> = sqlx::query_scalar(AssertSqlSafe(question))
            .fetch_all(&mut connection)
            .await
            .unwrap();
        schema.extend(lines);
    }
    connection.close().await.unwrap();
    schema
}

#[tokio::test]
async fn postgres_migrations_make_the_described_schema() {
    let (migrated, fresh) = (testing::postgres().await, testing::postgres().await);
    let store = postgres::open(PostgresConfig::new(&*migrated.url, KEY));
    drop(store.await.expect("migrations run"));
    let mut connection = PgConnection::connect(&fresh.url).await.unwrap();
    let text = AssertSqlSafe(described(Dialect::Postgres));
    sqlx::raw_sql(text).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let migrated = postgres_schema(&migrated.url).await;
    assert_eq!(migrated, postgres_schema(&fresh.url).await, "{ADVICE}");
}

fn known(table: &Table, column: &str) -> bool {
    table.columns.iter().any(|c| c.name == column)
}

#[test]
fn every_table_is_described_soundly() {
    let tables = tables::all();
    let names: BTreeSet<_> = tables.iter().map(|table| table.name).collect();
    assert_eq!(names.len(), tables.len(), "table names differ");
    for table in tables {
        let name = table.name;
        let columns: BTreeSet<_> = table.columns.iter().map(|c| c.name).collect();
        assert_eq!(columns.len(), table.columns.len(), "{name}: columns differ");
        let (first, last) = (
            table.columns.first().unwrap(),
            table.columns.last().unwrap(),
        );
        assert!(
            first.kind == Type::Text && !first.nullable,
            "{name}: the key is text"
        );
        assert_eq!(last.name, VERSION, "{name}");
        let indexes = table.indexes.iter().copied();
        let uniques = table.uniques.iter().map(|unique| unique.columns);
        for columns in indexes.chain(uniques) {
            assert!(
                columns.iter().all(|c| known(table, c)),
                "{name}: {columns:?}"
            );
            // Postgres cuts longer names off.
            let index = format!("{name}_by_{}", columns.join("_"));
            assert!(index.len() <= 63, "{index} is too long for Postgres");
        }
        for unique in table.uniques {
            assert!(unique.name != "key", "{name}: `key` means the key itself");
            assert!(
                unique.filter().check(table).is_ok(),
                "{name}.{}",
                unique.name
            );
        }
        assert!(
            table.parent.is_none_or(|parent| known(table, parent)),
            "{name}: parent"
        );
    }
}
