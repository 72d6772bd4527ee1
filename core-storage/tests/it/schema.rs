//! The migrations lead to exactly the described schema, and the descriptions are valid.

use std::collections::BTreeSet;
use std::sync::Arc;

use core_domain::kernel::Timestamp;
use core_domain::testing::ManualClock;
use core_storage::postgres::{self, PostgresConfig};
use core_storage::sql::ddl::{Dialect, create, indexes};
use core_storage::sql::migrations;
use core_storage::sqlite::{self, SqliteConfig};
use core_storage::testing::{self, postgres_schema, sqlite_schema};
use core_storage::{Filter, Index, IndexPredicate, Table, Type, VERSION, tables};
use rusqlite::Connection as Sqlite;

const KEY: [u8; 32] = [7; 32];
const ADVICE: &str = "migrations and tables differ: write the migration with `cargo run -p core-storage \
     --features sqlite --bin write-migration -- <name>`";

fn described(dialect: Dialect) -> String {
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
    fresh.execute_batch(&described(Dialect::Sqlite)).unwrap();
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
        for change in [
            format!("UPDATE {name} SET row_version = 2"),
            format!("DELETE FROM {name}"),
            format!("TRUNCATE {name}"),
        ] {
            let refused = migrated.batch_execute(&change).await.unwrap_err();
            let why = refused.as_db_error().unwrap().message();
            assert!(why.contains("never changed or deleted"), "{why}");
        }
    }
    let fresh = testing::connect(&fresh.url).await;
    let described = described(Dialect::Postgres);
    fresh.batch_execute(&described).await.unwrap();
    assert_eq!(
        postgres_schema(&migrated).await.unwrap(),
        postgres_schema(&fresh).await.unwrap(),
        "{ADVICE}"
    );
}

/// The migration stages entries that were written before seals existed, so that they are sealed.
#[tokio::test]
async fn the_migration_stages_entries_that_have_no_seal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("earlier.db");
    let earlier = Sqlite::open(&path).unwrap();
    earlier.execute_batch(migrations::MIGRATIONS_TABLE).unwrap();
    let all = migrations::pending(&[], Dialect::Sqlite).unwrap();
    // Seals exist since 0012. Since 0013 entries without a seal are in a separate table.
    for migration in all.iter().take_while(|migration| migration.name < "0013") {
        if migration.name.starts_with("0012") {
            insert_entry(&earlier, "earlier");
        }
        earlier.execute_batch(migration.text).unwrap();
        let noted = (migration.name, &migration.checksum);
        let done = earlier.execute(migrations::NOTE_MIGRATION, noted);
        assert_eq!(done.unwrap(), 1);
    }
    insert_entry(&earlier, "sealed");
    drop(earlier);
    let clock = Arc::new(ManualClock::at(Timestamp::EPOCH));
    let store = sqlite::open(SqliteConfig::new(&path, clock, KEY));
    drop(store.await.expect("migrations run"));
    let updated = Sqlite::open(&path).unwrap();
    for (table, expected) in [
        ("unsealed_audit_entries", "earlier"),
        ("audit_entries", "sealed"),
    ] {
        let ids = format!("SELECT group_concat(id || ':' || action) FROM {table}");
        let ids = updated.query_row(&ids, [], |row| row.get(0));
        assert_eq!(ids, Ok(format!("{expected}:x.y")), "{table}");
    }
    for change in [
        "UPDATE audit_entries SET actor_id = 'eve'",
        "DELETE FROM audit_entries",
    ] {
        let refused = updated.execute(change, []).unwrap_err().to_string();
        assert!(refused.contains("never changed or deleted"), "{refused}");
    }
}

fn insert_entry(database: &Sqlite, id: &str) {
    let entry = "INSERT INTO audit_entries (id, stream, actor_id, actor_type, action, entity_type, entity_id, \
        metadata, created_at, row_version) VALUES (?, 'changes', 'ada', 'user', 'x.y', 'x', '1', '{}', 0, 1)";
    assert_eq!(database.execute(entry, [id]).unwrap(), 1);
}

/// Returns the texts of the migrations before this number, and of the others.
fn migrations_around(number: &str, dialect: Dialect) -> (String, String) {
    let (mut before, mut after) = (String::new(), String::new());
    for migration in migrations::pending(&[], dialect).unwrap() {
        let texts = if migration.name < number {
            &mut before
        } else {
            &mut after
        };
        texts.push_str(migration.text);
    }
    (before, after)
}

/// One lane with two holds and one without, as stored before lanes contained their holds.
const LANES_AND_HOLDS: &str = "
    INSERT INTO job_lanes (lane, state, ready_at, not_before, last_claimed_at, front, tail, queued, next, head_priority,
        row_version) VALUES ('free', 'IDLE', 0, 0, 0, 0, 0, 0, '[]', 0, 1), ('held', 'IDLE', 0, 0, 0, 0, 0, 0, '[]', 0, 1);
    INSERT INTO job_holds (id, scope, source, actor, created_at, row_version) VALUES
        ('2', 'lane:held', 'suspension', 'ada', 2, 1), ('1', 'lane:held', 'operator', 'ada', 1, 1),
        ('3', 'kind:free', 'operator', 'ada', 1, 1);";

const HELD_BY: &str = "SELECT held_by FROM job_lanes ORDER BY lane";

#[tokio::test]
async fn the_migration_adds_their_holds_to_existing_lanes() {
    let expected = ["[]", r#"["operator","suspension"]"#];

    let (before, after) = migrations_around("0021", Dialect::Sqlite);
    let sqlite = Sqlite::open_in_memory().unwrap();
    sqlite.execute_batch(&before).unwrap();
    sqlite.execute_batch(LANES_AND_HOLDS).unwrap();
    sqlite.execute_batch(&after).unwrap();
    let mut held_by = sqlite.prepare(HELD_BY).unwrap();
    let held_by = held_by.query_map([], |row| row.get::<_, String>(0));
    let held_by: Vec<String> = held_by.unwrap().map(Result::unwrap).collect();
    assert_eq!(held_by, expected);

    let (before, after) = migrations_around("0021", Dialect::Postgres);
    let database = testing::postgres().await;
    let postgres = testing::connect(&database.url).await;
    for text in [&*before, LANES_AND_HOLDS, &after] {
        postgres.batch_execute(text).await.unwrap();
    }
    let rows = postgres.query(HELD_BY, &[]).await.unwrap();
    let held_by: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(held_by, expected);
}

#[test]
fn sqlite_counts_rows_that_are_not_deleted_by_a_covering_index() {
    let database = Sqlite::open_in_memory().unwrap();
    database.execute_batch(&described(Dialect::Sqlite)).unwrap();
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

fn known(table: &Table, column: &str) -> bool {
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
            first.kind == Type::Text && !first.nullable,
            "{name}: the key is text"
        );
        assert_eq!(last.name, VERSION, "{name}");
        let indexed = table.indexes.iter();
        let column_lists = indexed.flat_map(|index| [index.columns, index.includes]);
        let uniques = table.uniques.iter().map(|unique| unique.columns);
        for columns in column_lists.chain(uniques) {
            let known = columns.iter().all(|column| known(table, column));
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
            table.parent.is_none_or(|parent| known(table, parent)),
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
        };
        let names = indexes(&table).into_iter().map(|index| index.name);
        let of_parent = names.filter(|name| name.starts_with("entities_by_parent_id"));
        assert_eq!(of_parent.count(), 1, "{declared:?}");
    }
}
