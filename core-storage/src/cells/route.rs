//! The open units of a unit of work over several cells, and the cells that its calls go to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use core_domain::provisioning::Job;
use core_domain::registry::Platform;
use core_domain::shared::AuditHead;
use tokio::sync::OwnedMutexGuard;

use super::cell_set::CellSet;
use super::config::HOME;
use super::directory::{self, Move};
use super::hidden::{hidden_platforms, rows_without};
use super::place::{Naming, Place, place_of};
use crate::filter::Filter;
use crate::row_store::RowTx;
use crate::table::{PLATFORM, Table};
use crate::tabular::Tabular;
use crate::value::{ReadRow, Row, Value};

/// Maximum number of platforms of a query whose cells are looked up. A query with more goes to all cells.
const MAX_LOOKED_UP: usize = 1_000;

/// Maximum number of rows of a table whose cells a unit remembers. Others are looked for in all cells.
const MAX_SEEN: usize = 10_000;

/// The maximum age of a unit from which entries of the directory are remembered. A platform may have moved since it was opened.
const MAX_AGE: Duration = Duration::from_secs(1);

/// A unit of work over several cells. It opens a unit in a cell when it first needs it.
pub(super) struct CellUnit {
    pub(super) cells: Arc<CellSet>,
    pub(super) mode: Mode,
    /// `true` if reads may use replicas.
    pub(super) is_stale: bool,
    /// The units in the cells, by index.
    pub(super) units: Vec<Option<OpenUnit>>,
    /// The cells of the platforms that this unit creates.
    pub(super) created: BTreeMap<String, usize>,
    /// The cells of the platforms that this unit looked up. It keeps to them if a platform moves.
    pub(super) looked_up: BTreeMap<String, usize>,
    /// The moves that had not ended at the first read, if the unit does not write.
    moves: Option<Arc<[Move]>>,
    pub(super) seen: SeenRows,
    /// Held by a unit that writes, if a database has only one writer.
    pub(super) turn: Option<OwnedMutexGuard<()>>,
}

/// A unit of work in one cell.
pub(super) struct OpenUnit {
    pub(super) tx: Box<dyn RowTx>,
    pub(super) has_changes: bool,
    /// The platforms that are hidden in this cell, if the unit writes.
    pub(super) hidden: Vec<String>,
    opened_at: Instant,
}

impl OpenUnit {
    fn of(tx: Box<dyn RowTx>) -> Self {
        Self {
            tx,
            has_changes: false,
            hidden: Vec::new(),
            opened_at: Instant::now(),
        }
    }

    fn hides(&self, platform: &str) -> bool {
        self.hidden.iter().any(|hidden| hidden == platform)
    }
}

/// The cells of the rows that a unit has read or written, by table and key.
#[derive(Default)]
pub(super) struct SeenRows(HashMap<&'static str, HashMap<Value, usize>>);

impl SeenRows {
    pub(super) fn add(&mut self, table: &'static Table, key: Value, cell: usize) {
        let rows = self.0.entry(table.name).or_default();
        if rows.len() < MAX_SEEN {
            rows.insert(key, cell);
        }
    }

    pub(super) fn cell(&self, table: &'static Table, key: &Value) -> Option<usize> {
        self.0.get(table.name)?.get(key).copied()
    }

    /// Returns the cells of the rows with these keys; `None` unless all were seen.
    pub(super) fn cells(&self, table: &'static Table, keys: &[Value]) -> Option<Vec<usize>> {
        let cells = keys.iter().map(|key| self.cell(table, key));
        let cells: BTreeSet<usize> = cells.collect::<Option<_>>()?;
        Some(cells.into_iter().collect())
    }
}

/// The cells that a query left out because they cannot be reached.
#[derive(Default)]
pub(super) struct LeftOut(Option<StoreError>);

impl LeftOut {
    /// Checks that the query needs none of the cells that were left out.
    ///
    /// # Errors
    /// Why a cell cannot be reached, unless the query `is_complete` without it.
    pub(super) fn ensure(self, is_complete: bool) -> Result<(), StoreError> {
        match self.0 {
            Some(error) if !is_complete => Err(error),
            _ => Ok(()),
        }
    }
}

/// Returns the number of different keys that the filter names; `None` if it matches rows by other values. If as many rows were found,
/// no other cell has one.
pub(super) fn key_count(table: &Table, filter: &Filter) -> Option<u64> {
    let keys: BTreeSet<&Value> = filter.values_of(table.key())?.iter().collect();
    Some(keys.len() as u64)
}

impl CellUnit {
    pub(super) fn new(cells: Arc<CellSet>, mode: Mode) -> Self {
        let units = cells.configs.iter().map(|_| None).collect();
        Self {
            cells,
            mode,
            is_stale: false,
            units,
            created: BTreeMap::new(),
            looked_up: BTreeMap::new(),
            moves: None,
            seen: SeenRows::default(),
            turn: None,
        }
    }

    /// Uses this unit for a cell.
    pub(super) fn adopt(&mut self, cell: usize, tx: Box<dyn RowTx>) {
        self.units[cell] = Some(OpenUnit::of(tx));
    }

    /// Returns whether the unit can change rows.
    const fn is_writing(&self) -> bool {
        matches!(self.mode, Mode::Write | Mode::ReadCommitted)
    }

    /// Opens a unit in a cell.
    async fn open(&mut self, cell: usize) -> Result<OpenUnit, StoreError> {
        let rows = self.cells.rows(cell);
        if self.is_stale
            && let Some(tx) = rows.begin_stale().await
        {
            return Ok(OpenUnit::of(tx));
        }
        let cells = Arc::clone(&self.cells);
        let (rows, mode) = (cells.rows(cell), self.mode);
        if !self.is_writing() {
            let begin = cells.availability.while_reached(cell, rows.begin(mode));
            return Ok(OpenUnit::of(begin.await?));
        }
        let open = async {
            let mut unit = OpenUnit::of(rows.begin_gated(mode).await?);
            unit.hidden = hidden_platforms(unit.tx.as_mut()).await?;
            Ok(unit)
        };
        let unit = cells.availability.while_reached(cell, open).await?;
        for platform in &unit.hidden {
            // A platform moved after this unit saw one of its cells, and before it saw the other.
            let is_hidden_twice = self.units.iter().flatten().any(|open| open.hides(platform));
            let serving = match is_hidden_twice {
                true => self.cell_of_platform(platform).await?,
                false => self.looked_up.get(platform).copied().unwrap_or(usize::MAX),
            };
            if serving == cell {
                return Err(self.moved_error(platform));
            }
        }
        Ok(unit)
    }

    /// Returns the error of a write unit for a platform whose cell changed. The unit is run again.
    fn moved_error(&self, platform: &str) -> StoreError {
        self.cells.directory.forget(platform);
        StoreError::retry("the platform was moved to another cell")
    }

    /// Returns the platforms whose rows in this cell must not be seen.
    pub(super) async fn hidden_in(&mut self, cell: usize) -> Result<Vec<String>, StoreError> {
        if self.is_writing() {
            return Ok(self.parts(cell).await?.0.hidden.clone());
        }
        let moves = match &self.moves {
            Some(moves) => Arc::clone(moves),
            None => {
                let read = self.cells.directory.moves(self.cells.rows(HOME)).await?;
                Arc::clone(self.moves.insert(read))
            }
        };
        let mut hidden = Vec::new();
        if !moves.is_empty() {
            // So that the directory is read in the state of home that the unit sees.
            self.parts(HOME).await?;
        }
        for one in moves.iter() {
            let is_concerned = [one.source, one.target].contains(&cell);
            if is_concerned && self.cell_of_platform(&one.platform).await? != cell {
                hidden.push(one.platform.clone());
            }
        }
        Ok(hidden)
    }

    /// Returns the filter for the rows in this cell that also match the given one.
    pub(super) async fn visible(
        &mut self,
        cell: usize,
        table: &'static Table,
        filter: &Filter,
    ) -> Result<Filter, StoreError> {
        let hidden = self.hidden_in(cell).await?;
        let without = match hidden[..] {
            [] => None,
            _ => rows_without(table, &hidden),
        };
        Ok(match without {
            Some(without) => filter.clone().and(without),
            None => filter.clone(),
        })
    }

    /// Returns the unit in a cell, and the rows that were seen.
    pub(super) async fn parts(
        &mut self,
        cell: usize,
    ) -> Result<(&mut OpenUnit, &mut SeenRows), StoreError> {
        let unit = match self.units[cell].take() {
            Some(unit) => unit,
            None => self.open(cell).await?,
        };
        Ok((self.units[cell].insert(unit), &mut self.seen))
    }

    pub(super) async fn tx(&mut self, cell: usize) -> Result<&mut dyn RowTx, StoreError> {
        Ok(self.parts(cell).await?.0.tx.as_mut())
    }

    /// Returns the unit in a cell for a change.
    pub(super) async fn changing(&mut self, cell: usize) -> Result<&mut dyn RowTx, StoreError> {
        let (unit, _) = self.parts(cell).await?;
        unit.has_changes = true;
        Ok(unit.tx.as_mut())
    }

    /// Returns all cells.
    pub(super) fn each(&self) -> Vec<usize> {
        (0..self.units.len()).collect()
    }

    /// Returns the cell of a platform. A platform that is not in the directory does not exist, or only at home.
    pub(super) async fn cell_of_platform(&mut self, platform: &str) -> Result<usize, StoreError> {
        let known = self.known_cell_of(platform).await?;
        Ok(known.unwrap_or_else(|| self.cells.cell_of_unknown(platform)))
    }

    /// Returns the cell of a platform; `None` if it is not in the directory.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if the platform has moved since this unit saw the cell.
    async fn known_cell_of(&mut self, platform: &str) -> Result<Option<usize>, StoreError> {
        if let Some(cell) = self.remembered_cell(platform) {
            return Ok(Some(cell));
        }
        let Some(cell) = self.directory_entry(platform).await? else {
            return Ok(None);
        };
        self.look_up(platform, cell).map(Some)
    }

    /// Returns the cell of a platform that this unit looked up or created.
    fn remembered_cell(&self, platform: &str) -> Option<usize> {
        let known = self
            .looked_up
            .get(platform)
            .or_else(|| self.created.get(platform));
        known.copied()
    }

    /// Keeps to this cell of a platform, and returns it.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if the platform has moved since this unit saw the cell.
    fn look_up(&mut self, platform: &str, cell: usize) -> Result<usize, StoreError> {
        let unit = self.units[cell].as_ref();
        if unit.is_some_and(|unit| unit.hides(platform)) {
            return Err(self.moved_error(platform));
        }
        self.looked_up.insert(platform.to_owned(), cell);
        Ok(cell)
    }

    async fn directory_entry(&mut self, platform: &str) -> Result<Option<usize>, StoreError> {
        if let Some(cell) = self.cells.directory.cached_cell(platform) {
            return Ok(Some(cell));
        }
        let entries = self.directory_entries(&[platform.to_owned()]).await?;
        Ok(entries.get(platform).copied())
    }

    /// Returns the entries of platforms in the directory. Those that are not remembered are read, with one query.
    async fn directory_entries(
        &mut self,
        platforms: &[String],
    ) -> Result<BTreeMap<String, usize>, StoreError> {
        let cells = Arc::clone(&self.cells);
        let directory = &cells.directory;
        let (mut entries, mut unknown) = (BTreeMap::new(), Vec::new());
        for platform in platforms {
            match directory.cached_cell(platform) {
                Some(cell) => drop(entries.insert(platform.clone(), cell)),
                None => unknown.push(Value::text(platform)),
            }
        }
        if unknown.is_empty() {
            return Ok(entries);
        }
        // A unit that held a connection while it waits for another could block all others, so an open one is used.
        let (read, is_recent) = match &mut self.units[HOME] {
            Some(home) => {
                let is_recent = !self.is_stale && home.opened_at.elapsed() < MAX_AGE;
                let read = directory.read_many(home.tx.as_mut(), unknown);
                (read.await?, is_recent)
            }
            None => {
                let mut home = cells.rows(HOME).begin(Mode::Auto).await?;
                (directory.read_many(home.as_mut(), unknown).await?, true)
            }
        };
        for (platform, cell) in read {
            if is_recent {
                directory.remember(&platform, cell);
            }
            entries.insert(platform, cell);
        }
        Ok(entries)
    }

    /// Returns those of the rows that are platforms and are in the directory already, because another row of the platform was
    /// written first.
    pub(super) async fn known_platforms(
        &mut self,
        table: &'static Table,
        rows: &[Row],
    ) -> Result<Vec<Row>, StoreError> {
        let mut known = Vec::new();
        if table.name != Platform::TABLE.name {
            return Ok(known);
        }
        for row in rows {
            let id = table.value(row, table.key()).as_text().unwrap_or_default();
            if self.known_cell_of(id).await?.is_some() {
                known.push(row.clone());
            }
        }
        Ok(known)
    }

    /// Returns the cell of a platform. If it is new, assigns it to one: its first row need not be that of the platform itself. The
    /// organization is NULL if it is not known.
    async fn cell_of_created(
        &mut self,
        platform: &str,
        organization: Value,
    ) -> Result<usize, StoreError> {
        if let Some(cell) = self.known_cell_of(platform).await? {
            return Ok(cell);
        }
        let cell = match self.is_at_home(platform).await? {
            true => HOME,
            false => self.cells.cell_for_new(platform),
        };
        let name = self.cells.configs[cell].name.clone();
        let added = directory::add(self.changing(HOME).await?, platform, &name, organization).await;
        added.map_err(StoreError::conflict_as_retry)?;
        self.created.insert(platform.to_owned(), cell);
        Ok(cell)
    }

    /// Returns whether home has rows of a platform that is not in the directory, because a process without cells created it.
    async fn is_at_home(&mut self, platform: &str) -> Result<bool, StoreError> {
        let chains = Naming::Chain.names(platform);
        let tx = self.tx(HOME).await?;
        let mut is_there = false;
        let mut visit = |_: &dyn ReadRow| {
            is_there = true;
            Ok(())
        };
        tx.get(Platform::TABLE, platform, &Filter::all(), &mut visit)
            .await?;
        // The log stays after the platform was removed.
        for chain in &chains {
            tx.get(AuditHead::TABLE, chain, &Filter::all(), &mut visit)
                .await?;
        }
        Ok(is_there)
    }

    /// Returns the cell of what the value names.
    pub(super) async fn cell_of_named(
        &mut self,
        naming: Naming,
        value: &Value,
    ) -> Result<usize, StoreError> {
        match value.as_text().map(|text| naming.platform(text)) {
            Some(Some(platform)) => self.cell_of_platform(&platform).await,
            Some(None) | None => Ok(HOME),
        }
    }

    /// Returns the cell of a job; home if there is no such job.
    pub(super) async fn cell_of_job(&mut self, job: &Value) -> Result<usize, StoreError> {
        let found = self.find(Job::TABLE, job).await?;
        Ok(found.unwrap_or(HOME))
    }

    /// Finds the cell of the row with this key.
    pub(super) async fn find(
        &mut self,
        table: &'static Table,
        key: &Value,
    ) -> Result<Option<usize>, StoreError> {
        self.find_in(self.each(), table, key).await
    }

    /// Finds which of the cells has the row with this key.
    pub(super) async fn find_in(
        &mut self,
        cells: Vec<usize>,
        table: &'static Table,
        key: &Value,
    ) -> Result<Option<usize>, StoreError> {
        if let Some(cell) = self.seen.cell(table, key) {
            return Ok(Some(cell));
        }
        let Some(text) = key.as_text() else {
            return Ok(None);
        };
        let mut left_out = LeftOut::default();
        for cell in cells {
            let was_open = self.is_open(cell);
            let found = self.has_row(cell, table, text).await;
            if self.unless_unreachable(cell, was_open, found, &mut left_out)? == Some(true) {
                self.seen.add(table, key.clone(), cell);
                return Ok(Some(cell));
            }
        }
        left_out.ensure(false)?;
        Ok(None)
    }

    /// Returns whether the cell has the row with this key.
    async fn has_row(
        &mut self,
        cell: usize,
        table: &'static Table,
        key: &str,
    ) -> Result<bool, StoreError> {
        let mut found = false;
        let mut visit = |_: &dyn ReadRow| {
            found = true;
            Ok(())
        };
        let visible = self.visible(cell, table, &Filter::all()).await?;
        let cells = Arc::clone(&self.cells);
        let tx = self.tx(cell).await?;
        let get = tx.get(table, key, &visible, &mut visit);
        cells.availability.while_reached(cell, get).await?;
        Ok(found)
    }

    pub(super) fn is_open(&self, cell: usize) -> bool {
        self.units[cell].is_some()
    }

    /// Returns the outcome of a query in a cell; `None` if the cell cannot be reached. A query that can do without is then complete
    /// if [`LeftOut::ensure`] finds so. Home and a cell in which the unit was open are never left out.
    pub(super) fn unless_unreachable<T>(
        &mut self,
        cell: usize,
        was_open: bool,
        outcome: Result<T, StoreError>,
        left_out: &mut LeftOut,
    ) -> Result<Option<T>, StoreError> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(error @ StoreError::Unavailable(_)) if !was_open && cell != HOME => {
                self.units[cell] = None;
                left_out.0 = Some(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the cells that can have rows that match the filter.
    pub(super) async fn route(
        &mut self,
        table: &'static Table,
        filter: &Filter,
    ) -> Result<Vec<usize>, StoreError> {
        match place_of(table) {
            Place::Home | Place::Everywhere => Ok(vec![HOME]),
            Place::Any => Ok(self.by_keys(table, filter)),
            Place::Named(column, _) if filter.requires_null(column) => Ok(vec![HOME]),
            Place::Named(column, naming) => match filter.values_of(column) {
                Some([value]) => Ok(vec![self.cell_of_named(naming, value).await?]),
                Some(values) if values.len() <= MAX_LOOKED_UP => {
                    let cells = self.cells_of_named(naming, values).await?;
                    Ok(cells.into_iter().collect())
                }
                _ => self.route_without_name(table, filter).await,
            },
            Place::OfJob(column) => match filter.values_of(column) {
                Some([job]) => Ok(vec![self.cell_of_job(job).await?]),
                Some(jobs) if let Some(cells) = self.seen.cells(Job::TABLE, jobs) => Ok(cells),
                _ => self.route_without_name(table, filter).await,
            },
        }
    }

    /// Returns the cells of what the values name. Reads the directory at most once.
    async fn cells_of_named(
        &mut self,
        naming: Naming,
        values: &[Value],
    ) -> Result<BTreeSet<usize>, StoreError> {
        let (mut is_home_named, mut platforms) = (false, Vec::new());
        for value in values {
            match value.as_text().and_then(|text| naming.platform(text)) {
                Some(platform) => platforms.push(platform),
                None => is_home_named = true,
            }
        }
        let mut cells = self.cells_of_each(platforms).await?;
        if is_home_named {
            cells.insert(HOME);
        }
        Ok(cells)
    }

    /// Returns the cells of the platforms, and home. Reads the directory at most once.
    pub(super) async fn cells_of_platforms(
        &mut self,
        platforms: Vec<String>,
    ) -> Result<BTreeSet<usize>, StoreError> {
        let mut cells = self.cells_of_each(platforms).await?;
        cells.insert(HOME);
        Ok(cells)
    }

    async fn cells_of_each(
        &mut self,
        platforms: Vec<String>,
    ) -> Result<BTreeSet<usize>, StoreError> {
        let (mut cells, mut unknown) = (BTreeSet::new(), Vec::new());
        for platform in platforms {
            match self.remembered_cell(&platform) {
                Some(cell) => drop(cells.insert(cell)),
                None => unknown.push(platform),
            }
        }
        if unknown.is_empty() {
            return Ok(cells);
        }
        let entries = self.directory_entries(&unknown).await?;
        for platform in unknown {
            cells.insert(match entries.get(&platform) {
                Some(cell) => self.look_up(&platform, *cell)?,
                None => self.cells.cell_of_unknown(&platform),
            });
        }
        Ok(cells)
    }

    /// Returns the cells of rows that the filter does not place. If it names a platform or has a [hint](super::hints)
    /// nevertheless, they are in its cell or at home. Rows without a platform are at home.
    pub(super) async fn route_without_name(
        &mut self,
        table: &'static Table,
        filter: &Filter,
    ) -> Result<Vec<usize>, StoreError> {
        if let Some(cells) = self.seen_cells(table, filter) {
            return Ok(cells);
        }
        let cells = match filter.platform() {
            Some(platform) => self.cells_of_platforms(vec![platform.to_owned()]).await?,
            None if filter.requires_null(PLATFORM) => BTreeSet::from([HOME]),
            None => match self.cells_by_hint(table, filter).await? {
                Some(cells) => cells,
                None => return Ok(self.each()),
            },
        };
        Ok(cells.into_iter().collect())
    }

    /// Returns the cells of the rows whose keys the filter names, if all were seen.
    fn seen_cells(&self, table: &'static Table, filter: &Filter) -> Option<Vec<usize>> {
        self.seen.cells(table, filter.values_of(table.key())?)
    }

    /// Returns the cells of the rows whose keys the filter names, if all were seen, or else all cells.
    pub(super) fn by_keys(&self, table: &'static Table, filter: &Filter) -> Vec<usize> {
        let seen = self.seen_cells(table, filter);
        seen.unwrap_or_else(|| self.each())
    }

    /// Returns the cells whose rows a change of the table must change.
    pub(super) async fn route_change(
        &mut self,
        table: &'static Table,
        filter: &Filter,
    ) -> Result<Vec<usize>, StoreError> {
        match place_of(table) {
            Place::Everywhere => Ok(self.each()),
            _ => self.route(table, filter).await,
        }
    }

    /// Returns the cell of a row that is inserted.
    pub(super) async fn cell_of_row(
        &mut self,
        table: &'static Table,
        row: &Row,
    ) -> Result<usize, StoreError> {
        match place_of(table) {
            Place::Home | Place::Everywhere => Ok(HOME),
            Place::Any => Ok(self.writing_cell()),
            Place::Named(column, naming) => {
                let value = table.value(row, column);
                let organization = directory::organization_of(table, row);
                match value.as_text().and_then(|text| naming.platform(text)) {
                    Some(platform) => self.cell_of_created(&platform, organization).await,
                    None => Ok(HOME),
                }
            }
            Place::OfJob(column) => self.cell_of_job(table.value(row, column)).await,
        }
    }

    /// Returns the cell that this unit has changed, so that it can change it alone.
    pub(super) fn writing_cell(&self) -> usize {
        let is_changed = |unit: &Option<OpenUnit>| unit.as_ref().is_some_and(|u| u.has_changes);
        let changed = (HOME + 1..self.units.len()).find(|cell| is_changed(&self.units[*cell]));
        changed.unwrap_or(HOME)
    }

    /// Splits rows by their cells. Keeps their order.
    pub(super) async fn split<T: Clone>(
        &mut self,
        table: &'static Table,
        items: Vec<T>,
        row: fn(&T) -> &Row,
    ) -> Result<BTreeMap<usize, Vec<T>>, StoreError> {
        let mut parts: BTreeMap<usize, Vec<T>> = BTreeMap::new();
        if place_of(table) == Place::Everywhere {
            return Ok(self
                .each()
                .into_iter()
                .map(|cell| (cell, items.clone()))
                .collect());
        }
        for item in items {
            let key = row(&item).first().cloned().unwrap_or(Value::Null);
            let cell = match self.seen.cell(table, &key) {
                Some(cell) => cell,
                None => self.cell_of_row(table, row(&item)).await?,
            };
            self.seen.add(table, key, cell);
            parts.entry(cell).or_default().push(item);
        }
        Ok(parts)
    }
}
