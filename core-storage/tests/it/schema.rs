//! The migrations lead to exactly the described schema, and the descriptions are valid.

use std::collections::BTreeSet;
use std::sync::Arc;

use core_domain::kernel::Timestamp;
use core_domain::testing::ManualClock;
use core_storage::postgres::{self, PostgresConfig};
use core_storage::sql::ddl::{Dialect, create, indexes};
use core_storage::sqlite::{self, SqliteConfig};
use core_storage::testing::{self, postgres_schema, sqlite_schema};
use core_storage::{Filter, Index, IndexPredicate, Table, Type, VERSION, tables};
use rusqlite::Connection as Sqlite;

const KEY: [u8; 32] = [7; 32];
const ADVICE: &str = "migrations and tables differ: write the migration with `cargo run -p core-storage \
     --features sqlite --bin write-migration -- <name>`";

fn schema_sql(dialect: Dialect) -> String {
    let tables = tables::all().into_iter();
    tables.map(|table| create(table, dialect, false)).collect()
}

#[tokio::test]
async fn sqlite_migrations_lead_to_the_described_schema() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("migrated.db");
    let clock = Arc::new(ManualClock::at(Timestamp::EPOCH));
    let store = sqlite::open(SqliteConfig::new(&path, clock, KEY));
    drop(store.await.expect("migrations run"));
    let migrated = Sqlite::open(&path).unwrap();
    let fresh = Sqlite::open_in_memory().unwrap();
    fresh.execute_batch(&schema_sql(Dialect::Sqlite)).unwrap();
    assert_eq!(
        sqlite_schema(&migrated).unwrap(),
        sqlite_schema(&fresh).unwrap(),
        "{ADVICE}"
    );
}

#[tokio::test]
async fn postgres_migrations_lead_to_the_described_schema() {
    let (migrated, fresh) = (testing::postgres().await, testing::postgres().await);
    let store = postgres::open(PostgresConfig::new(&*migrated.url, KEY));
    drop(store.await.expect("migrations run"));
    let migrated = testing::connect(&migrated.url).await;
    for table in tables::all().iter().filter(|table| table.append_only) {
        let name = table.name;
        // The deletion of archived rows is allowed, so another test deletes rows that are not archived.
        let delete = table.archive.is_none();
        let delete = delete.then(|| format!("DELETE FROM {name}"));
        let changes = [
            format!("UPDATE {name} SET row_version = 2"),
            format!("TRUNCATE {name}"),
        ];
        for change in changes.into_iter().chain(delete) {
            let refused = migrated.batch_execute(&change).await.unwrap_err();
            let why = refused.as_db_error().unwrap().message();
            assert!(why.contains("never changed or deleted"), "{why}");
        }
    }
    let fresh = testing::connect(&fresh.url).await;
    let described = schema_sql(Dialect::Postgres);
    fresh.batch_execute(&described).await.unwrap();
    assert_eq!(
        postgres_schema(&migrated).await.unwrap(),
        postgres_schema(&fresh).await.unwrap(),
        "{ADVICE}"
    );
}

#[tokio::test]
async fn sqlite_refuses_changes_of_append_only_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("migrated.db");
    let clock = Arc::new(ManualClock::at(Timestamp::EPOCH));
    let store = sqlite::open(SqliteConfig::new(&path, clock, KEY));
    drop(store.await.expect("migrations run"));
    let migrated = Sqlite::open(&path).unwrap();
    assert_eq!(migrated.execute(ENTRIES, []).unwrap(), 2);
    for has_archive in [false, true] {
        if has_archive {
            migrated.execute(ARCHIVE, []).unwrap();
        }
        for change in [
            "UPDATE audit_entries SET actor_id = 'eve'",
            "DELETE FROM audit_entries",
        ] {
            let refused = migrated.execute(change, []).unwrap_err().to_string();
            assert!(refused.contains("never changed or deleted"), "{refused}");
        }
    }
    assert_eq!(migrated.execute(DELETE_ARCHIVED, []).unwrap(), 1);
}

#[tokio::test]
async fn postgres_refuses_to_delete_rows_that_are_not_archived() {
    let migrated = testing::postgres().await;
    let store = postgres::open(PostgresConfig::new(&*migrated.url, KEY));
    drop(store.await.expect("migrations run"));
    let migrated = testing::connect(&migrated.url).await;
    assert_eq!(migrated.execute(ENTRIES, &[]).await.unwrap(), 2);
    for has_archive in [false, true] {
        if has_archive {
            migrated.execute(ARCHIVE, &[]).await.unwrap();
        }
        let refused = migrated.batch_execute("DELETE FROM audit_entries").await;
        let refused = refused.unwrap_err();
        let why = refused.as_db_error().unwrap().message();
        assert!(why.contains("before they are archived"), "{why}");
    }
    assert_eq!(migrated.execute(DELETE_ARCHIVED, &[]).await.unwrap(), 1);
}

/// Inserts an entry of the first instant and one of the second.
const ENTRIES: &str = "INSERT INTO audit_entries (id, stream, actor_id, actor_type, action, entity_type, entity_id, \
    metadata, created_at, row_version) VALUES \
    ('00000000-0001-7000-8000-000000000000', 'changes', 'ada', 'user', 'x.y', 'x', '1', '{}', 1, 1), \
    ('00000000-0002-7000-8000-000000000000', 'changes', 'ada', 'user', 'x.y', 'x', '1', '{}', 2, 1)";

/// Inserts an archive that contains the entry of the first instant.
const ARCHIVE: &str = "INSERT INTO audit_archives (month, keys_before, after, position, feed_position, feed_hash, digest, \
    previous, archived_at, jws, row_version) VALUES ('2026-11', '00000000-0002', 0, 1, 0, '', '', '', 0, '', 1)";

/// Deletes the entry of the first instant.
const DELETE_ARCHIVED: &str =
    "DELETE FROM audit_entries WHERE id < '00000000-0002-7000-8000-000000000000'";

#[test]
fn sqlite_counts_rows_that_are_not_deleted_by_a_covering_index() {
    let database = Sqlite::open_in_memory().unwrap();
    database
        .execute_batch(&schema_sql(Dialect::Sqlite))
        .unwrap();
    let mut counted = 0;
    for table in tables::all() {
        let hides = |index: &&Index| index.includes.contains(&"deleted_at");
        for index in table.indexes.iter().filter(hides) {
            // All columns except the last are fixed; the last is the order of the page.
            let (_, fixed) = index.columns.split_last().unwrap();
            let fixed: String = fixed.iter().map(|c| format!("\"{c}\" = ? AND ")).collect();
            let count = format!(
                "EXPLAIN QUERY PLAN SELECT COUNT(*) FROM {} WHERE {fixed}deleted_at IS NULL",
                table.name
            );
            let mut plan = database.prepare(&count).unwrap();
            let mut rows = plan.raw_query();
            let step: String = rows.next().unwrap().unwrap().get("detail").unwrap();
            assert!(step.contains("USING COVERING INDEX"), "{count}: {step}");
            counted += 1;
        }
    }
    assert!(counted > 0, "something is hidden when it is deleted");
}

fn has_column(table: &Table, column: &str) -> bool {
    table.columns.iter().any(|c| c.name == column)
}

#[test]
fn every_table_description_is_valid() {
    let tables = tables::all();
    let names: BTreeSet<_> = tables.iter().map(|table| table.name).collect();
    assert_eq!(names.len(), tables.len(), "table names differ");
    let mut index_names = BTreeSet::new();
    for table in tables {
        let name = table.name;
        let columns: BTreeSet<_> = table.columns.iter().map(|c| c.name).collect();
        assert_eq!(columns.len(), table.columns.len(), "{name}: columns differ");
        let (first, last) = (
            table.columns.first().unwrap(),
            table.columns.last().unwrap(),
        );
        assert!(
            matches!(first.kind, Type::Text | Type::Uuid) && !first.nullable,
            "{name}: the key is text or a UUID"
        );
        assert_eq!(last.name, VERSION, "{name}");
        let indexed = table.indexes.iter();
        let column_lists = indexed.flat_map(|index| [index.columns, index.includes]);
        let uniques = table.uniques.iter().map(|unique| unique.columns);
        for columns in column_lists.chain(uniques) {
            let known = columns.iter().all(|column| has_column(table, column));
            assert!(known, "{name}: {columns:?}");
        }
        for index in indexes(table) {
            // Postgres truncates longer names.
            let index = index.name;
            assert!(index.len() <= 63, "{index} is too long for Postgres");
            assert!(index_names.insert(index.clone()), "{index} exists twice");
        }
        for index in table.indexes {
            let known = index.predicates.iter().copied();
            let known = known
                .map(Filter::of_index)
                .all(|predicate| predicate.check(table).is_ok());
            assert!(known, "{name}: {index:?}");
        }
        for unique in table.uniques {
            assert!(unique.name != "key", "{name}: `key` means the key itself");
            assert!(
                Filter::covered_by(unique).check(table).is_ok(),
                "{name}.{}",
                unique.name
            );
        }
        assert!(
            table.parent.is_none_or(|parent| has_column(table, parent)),
            "{name}: parent"
        );
    }
}

#[test]
fn exactly_one_index_starts_with_the_parent_column() {
    let tables = tables::all();
    let tree = tables
        .iter()
        .find(|table| table.name == "entities")
        .unwrap();
    const DECLARED: [&[Index]; 4] = [
        &[],
        &[Index::on(&["platform_id", "created_at"])],
        &[Index::on(&["parent_id", "created_at"])],
        &[Index::on(&["created_at"]).filter_by(&[IndexPredicate::IsNull("parent_id")])],
    ];
    for declared in DECLARED {
        let table = Table {
            name: tree.name,
            columns: tree.columns,
            uniques: &[],
            indexes: declared,
            parent: Some("parent_id"),
            append_only: false,
            archive: None,
        };
        let names = indexes(&table).into_iter().map(|index| index.name);
        let of_parent = names.filter(|name| name.starts_with("entities_by_parent_id"));
        assert_eq!(of_parent.count(), 1, "{declared:?}");
    }
}
