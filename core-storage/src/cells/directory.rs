//! The directory: in which cell each platform is, and which platforms are moving.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use core_domain::registry::Platform;

use super::config::{CellConfig, HOME, HOME_NAME};
use super::tables;
use crate::filter::Filter;
use crate::query::Select;
use crate::row_store::{RowStore, RowTx, copies};
use crate::table::{Table, VERSION};
use crate::tabular::Tabular;
use crate::value::{ReadRow, Row, Value};

/// The row of the directory with the random name of the installation. It is not the id of a platform.
pub(super) const INSTALLATION: &str = "*";

/// The column with the organization of a platform, in the directory and in the table of platforms.
pub(super) const ORGANIZATION: &str = "organization_id";

/// The organization in the entry of a platform that belongs to none.
pub(super) const NO_ORGANIZATION: &str = "";

/// The number of entries that are remembered. Beyond it, all are forgotten.
const MAX_ENTRIES: usize = 100_000;

/// How long entries and moves are used after the moves were read. After this time from its announcement, a move is known to
/// all processes: one that could not read the moves uses no entry that it remembers.
pub(super) const VALIDITY: Duration = Duration::from_secs(3);

/// A move that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) platform: String,
    /// The cell that the platform leaves.
    pub(super) source: usize,
    /// The cell that it moves to.
    pub(super) target: usize,
}

/// The directory of platforms, with the entries that were read.
#[derive(Debug, Default)]
pub(super) struct Directory {
    /// The cells by name.
    indexes: BTreeMap<String, usize>,
    known: Mutex<Knowledge>,
    /// Held while the moves are read.
    reading: tokio::sync::Mutex<()>,
}

/// The entries and moves that this process has read.
#[derive(Debug, Default)]
struct Knowledge {
    /// The cells of platforms.
    entries: HashMap<String, usize>,
    moves: Arc<[Move]>,
    /// The time before the moves were read; `None` if they were not read yet.
    read_at: Option<Instant>,
}

impl Knowledge {
    fn is_valid(&self) -> bool {
        self.read_at
            .is_some_and(|read_at| read_at.elapsed() < VALIDITY)
    }

    fn is_moving(&self, platform: &str) -> bool {
        self.moves.iter().any(|one| one.platform == platform)
    }

    /// Forgets the cells of platforms that are moving.
    fn forget_moving(&mut self) {
        for one in self.moves.iter() {
            self.entries.remove(&one.platform);
        }
    }
}

impl Directory {
    pub(super) fn of(cells: &[CellConfig]) -> Self {
        let names = cells.iter().map(|cell| cell.name.clone());
        Self {
            indexes: names.zip(0..).collect(),
            known: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Knowledge> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the cell of a platform, unless the platform is moving.
    pub(super) fn remember(&self, platform: &str, cell: usize) {
        let mut known = self.lock();
        if known.is_moving(platform) {
            return;
        }
        if known.entries.len() >= MAX_ENTRIES {
            known.entries.clear();
        }
        known.entries.insert(platform.to_owned(), cell);
    }

    /// Forgets the cell of a platform, which has moved.
    pub(super) fn forget(&self, platform: &str) {
        self.lock().entries.remove(platform);
    }

    /// Returns the cell of a platform, if it is remembered.
    pub(super) fn cached_cell(&self, platform: &str) -> Option<usize> {
        let known = self.lock();
        let is_usable = known.is_valid() && !known.is_moving(platform);
        let entry = known.entries.get(platform);
        entry.filter(|_| is_usable).copied()
    }

    /// Returns the moves that have not ended. Reads them if this has not been done recently.
    pub(super) async fn moves(&self, home: &dyn RowStore) -> Result<Arc<[Move]>, StoreError> {
        if let Some(moves) = self.valid_moves() {
            return Ok(moves);
        }
        let _turn = self.reading.lock().await;
        // Another unit may have read them while this one waited.
        if let Some(moves) = self.valid_moves() {
            return Ok(moves);
        }
        self.read_moves_in_turn(home).await?;
        Ok(Arc::clone(&self.lock().moves))
    }

    /// Returns the moves that were read recently.
    fn valid_moves(&self) -> Option<Arc<[Move]>> {
        let known = self.lock();
        known.is_valid().then(|| Arc::clone(&known.moves))
    }

    /// Reads the moves that have not ended. Forgets the cells of platforms that were or are moving.
    pub(super) async fn read_moves(&self, home: &dyn RowStore) -> Result<(), StoreError> {
        // One read after the other, so that the newest state is kept.
        let _turn = self.reading.lock().await;
        self.read_moves_in_turn(home).await
    }

    async fn read_moves_in_turn(&self, home: &dyn RowStore) -> Result<(), StoreError> {
        let read_at = Instant::now();
        let mut moves = Vec::new();
        let mut visit = |row: &dyn ReadRow| {
            moves.push(self.read_move(row)?);
            Ok(())
        };
        let mut unit = home.begin(Mode::Auto).await?;
        let all = Select::of(&tables::MOVES);
        unit.select(&all, &mut visit).await?;
        let mut known = self.lock();
        if !known.is_valid() {
            // A whole move may have been missed.
            known.entries.clear();
        }
        known.forget_moving();
        known.moves = moves.into();
        known.forget_moving();
        known.read_at = Some(read_at);
        Ok(())
    }

    fn read_move(&self, row: &dyn ReadRow) -> Result<Move, StoreError> {
        let text = |at| Ok::<_, StoreError>(row.read(at)?.as_text().unwrap_or_default().to_owned());
        Ok(Move {
            platform: text(0)?,
            source: self.index_of(&text(1)?)?,
            target: self.index_of(&text(2)?)?,
        })
    }

    /// Reads the cell of the platform in a unit of the home cell; `None` if the directory does not contain it.
    pub(super) async fn read(
        &self,
        home: &mut dyn RowTx,
        platform: &str,
    ) -> Result<Option<usize>, StoreError> {
        let mut name = None;
        let mut visit = |row: &dyn ReadRow| {
            name = row.read(1)?.as_text().map(str::to_owned);
            Ok(())
        };
        home.get(&tables::PLATFORMS, platform, &Filter::all(), &mut visit)
            .await?;
        name.map(|name| self.index_of(&name)).transpose()
    }

    /// Reads the cells of platforms in a unit of the home cell. Those that the directory does not contain are left out.
    pub(super) async fn read_many(
        &self,
        home: &mut dyn RowTx,
        platforms: Vec<Value>,
    ) -> Result<Vec<(String, usize)>, StoreError> {
        let entries = Select::of(&tables::PLATFORMS);
        let entries = entries.filter(Filter::In(tables::PLATFORMS.key(), platforms));
        let mut cells = Vec::new();
        for row in copies(home, &entries).await? {
            if let [Value::Text(platform), Value::Text(cell), ..] = &row[..] {
                cells.push((platform.as_ref().to_owned(), self.index_of(cell)?));
            }
        }
        Ok(cells)
    }

    /// Reads the cells that have platforms of these organizations, in a unit of the home cell. Includes home, the cells of
    /// platforms whose organization is not known, and those between which platforms are moving: the unit can see such a platform
    /// in either of them.
    pub(super) async fn cells_of_organizations(
        &self,
        home: &mut dyn RowTx,
        organizations: &[Value],
    ) -> Result<BTreeSet<usize>, StoreError> {
        let mut found = BTreeSet::from([HOME]);
        // Before the entries, so that no move can end in between.
        for row in copies(home, &Select::of(&tables::MOVES)).await? {
            let one = self.read_move(&row)?;
            found.extend([one.source, one.target]);
        }
        let of_these = organizations.iter().cloned();
        let of_these = of_these.map(|organization| Filter::eq(ORGANIZATION, organization));
        // Home is asked in any case. Each of these is a range of the index.
        let elsewhere = [
            Filter::lt("cell", Value::text(HOME_NAME)),
            Filter::gt("cell", Value::text(HOME_NAME)),
        ];
        let unknown = elsewhere.map(|cells| Filter::IsNull(ORGANIZATION).and(cells));
        for entries in of_these.chain(unknown) {
            let entries = entries.and(Filter::ne(tables::PLATFORMS.key(), INSTALLATION));
            let cells = home.sum(&tables::PLATFORMS, VERSION, &["cell"], &entries);
            for cell in cells.await? {
                let name = cell.values.first().and_then(Value::as_text);
                found.insert(self.index_of(name.unwrap_or_default())?);
            }
        }
        Ok(found)
    }

    /// Returns the index of the cell with this name.
    pub(super) fn index_of(&self, name: &str) -> Result<usize, StoreError> {
        let index = self.indexes.get(name).copied();
        index.ok_or_else(|| {
            StoreError::backend(format!("the configuration of cells lacks the cell {name}"))
        })
    }
}

/// Checks that every platform is in one of these cells.
///
/// # Errors
/// [`StoreError::Backend`] if the directory names another cell.
pub(crate) async fn ensure_names_cover(
    home: &dyn RowStore,
    names: &[&str],
) -> Result<(), StoreError> {
    let others = names
        .iter()
        .map(|name| Filter::ne("cell", Value::text(name)));
    let others = Filter::And(others.collect()).and(Filter::ne(
        tables::PLATFORMS.key(),
        Value::text(INSTALLATION),
    ));
    let first = Select::of(&tables::PLATFORMS).filter(others).limit(1);
    let mut unit = home.begin(Mode::Auto).await?;
    let first = copies(unit.as_mut(), &first).await?;
    let Some([Value::Text(platform), Value::Text(cell), ..]) = first.first().map(|row| &row[..])
    else {
        return Ok(());
    };
    Err(StoreError::backend(format!(
        "the platform {platform} is in the cell {cell}, which is not in the configuration of cells"
    )))
}

/// Adds a platform to the directory, in a unit of the home cell. The organization is NULL if it is not known.
pub(super) async fn add(
    home: &mut dyn RowTx,
    platform: &str,
    cell: &str,
    organization: Value,
) -> Result<(), StoreError> {
    let entry = entry(platform, cell, organization);
    home.insert(&tables::PLATFORMS, entry).await
}

/// Records the organization of a platform, from its row, in a unit of the home cell.
pub(super) async fn set_organization(
    home: &mut dyn RowTx,
    platform: &Row,
) -> Result<(), StoreError> {
    let table = Platform::TABLE;
    let id = table.value(platform, table.key()).clone();
    let entry = Filter::eq(tables::PLATFORMS.key(), id);
    let set = [(ORGANIZATION, organization_of(table, platform))];
    home.update(&tables::PLATFORMS, &entry, &set).await?;
    Ok(())
}

/// Returns the row of a platform in the directory. The organization is NULL if it is not known.
pub(super) fn entry(platform: &str, cell: &str, organization: Value) -> Row {
    vec![
        Value::text(platform),
        Value::text(cell),
        organization,
        Value::Int(1),
    ]
}

/// Returns the organization of a platform as the directory has it, from a row of the platform: NULL unless it is the row that
/// names the organization.
pub(super) fn organization_of(table: &Table, row: &Row) -> Value {
    if table.name != Platform::TABLE.name {
        return Value::Null;
    }
    match table.value(row, ORGANIZATION) {
        Value::Null => Value::text(NO_ORGANIZATION),
        organization => organization.clone(),
    }
}
