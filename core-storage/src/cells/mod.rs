//! One store over several databases, so that an installation grows past one of them.
//!
//! A *cell* is a database with the platforms that are assigned to it: their registry, jobs, audit log and usage. The *home
//! cell* has everything that belongs to several platforms or is found without one: accounts, access, money, the catalogue
//! of stacks, and the directory of platforms. The home cell can have platforms as well. [`place`] says where the rows of
//! each table are.
//!
//! Use cases and services do not know cells. A unit of work opens a database when it first uses it, and most units use one.
//! A query that names a platform goes to its cell. Any other query goes to all cells, and its rows are merged in the order
//! of the query, so lists, cursors and counts are those of one store.
//!
//! # Guarantees
//! - A unit that changes several databases changes all of them or none, also if this process or a database fails in
//!   between. The changes are [prepared](RowTx::prepare) in all databases but home. Then the commit at home decides, and
//!   [`CellRows::end_abandoned`] carries the decision out if the process could not. Until then, other units do not see the
//!   changes that are prepared.
//! - A value that is unique in the installation, such as the slug of a platform, is unique over all cells.
//! - Units that use the same database behave as in a single store. Over several databases, a read unit does not see one
//!   common state, and concurrent write units can each decide on what the other changes in another database.
//!
//! # Limits
//! Every process of the installation has the same cells. Platforms that were created without cells belong to home. On
//! Postgres, every cell but home needs `max_prepared_transactions`. SQLite cannot prepare units, so it can be home only.

mod commit;
mod directory;
mod merge;
mod place;
pub(crate) mod tables;
mod unique_values;
mod unit;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use core_domain::kernel::{Entropy, StoreError};
use core_domain::port::{Mode, PoolState};
use sha2::{Digest, Sha256};

use crate::checked_tx::CheckedTx;
use crate::filter::Filter;
use crate::query::Select;
use crate::row_store::{RowStore, RowTx, copies};
use crate::value::{ReadRow, Value};
use directory::Directory;
use unit::CellUnit;

/// The name of the home cell.
pub const HOME_NAME: &str = "home";

/// The index of the home cell.
const HOME: usize = 0;

/// The row of the directory with the random name of the installation. It is not the id of a platform.
const INSTALLATION: &str = "*";

/// A cell.
#[derive(Clone, Debug)]
pub struct CellConfig {
    /// The unique name: 1 to 32 of `[a-z0-9-]`. It is part of the directory, so it never changes. That of the home cell is
    /// [`HOME_NAME`].
    pub name: String,
    /// The database.
    pub rows: Arc<dyn RowStore>,
    /// Whether new platforms are assigned to this cell. They are spread evenly over the cells that take them. If none does,
    /// they are assigned to home.
    pub takes_new_platforms: bool,
}

/// What all units of work share.
#[derive(Debug)]
struct Cells {
    /// The cells; the first one is home.
    configs: Vec<CellConfig>,
    directory: Directory,
    /// The names of the pools of each cell.
    pool_names: Vec<Vec<&'static str>>,
    /// The random name of the installation, which is part of the names of prepared units.
    installation: String,
    entropy: Arc<dyn Entropy>,
    /// Taken by each write unit, if a database has only one writer: units that wait for each other's databases would
    /// never end.
    turn: Option<Arc<tokio::sync::Mutex<()>>>,
    /// The number of claims.
    claims: AtomicUsize,
    /// Whether platforms that are not in the directory are spread over the cells, instead of being at home.
    spreads_unknown: AtomicBool,
}

/// The row engine over several cells.
#[derive(Clone, Debug)]
pub struct CellRows {
    cells: Arc<Cells>,
}

impl CellRows {
    /// Opens the store over several cells. One of them is [home](HOME_NAME). The first time, the existing platforms of home
    /// are added to the directory. Until the store is dropped, a task ends the units that were abandoned half-way.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if a name is invalid or used twice, if there is no home, or if another cell cannot prepare
    /// units.
    pub async fn open(
        cells: Vec<CellConfig>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, StoreError> {
        let configs = ordered(cells)?;
        let installation = enroll(&configs[HOME], entropy.as_ref()).await?;
        let opened = Self::of(configs, installation, entropy).await?;
        let cells = Arc::downgrade(&opened.cells);
        tokio::spawn(commit::end_abandoned_until_dropped(cells));
        Ok(opened)
    }

    /// Opens the store over cells that a server has used, for reading.
    ///
    /// # Errors
    /// Those of [`CellRows::open`]; [`StoreError::Backend`] if no server has used these cells.
    pub async fn open_read_only(
        cells: Vec<CellConfig>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, StoreError> {
        let configs = ordered(cells)?;
        let installation = installation(&configs[HOME]).await?;
        let installation = installation.ok_or_else(|| {
            StoreError::backend("no server has used these cells yet; start one with the same cells")
        })?;
        Self::of(configs, installation, entropy).await
    }

    async fn of(
        configs: Vec<CellConfig>,
        installation: String,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, StoreError> {
        let has_one_writer = configs.iter().any(|cell| cell.rows.has_one_writer());
        let cells = Cells {
            directory: Directory::of(&configs),
            pool_names: configs.iter().map(pool_names).collect(),
            installation,
            entropy,
            turn: has_one_writer.then(Arc::default),
            claims: AtomicUsize::new(0),
            spreads_unknown: AtomicBool::new(false),
            configs,
        };
        for cell in HOME + 1..cells.configs.len() {
            cells.prepared_units(cell).await?;
        }
        Ok(Self {
            cells: Arc::new(cells),
        })
    }

    /// Returns the names of the cells; the first one is home.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.cells.configs.iter().map(|cell| cell.name.as_str())
    }

    /// Assigns platforms that are not in the directory as if they were new, for tests that write rows without a platform.
    #[cfg(feature = "conformance")]
    #[must_use]
    pub fn with_unknown_platforms_spread(self) -> Self {
        self.cells.spreads_unknown.store(true, Ordering::Relaxed);
        self
    }

    fn unit(&self, mode: Mode) -> CellUnit {
        CellUnit::new(Arc::clone(&self.cells), mode)
    }
}

#[async_trait]
impl RowStore for CellRows {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        let mut unit = self.unit(mode);
        if let (Some(turn), Mode::Write | Mode::ReadCommitted) = (&self.cells.turn, mode) {
            unit.turn = Some(Arc::clone(turn).lock_owned().await);
        }
        Ok(CheckedTx::wrap(Box::new(unit), mode))
    }

    async fn begin_stale(&self) -> Option<Box<dyn RowTx>> {
        let mut unit = self.unit(Mode::Read);
        unit.is_stale = true;
        unit.adopt(HOME, self.cells.configs[HOME].rows.begin_stale().await?);
        Some(CheckedTx::wrap(Box::new(unit), Mode::Read))
    }

    fn pools(&self) -> Vec<PoolState> {
        let cells = self.cells.configs.iter().zip(&self.cells.pool_names);
        let pools = cells.flat_map(|(cell, names)| {
            let named = |(name, pool)| PoolState { name, ..pool };
            names.iter().copied().zip(cell.rows.pools()).map(named)
        });
        pools.collect()
    }

    fn has_one_writer(&self) -> bool {
        self.cells.turn.is_some()
    }
}

impl Cells {
    /// Returns the database of a cell.
    fn rows(&self, cell: usize) -> &dyn RowStore {
        self.configs[cell].rows.as_ref()
    }

    /// Returns the cell of a platform that is not in the directory.
    fn cell_of_unknown(&self, platform: &str) -> usize {
        match self.spreads_unknown.load(Ordering::Relaxed) {
            true => self.cell_for_new(platform),
            false => HOME,
        }
    }

    /// Returns the cell for a new platform. It depends only on the id and on the cells that take new platforms.
    fn cell_for_new(&self, platform: &str) -> usize {
        let taking = self.configs.iter().zip(0..);
        let taking: Vec<usize> = taking
            .filter(|(cell, _)| cell.takes_new_platforms)
            .map(|(_, index)| index)
            .collect();
        let hash = Sha256::digest(platform.as_bytes());
        let number = hash
            .iter()
            .take(4)
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        taking
            .get(number % taking.len().max(1))
            .copied()
            .unwrap_or(HOME)
    }
}

/// Checks the names of the cells, and puts home first.
fn ordered(mut configs: Vec<CellConfig>) -> Result<Vec<CellConfig>, StoreError> {
    configs.sort_by_key(|cell| cell.name != HOME_NAME);
    check_names(configs.iter().map(|cell| cell.name.as_str()))?;
    Ok(configs)
}

/// Returns the names of the pools of a cell. Those of home are as without cells; the others start with the name of the
/// cell.
fn pool_names(cell: &CellConfig) -> Vec<&'static str> {
    let name = |pool: PoolState| match cell.name == HOME_NAME {
        true => pool.name,
        // Labels of metrics live as long as the process.
        false => &*format!("{}-{}", cell.name, pool.name).leak(),
    };
    cell.rows.pools().into_iter().map(name).collect()
}

/// Checks the names of cells.
///
/// # Errors
/// [`StoreError::Backend`] if a name is invalid or used twice, or if none is [`HOME_NAME`].
pub fn check_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<(), StoreError> {
    let mut known = BTreeSet::new();
    for name in names {
        let is_valid = |letter: u8| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if !(1..=32).contains(&name.len()) || !name.bytes().all(is_valid) {
            return Err(StoreError::backend(format!(
                "the name of the cell {name:?} must have 1 to 32 of a-z, 0-9 and -"
            )));
        }
        if !known.insert(name) {
            return Err(StoreError::backend(format!(
                "two cells have the name {name}"
            )));
        }
    }
    if known.contains(HOME_NAME) {
        return Ok(());
    }
    Err(StoreError::backend("there is no cell with the name home"))
}

/// The number of rows that are added to the home cell in one unit of work.
const SLICE: u32 = 1_000;

/// Adds the platforms of home and their unique values to the tables of cells, unless this was done before. Returns the
/// random name of the installation. Processes that start at the same time can both do it.
async fn enroll(home: &CellConfig, entropy: &dyn Entropy) -> Result<String, StoreError> {
    if let Some(name) = installation(home).await? {
        return Ok(name);
    }
    for table in unique_values::tables() {
        enroll_rows(home, Select::of(table)).await?;
    }
    let mut random = [0; 8];
    entropy.fill(&mut random);
    let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut unit = home.rows.begin(Mode::Write).await?;
    let row = directory::entry(INSTALLATION, &name);
    unit.insert_new(&tables::PLATFORMS, vec![row]).await?;
    unit.commit().await?;
    let name = installation(home).await?;
    name.ok_or_else(|| StoreError::backend("the name of the installation was removed"))
}

/// Returns the random name of the installation, if it has one.
async fn installation(home: &CellConfig) -> Result<Option<String>, StoreError> {
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
        if let place::Place::Named(column, _) = place::place_of(table) {
            let platforms = rows
                .iter()
                .filter_map(|row| table.value(row, column).as_text());
            let platforms: BTreeSet<&str> = platforms.collect();
            let entries = platforms.iter().map(|id| directory::entry(id, &home.name));
            let entries = entries.collect();
            unit.insert_new(&tables::PLATFORMS, entries).await?;
        }
        unit.commit().await?;
    }
}
