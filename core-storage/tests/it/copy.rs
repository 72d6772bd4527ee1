//! Copies of all rows between stores.

use std::sync::Arc;

use core_domain::kernel::Timestamp;
use core_domain::port::Mode;
use core_domain::testing::{ManualClock, named_uuid};
use core_storage::copy::{CopyError, CopyStart, TableDigest, copy_rows, digest_rows};
use core_storage::postgres::{self, PostgresConfig};
use core_storage::sqlite::{self, SqliteConfig};
use core_storage::testing::{self, TestDatabase};
use core_storage::{Filter, Row, RowStore, Table, Type, VERSION, Value, memory, tables};
use tempfile::TempDir;

const KEY: [u8; 32] = [7; 32];

/// Number of rows of a table, a multiple of the page size and a number that is not.
const COUNTS: [usize; 3] = [1_000, 1_234, 3];

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::EPOCH))
}

fn in_memory() -> Arc<dyn RowStore> {
    memory::rows(clock())
}

async fn on_sqlite() -> (Arc<dyn RowStore>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let config = SqliteConfig::new(folder.path().join("core.db"), clock(), KEY);
    (sqlite::rows(config, &[]).await.unwrap(), folder)
}

async fn on_postgres() -> (Arc<dyn RowStore>, TestDatabase) {
    let database = testing::postgres().await;
    let config = PostgresConfig::new(&database.url, KEY);
    (postgres::rows(config, &[]).await.unwrap(), database)
}

/// Returns a row whose values differ from those of all other rows. Some nullable columns are NULL.
fn row(table: &Table, number: usize) -> Row {
    let columns = table.columns.iter().enumerate();
    let value = |(at, column): (usize, &core_storage::Column)| {
        if column.nullable && (at + number).is_multiple_of(3) {
            return Value::Null;
        }
        match column.kind {
            _ if column.name == VERSION => Value::Int(1 + number as i64 % 3),
            Type::Uuid => Value::text(&named_uuid(&format!("{number:05}-{at:02}"))),
            Type::Text => Value::text(&format!("{}-{number:05}-\u{e4}'\u{1f980}", column.name)),
            Type::Json => Value::text(&format!(r#"{{"a":[{number},1E2,null],"\u00e4":"'"}}"#)),
            Type::Bool => Value::Bool(number.is_multiple_of(2)),
            _ => Value::Int(number as i64 * 1_000_003 - 5_000),
        }
    };
    columns.map(value).collect()
}

/// Fills every table: the first ones with many rows, the others with a few.
async fn fill(store: &dyn RowStore) {
    for (at, table) in tables::of_records().into_iter().enumerate() {
        let count = COUNTS[at.min(COUNTS.len() - 1)];
        let rows: Vec<Row> = (0..count).map(|number| row(table, number)).collect();
        let mut unit = store.begin(Mode::Write).await.unwrap();
        for rows in rows.chunks(400) {
            unit.insert_many(table, rows.to_vec()).await.unwrap();
        }
        unit.commit().await.unwrap();
    }
}

async fn copy(
    from: &dyn RowStore,
    to: &dyn RowStore,
    start: CopyStart,
) -> Result<Vec<TableDigest>, CopyError> {
    let mut last = None;
    let copied = copy_rows(from, to, start, &mut |progress| last = Some(progress)).await?;
    let last = last.unwrap();
    assert_eq!(last.complete_tables + 1, last.tables);
    assert_eq!(copied, digest_rows(to).await.unwrap());
    Ok(copied)
}

#[tokio::test]
async fn every_engine_gives_equal_rows_equal_digests_through_a_chain_of_copies() {
    let memory = in_memory();
    fill(memory.as_ref()).await;
    let (sqlite, _folder) = on_sqlite().await;
    let (postgres, _database) = on_postgres().await;
    let (second, _second_folder) = on_sqlite().await;
    let last = in_memory();
    let stores = [&memory, &sqlite, &postgres, &second, &last];
    let expected = digest_rows(memory.as_ref()).await.unwrap();
    assert_eq!(expected[0].rows, 1_000);
    assert_eq!(expected.len(), tables::of_records().len());
    for pair in stores.windows(2) {
        let copied = copy(pair[0].as_ref(), pair[1].as_ref(), CopyStart::Empty)
            .await
            .unwrap();
        assert_eq!(copied, expected);
    }
}

/// Returns the first table whose rows can be changed.
fn changeable() -> &'static Table {
    let mut all = tables::of_records().into_iter();
    all.find(|table| !table.append_only).unwrap()
}

#[tokio::test]
async fn a_resumed_copy_inserts_changes_and_deletes_what_differs() {
    let source = in_memory();
    fill(source.as_ref()).await;
    let (destination, _folder) = on_sqlite().await;
    let first = copy(source.as_ref(), destination.as_ref(), CopyStart::Empty);
    first.await.unwrap();

    // The source goes on, and a part of the copy is missing, as after an interruption.
    let table = changeable();
    let keys: Vec<Value> = [3, 499, 500, 700, 999]
        .map(|number| row(table, number).remove(0))
        .to_vec();
    let mut unit = source.begin(Mode::Write).await.unwrap();
    unit.delete(table, &Filter::In(table.key(), keys))
        .await
        .unwrap();
    unit.insert_many(table, vec![row(table, 40_000)])
        .await
        .unwrap();
    unit.commit().await.unwrap();
    let mut unit = destination.begin(Mode::Write).await.unwrap();
    for table in tables::of_records()
        .into_iter()
        .filter(|table| !table.append_only)
    {
        let first = Filter::le(table.key(), row(table, 1).remove(0));
        unit.delete(table, &first).await.unwrap();
        let mut changed = row(table, 2);
        let with_key = Filter::eq(table.key(), changed[0].clone());
        unit.delete(table, &with_key).await.unwrap();
        *changed.last_mut().unwrap() = Value::Int(77);
        unit.insert_many(table, vec![changed]).await.unwrap();
    }
    unit.commit().await.unwrap();

    let again = copy(source.as_ref(), destination.as_ref(), CopyStart::Resumed);
    assert_eq!(
        again.await.unwrap(),
        digest_rows(source.as_ref()).await.unwrap()
    );
}

#[tokio::test]
async fn a_destination_with_records_is_refused_unchanged() {
    let (source, other) = (in_memory(), in_memory());
    fill(source.as_ref()).await;
    let log = tables::of_records()
        .into_iter()
        .find(|table| table.append_only);
    let log = log.unwrap();
    let mut unit = other.begin(Mode::Write).await.unwrap();
    unit.insert_many(log, vec![row(log, 9_999)]).await.unwrap();
    unit.commit().await.unwrap();
    let before = digest_rows(other.as_ref()).await.unwrap();
    let refused = copy(source.as_ref(), other.as_ref(), CopyStart::Empty).await;
    assert!(matches!(refused, Err(CopyError::NotEmpty(table)) if table == log.name));
    assert_eq!(digest_rows(other.as_ref()).await.unwrap(), before);
    // An entry of the log that the source does not have shows that this is no part of a copy.
    let refused = copy(source.as_ref(), other.as_ref(), CopyStart::Resumed).await;
    assert!(matches!(refused, Err(CopyError::OtherInstallation(table)) if table == log.name));
}

#[tokio::test]
async fn a_copy_has_one_state_of_a_source_that_changes_meanwhile() {
    let (source, _folder) = on_sqlite().await;
    fill(source.as_ref()).await;
    let destination = in_memory();
    let before = digest_rows(source.as_ref()).await.unwrap();
    let table = *tables::of_records().last().unwrap();
    let (writing, mut number) = (Arc::clone(&source), 50_000);
    let mut write_before_each_table = |_| {
        number += 1;
        let (writing, row) = (Arc::clone(&writing), row(table, number));
        let written = async move {
            let mut unit = writing.begin(Mode::Write).await.unwrap();
            unit.insert_many(table, vec![row]).await.unwrap();
            unit.commit().await.unwrap();
        };
        std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            runtime.enable_all().build().unwrap().block_on(written);
        })
        .join()
        .unwrap();
    };
    let copied = copy_rows(
        source.as_ref(),
        destination.as_ref(),
        CopyStart::Empty,
        &mut write_before_each_table,
    );
    assert_eq!(copied.await.unwrap(), before);
    assert_ne!(digest_rows(source.as_ref()).await.unwrap(), before);
}
