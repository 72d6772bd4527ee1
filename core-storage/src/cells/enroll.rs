//! The first use of cells: the existing platforms of home become part of the directory.

use std::collections::BTreeMap;

use core_domain::kernel::{Entropy, StoreError};
use core_domain::port::Mode;
use core_domain::registry::Platform;
use core_domain::shared::AuditHead;

use super::config::CellConfig;
use super::directory::{INSTALLATION, NO_ORGANIZATION};
use super::place::{Place, place_of};
use super::{directory, tables, unique_values};
use crate::filter::Filter;
use crate::query::Select;
use crate::row_store::copies;
use crate::table::Table;
use crate::tabular::Tabular;
use crate::value::{ReadRow, Row, Value};

/// The number of rows that are added to the home cell in one unit of work.
const SLICE: u32 = 1_000;

/// Adds the platforms of home and their unique values to the tables of cells, unless this was done before. Returns the
/// random name of the installation. Processes that start at the same time can both do it.
pub(super) async fn enroll(home: &CellConfig, entropy: &dyn Entropy) -> Result<String, StoreError> {
    if let Some(name) = installation(home).await? {
        return Ok(name);
    }
    // The first row of a platform in the directory stays, so its organization is that of the record. Each platform with a log
    // has a head, also if the platform itself was removed.
    let with_platforms = [Platform::TABLE]
        .into_iter()
        .chain(unique_values::tables())
        .chain([AuditHead::TABLE]);
    for table in with_platforms {
        enroll_rows(home, Select::of(table)).await?;
    }
    let mut random = [0; 8];
    entropy.fill(&mut random);
    let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut unit = home.rows.begin(Mode::Write).await?;
    let row = directory::entry(INSTALLATION, &name, Value::text(NO_ORGANIZATION));
    unit.insert_new(&tables::PLATFORMS, vec![row]).await?;
    unit.commit().await?;
    let name = installation(home).await?;
    name.ok_or_else(|| StoreError::backend("the name of the installation was removed"))
}

/// Returns the random name of the installation, if it has one.
pub(super) async fn installation(home: &CellConfig) -> Result<Option<String>, StoreError> {
    let mut name = None;
    let mut visit = |row: &dyn ReadRow| {
        name = row.read(1)?.as_text().map(str::to_owned);
        Ok(())
    };
    let mut unit = home.rows.begin(Mode::Auto).await?;
    unit.get(&tables::PLATFORMS, INSTALLATION, &Filter::all(), &mut visit)
        .await?;
    Ok(name)
}

/// Adds the unique values of all rows of a table, and the platforms that they are.
async fn enroll_rows(home: &CellConfig, mut select: Select) -> Result<(), StoreError> {
    let table = select.table;
    select.limit = Some(SLICE);
    loop {
        let mut unit = home.rows.begin(Mode::ReadCommitted).await?;
        let rows = copies(unit.as_mut(), &select).await?;
        let Some(last) = rows.last() else {
            unit.rollback().await;
            return Ok(());
        };
        select.after = Some(vec![last.first().cloned().unwrap_or(Value::Null)]);
        let values = rows
            .iter()
            .flat_map(|row| unique_values::of_row(table, row));
        let values = values.map(|value| unique_values::row(&value)).collect();
        unit.insert_new(&tables::UNIQUE_VALUES, values).await?;
        let entries = entries_of(table, &rows, &home.name);
        unit.insert_new(&tables::PLATFORMS, entries).await?;
        unit.commit().await?;
    }
}

/// Returns the entries of the platforms of these rows, each once. The organization is known if the rows are platforms.
fn entries_of(table: &'static Table, rows: &[Row], cell: &str) -> Vec<Row> {
    let Place::Named(column, naming) = place_of(table) else {
        return Vec::new();
    };
    let mut platforms = BTreeMap::new();
    for row in rows {
        let platform = table.value(row, column).as_text();
        let organization = directory::organization_of(table, row);
        let platform = platform.and_then(|name| naming.platform(name));
        platforms.extend(platform.map(|platform| (platform, organization)));
    }
    let entry = |(id, organization): (String, Value)| directory::entry(&id, cell, organization);
    platforms.into_iter().map(entry).collect()
}
