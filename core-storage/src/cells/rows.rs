//! The row engine over several cells.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{Entropy, StoreError};
use core_domain::port::{CellState, Mode, PoolState};
use tokio::time::sleep;

use super::cell_set::CellSet;
use super::commit;
use super::config::{CellConfig, HOME, HOME_NAME, check_names};
use super::directory::ensure_names_cover;
use super::enroll::{enroll, installation};
use super::hidden::remove_old_rows;
use super::route::CellUnit;
use crate::checked_tx::CheckedTx;
use crate::row_store::{RowStore, RowTx};
use crate::value::Value;

/// The pause between two reads of the moves of platforms.
const MOVES_INTERVAL: Duration = Duration::from_secs(1);

/// The pause between two removals of the rows of platforms that left a cell.
const HIDDEN_ROWS_INTERVAL: Duration = Duration::from_secs(10 * 60);

/// The row engine over several cells.
#[derive(Clone, Debug)]
pub struct CellRows {
    cells: Arc<CellSet>,
}

impl CellRows {
    /// Opens the store over several cells. One of them is [home](HOME_NAME). The first time, the existing platforms of home
    /// are added to the directory. Until the store is dropped, a task ends the units that were abandoned half-way.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if a name is invalid or used twice, if there is no home, if another cell cannot prepare units, or
    /// if platforms are in a cell that is not given. Only home must be reached.
    pub async fn open(
        cells: Vec<CellConfig>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, StoreError> {
        let configs = home_first(cells)?;
        let installation = enroll(&configs[HOME], entropy.as_ref()).await?;
        let opened = Self::of(configs, installation, entropy).await?;
        let cells = Arc::downgrade(&opened.cells);
        tokio::spawn(commit::end_abandoned_until_dropped(Weak::clone(&cells)));
        tokio::spawn(read_moves_until_dropped(Weak::clone(&cells)));
        tokio::spawn(remove_old_hidden_rows_until_dropped(cells));
        Ok(opened)
    }

    /// Opens the store over cells for reading. Nothing is written, also if no server has used these cells yet.
    ///
    /// # Errors
    /// Those of [`CellRows::open`].
    pub async fn open_read_only(
        cells: Vec<CellConfig>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, StoreError> {
        let configs = home_first(cells)?;
        let installation = installation(&configs[HOME]).await?;
        Self::of(configs, installation.unwrap_or_default(), entropy).await
    }

    async fn of(
        configs: Vec<CellConfig>,
        installation: String,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, StoreError> {
        let cells = CellSet::of(configs, installation, entropy);
        for cell in HOME + 1..cells.configs.len() {
            match commit::prepared_units(&cells, cell).await {
                // Its platforms are served once it can be reached.
                Err(StoreError::Unavailable(_)) => {
                    cells.availability.record(cell, false);
                }
                outcome => drop(outcome?),
            }
        }
        let names = cells.configs.iter().map(|cell| cell.name.as_str());
        ensure_names_cover(cells.rows(HOME), &names.collect::<Vec<_>>()).await?;
        let cells = Arc::new(cells);
        for cell in HOME + 1..cells.configs.len() {
            tokio::spawn(commit::watch_until_dropped(Arc::downgrade(&cells), cell));
        }
        Ok(Self { cells })
    }

    /// Returns the names of the cells; the first one is home.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.cells.configs.iter().map(|cell| cell.name.as_str())
    }

    /// Assigns platforms that are not in the directory as if they were new, for tests that write rows without a platform.
    #[cfg(feature = "conformance")]
    #[must_use]
    pub fn with_unknown_platforms_spread(self) -> Self {
        let relaxed = std::sync::atomic::Ordering::Relaxed;
        self.cells.spreads_unknown.store(true, relaxed);
        self
    }

    /// Returns the name of a unit that is prepared in a cell, for tests that prepare one.
    ///
    /// # Panics
    /// If there is no such cell.
    #[cfg(feature = "conformance")]
    #[must_use]
    pub fn prepared_name(&self, cell: &str, id: &str) -> String {
        match self.names().position(|name| name == cell) {
            Some(cell) => commit::prefix(&self.cells, cell) + id,
            None => panic!("there is no cell {cell}"),
        }
    }

    /// Ends the units that were prepared at least this long ago and whose process did not end them, and removes old
    /// decisions. Returns the number of units. The store does this by itself every few seconds.
    ///
    /// # Errors
    /// Those of the stores. Cells that could be reached are done nevertheless.
    pub async fn end_abandoned(&self, min_age: Duration) -> Result<u64, StoreError> {
        commit::end_abandoned(&self.cells, min_age).await
    }

    pub(super) const fn cells(&self) -> &Arc<CellSet> {
        &self.cells
    }

    fn unit(&self, mode: Mode) -> CellUnit {
        CellUnit::new(Arc::clone(&self.cells), mode)
    }
}

#[async_trait]
impl RowStore for CellRows {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        let mut unit = self.unit(mode);
        if matches!(mode, Mode::Write | Mode::ReadCommitted) {
            unit.turn = self.cells.take_turn().await;
        }
        Ok(CheckedTx::wrap(Box::new(unit), mode))
    }

    async fn begin_stale(&self) -> Option<Box<dyn RowTx>> {
        let home = self.cells.rows(HOME);
        let moves = self.cells.directory.moves(home).await.ok()?;
        if !moves.is_empty() {
            // A replica of a cell could lack a platform that has just moved there.
            return None;
        }
        let mut unit = self.unit(Mode::Read);
        unit.is_stale = true;
        unit.adopt(HOME, self.cells.configs[HOME].rows.begin_stale().await?);
        Some(CheckedTx::wrap(Box::new(unit), Mode::Read))
    }

    fn pools(&self) -> Vec<PoolState> {
        self.cells.pools()
    }

    fn cells(&self) -> Vec<CellState> {
        self.cells.states()
    }

    fn has_one_writer(&self) -> bool {
        self.cells.turn.is_some()
    }
}

/// Checks the names of the cells, and puts home first.
fn home_first(mut configs: Vec<CellConfig>) -> Result<Vec<CellConfig>, StoreError> {
    configs.sort_by_key(|cell| cell.name != HOME_NAME);
    check_names(configs.iter().map(|cell| cell.name.as_str()))?;
    Ok(configs)
}

/// Removes the rows of platforms that left a cell long ago, until the cells are dropped.
async fn remove_old_hidden_rows_until_dropped(cells: Weak<CellSet>) {
    loop {
        sleep(HIDDEN_ROWS_INTERVAL).await;
        let Some(cells) = cells.upgrade() else {
            return;
        };
        for cell in 0..cells.configs.len() {
            let _in_the_next_round = remove_old_hidden_rows(&cells, cell).await;
        }
    }
}

/// Removes the rows of platforms that left this cell long ago. Each write unit of the cell reads these rows.
///
/// # Errors
/// Those of the stores.
pub(super) async fn remove_old_hidden_rows(cells: &CellSet, cell: usize) -> Result<(), StoreError> {
    let moves = cells.directory.moves(cells.rows(HOME)).await?;
    let moving = moves.iter().map(|one| Value::text(&one.platform));
    let moving: Vec<Value> = moving.collect();
    let mut unit = cells.rows(cell).begin(Mode::ReadCommitted).await?;
    remove_old_rows(unit.as_mut(), &moving).await?;
    unit.commit().await
}

/// Reads the moves until the cells are dropped. After an error of a store, the next round tries again.
pub(super) async fn read_moves_until_dropped(cells: Weak<CellSet>) {
    loop {
        let Some(cells) = cells.upgrade() else {
            return;
        };
        let _in_the_next_round = cells.directory.read_moves(cells.rows(HOME)).await;
        drop(cells);
        sleep(MOVES_INTERVAL).await;
    }
}
