//! Completes the records of home about a platform before it moves. A process without cells writes none of them, and the rows
//! that it wrote at home would not be found in another cell.

use std::collections::BTreeSet;
use std::time::Duration;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use core_domain::registry::Platform;
use tokio::time::sleep;

use super::cell_set::CellSet;
use super::config::HOME;
use super::directory::{self, NO_ORGANIZATION, ORGANIZATION};
use super::tables::{PLATFORMS, UNIQUE_VALUES};
use super::transfer::scopes;
use super::unique_values;
use crate::copy::Scope;
use crate::filter::Filter;
use crate::query::Select;
use crate::row_store::{RowTx, copies};
use crate::table::{PLATFORM, Table};
use crate::tabular::Tabular;
use crate::value::{ReadRow, Row, Value};

/// The number of rows that are checked together.
const SLICE: u32 = 1_000;

/// Maximum number of attempts for a row that other units use.
const MAX_ATTEMPTS: u32 = 5;

/// The pause before the next attempt.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Records at home the organization of a platform in this cell, and the unique values of its rows that are not recorded.
pub(super) async fn backfill(
    cells: &CellSet,
    source: usize,
    platform: &str,
) -> Result<(), StoreError> {
    for scope in scopes(platform) {
        let is_platform = scope.table.name == Platform::TABLE.name;
        if !is_platform && !unique_values::has_any(scope.table) {
            continue;
        }
        let mut after = None;
        loop {
            let rows = read_slice(cells, source, &scope, after).await?;
            let Some(last) = rows.last() else {
                break;
            };
            after = Some(key_of(last));
            let known = known_values(cells, scope.table, &rows).await?;
            let is_complete = |row: &&Row| {
                let values = unique_values::of_row(scope.table, row);
                !is_platform && values.iter().all(|value| known.contains(value.id()))
            };
            for row in rows.iter().filter(|row| !is_complete(row)) {
                backfill_row(cells, source, scope.table, key_of(row)).await?;
            }
        }
    }
    forget_removed(cells, platform).await
}

/// Records that a platform without a row has no organization: it was removed, and only its log is left.
async fn forget_removed(cells: &CellSet, platform: &str) -> Result<(), StoreError> {
    let unknown = Filter::eq(PLATFORMS.key(), platform).and(Filter::IsNull(ORGANIZATION));
    let set = [(ORGANIZATION, Value::text(NO_ORGANIZATION))];
    let _turn = cells.take_turn().await;
    let mut home = cells.rows(HOME).begin(Mode::ReadCommitted).await?;
    home.update(&PLATFORMS, &unknown, &set).await?;
    home.commit().await
}

fn key_of(row: &Row) -> Value {
    row.first().cloned().unwrap_or(Value::Null)
}

async fn read_slice(
    cells: &CellSet,
    source: usize,
    scope: &Scope,
    after: Option<Value>,
) -> Result<Vec<Row>, StoreError> {
    let mut select = Select::of(scope.table)
        .filter(scope.filter.clone())
        .limit(SLICE);
    select.after = after.map(|key| vec![key]);
    let mut unit = cells.rows(source).begin(Mode::Auto).await?;
    copies(unit.as_mut(), &select).await
}

/// Returns the ids of those unique values of the rows that home has with their platform.
async fn known_values(
    cells: &CellSet,
    table: &'static Table,
    rows: &[Row],
) -> Result<BTreeSet<String>, StoreError> {
    let values = rows.iter();
    let values = values.flat_map(|row| unique_values::of_row(table, row));
    let ids = values.map(|value| Value::text(value.id())).collect();
    let known = Filter::In(UNIQUE_VALUES.key(), ids).and(Filter::NotNull(PLATFORM));
    let mut unit = cells.rows(HOME).begin(Mode::Auto).await?;
    let known = copies(unit.as_mut(), &Select::of(&UNIQUE_VALUES).filter(known)).await?;
    let ids = known.iter();
    let ids = ids.filter_map(|row| row.first()?.as_text().map(str::to_owned));
    Ok(ids.collect())
}

/// Records what home lacks about a row. Tries again if another unit has the row.
async fn backfill_row(
    cells: &CellSet,
    source: usize,
    table: &'static Table,
    key: Value,
) -> Result<(), StoreError> {
    let mut attempts = MAX_ATTEMPTS;
    loop {
        attempts -= 1;
        match backfill_locked(cells, source, table, &key).await {
            Err(StoreError::Retry(_)) if attempts > 0 => sleep(RETRY_PAUSE).await,
            outcome => return outcome,
        }
    }
}

/// Records what home lacks about a row. The row is locked, so that its values cannot be released in the meantime.
async fn backfill_locked(
    cells: &CellSet,
    source: usize,
    table: &'static Table,
    key: &Value,
) -> Result<(), StoreError> {
    let _turn = cells.take_turn().await;
    let mut leaving = cells.rows(source).begin(Mode::ReadCommitted).await?;
    let mut found = None;
    let mut visit = |row: &dyn ReadRow| {
        found = Some(table.copy_row(row)?);
        Ok(())
    };
    leaving.lock(table, key, &mut visit).await?;
    let Some(row) = found else {
        leaving.rollback().await;
        return Ok(());
    };
    if source == HOME {
        record(leaving.as_mut(), table, &row).await?;
        return leaving.commit().await;
    }
    let mut home = cells.rows(HOME).begin(Mode::ReadCommitted).await?;
    record(home.as_mut(), table, &row).await?;
    home.commit().await?;
    leaving.rollback().await;
    Ok(())
}

async fn record(home: &mut dyn RowTx, table: &'static Table, row: &Row) -> Result<(), StoreError> {
    for value in unique_values::of_row(table, row) {
        let new = unique_values::row(&value);
        let platform = new.get(1).cloned().unwrap_or(Value::Null);
        home.insert_new(&UNIQUE_VALUES, vec![new]).await?;
        let without_platform = Filter::eq(UNIQUE_VALUES.key(), value.id());
        let without_platform = without_platform.and(Filter::IsNull(PLATFORM));
        let set = [(PLATFORM, platform)];
        home.update(&UNIQUE_VALUES, &without_platform, &set).await?;
    }
    if table.name == Platform::TABLE.name {
        directory::set_organization(home, row).await?;
    }
    Ok(())
}
