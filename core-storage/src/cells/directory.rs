//! The directory: in which cell each platform is.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use core_domain::kernel::StoreError;
use core_domain::port::Mode;

use super::config::CellConfig;
use super::tables;
use crate::filter::Filter;
use crate::row_store::{RowStore, RowTx};
use crate::table::Table;
use crate::value::{ReadRow, Row, Value};

/// The number of entries that are remembered. Beyond it, all are forgotten.
const MAX_ENTRIES: usize = 100_000;

/// The directory of platforms, with the entries that were read. A platform never changes its cell.
#[derive(Debug, Default)]
pub(super) struct Directory {
    /// The cells by name.
    indexes: BTreeMap<String, usize>,
    /// The cells of platforms that are known.
    entries: Mutex<HashMap<String, usize>>,
}

impl Directory {
    pub(super) fn of(cells: &[CellConfig]) -> Self {
        let names = cells.iter().map(|cell| cell.name.clone());
        Self {
            indexes: names.zip(0..).collect(),
            entries: Mutex::default(),
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the cell of a platform.
    pub(super) fn remember(&self, platform: &str, cell: usize) {
        let mut entries = self.entries();
        if entries.len() >= MAX_ENTRIES {
            entries.clear();
        }
        entries.insert(platform.to_owned(), cell);
    }

    /// Returns the cell of the platform; `None` if the directory does not contain it. Reads it in the given unit of the home
    /// cell, if there is one: a unit that held a connection while it waits for another could block all others.
    pub(super) async fn cell_of(
        &self,
        unit: Option<&mut dyn RowTx>,
        home: &dyn RowStore,
        platform: &str,
    ) -> Result<Option<usize>, StoreError> {
        if let Some(cell) = self.entries().get(platform) {
            return Ok(Some(*cell));
        }
        let mut name = None;
        let mut visit = |row: &dyn ReadRow| {
            name = row.read(1)?.as_text().map(str::to_owned);
            Ok(())
        };
        let (table, all) = (&tables::PLATFORMS, Filter::all());
        match unit {
            Some(unit) => unit.get(table, platform, &all, &mut visit).await?,
            None => {
                let mut unit = home.begin(Mode::Auto).await?;
                unit.get(table, platform, &all, &mut visit).await?;
            }
        }
        let Some(name) = name else {
            return Ok(None);
        };
        let cell = self.index_of(&name)?;
        self.remember(platform, cell);
        Ok(Some(cell))
    }

    /// Returns the index of the cell with this name.
    fn index_of(&self, name: &str) -> Result<usize, StoreError> {
        let index = self.indexes.get(name).copied();
        index.ok_or_else(|| {
            StoreError::backend(format!("the configuration of cells lacks the cell {name}"))
        })
    }
}

/// Returns whether a new row of the table can belong to a new platform, which is then assigned to a cell.
pub(super) fn has_new_platforms(table: &Table) -> bool {
    matches!(table.name, "platforms" | "onboardings")
}

/// Adds a platform to the directory, in a unit of the home cell.
pub(super) async fn add(
    home: &mut dyn RowTx,
    platform: &str,
    cell: &str,
) -> Result<(), StoreError> {
    home.insert(&tables::PLATFORMS, entry(platform, cell)).await
}

/// Returns the row of a platform in the directory.
pub(super) fn entry(platform: &str, cell: &str) -> Row {
    vec![Value::text(platform), Value::text(cell), Value::Int(1)]
}
