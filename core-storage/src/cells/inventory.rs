//! The inventory of cells, and moves that empty a cell so that it can be removed.

use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::Mode;

use super::cell_set::CellSet;
use super::commit;
use super::config::HOME;
use super::directory::Move;
use super::move_platform::{MoveError, MoveOptions, MoveProgress, UnendedMove};
use super::place::{Place, place_of};
use super::rows::CellRows;
use super::tables::{HIDDEN, PLATFORMS};
use crate::filter::Filter;
use crate::query::Select;
use crate::row_store::copies;
use crate::tables;
use crate::value::{ReadRow, Value};

/// The inventory of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellState {
    /// The name of the cell, which the directory uses.
    pub name: String,
    /// The number of platforms in the cell, including those of which only the audit log is left.
    pub platforms: u64,
    /// `true` if this process assigns new platforms to the cell.
    pub takes_new_platforms: bool,
    /// Why the cell cannot be removed yet. Empty if nothing is lost without its database.
    pub uses: Vec<CellUse>,
}

/// A reason why a cell cannot be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CellUse {
    /// It is the home cell.
    Home,
    /// New platforms are assigned to it.
    NewPlatforms,
    /// The directory names it as the cell of platforms.
    Platforms,
    /// A platform is moving from it or to it.
    Moves,
    /// It has prepared units of work, which have not ended.
    Units,
    /// A table has rows in it.
    Rows(&'static str),
}

/// The state of a move that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveState {
    /// The platform and its cells.
    pub unended: UnendedMove,
    /// `true` if the new cell serves the platform. Then the move can be ended, but no longer cancelled.
    pub is_switched: bool,
    /// The time at which the latest run of the move began or switched, by the clock of a cell. `None` if no run has
    /// begun to copy.
    pub last_run_at: Option<Timestamp>,
}

impl CellRows {
    /// Returns what each cell has; the first one is home.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if a database cannot be read.
    pub async fn states(&self) -> Result<Vec<CellState>, StoreError> {
        let cells = self.cells();
        cells.directory.read_moves(cells.rows(HOME)).await?;
        let mut states = Vec::new();
        for cell in 0..cells.configs.len() {
            states.push(state(cells, cell).await?);
        }
        Ok(states)
    }

    /// Returns the moves that have not ended, with their state.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if a database cannot be read.
    pub async fn move_states(&self) -> Result<Vec<MoveState>, StoreError> {
        let cells = self.cells();
        cells.directory.read_moves(cells.rows(HOME)).await?;
        let mut states = Vec::new();
        for one in cells.directory.moves(cells.rows(HOME)).await?.iter() {
            states.push(move_state(cells, one).await?);
        }
        Ok(states)
    }

    /// Moves all platforms of a cell to another one, one after the other. Moves from and to the first cell that have not ended are
    /// ended before. Passes the id of each platform before its move. Returns the number of moves.
    ///
    /// # Errors
    /// [`MoveError::SomeTooSlow`] if the changes of some platforms were too fast; the others have moved. Otherwise that of the first
    /// move that fails, see [`CellRows::move_platform`]; the platforms before it have moved. Start again to go on.
    pub async fn move_all_platforms(
        &self,
        from: &str,
        to: &str,
        options: &MoveOptions,
        on_progress: &mut (dyn FnMut(MoveProgress) + Send),
        on_start: &mut (dyn FnMut(&str) + Send),
    ) -> Result<u64, MoveError> {
        let cells = self.cells();
        let index_of = |name: &str| {
            let index = cells.directory.index_of(name);
            index.map_err(|_| MoveError::UnknownCell(name.to_owned()))
        };
        index_of(to)?;
        if cells.configs[index_of(from)?].takes_new_platforms {
            return Err(MoveError::TakesNewPlatforms(from.to_owned()));
        }
        if from == to {
            return Err(MoveError::AlreadyThere(to.to_owned()));
        }
        let (mut moved, mut left) = (0, Vec::new());
        while let Some((platform, to)) = self.next_move(from, to, &left).await? {
            on_start(&platform);
            let outcome = self.move_platform(&platform, &to, options, on_progress);
            match outcome.await {
                Ok(_) => moved += 1,
                Err(MoveError::TooSlow) => left.push(platform),
                Err(error) => return Err(error),
            }
        }
        match left.is_empty() {
            true => Ok(moved),
            false => Err(MoveError::SomeTooSlow { moved, left }),
        }
    }

    /// Returns the next move that empties a cell, as a platform and the cell that it moves to. Moves that have not ended come first.
    /// The platforms of `except` are left out.
    async fn next_move(
        &self,
        from: &str,
        to: &str,
        except: &[String],
    ) -> Result<Option<(String, String)>, StoreError> {
        let unended = self.unended_moves().await?;
        if let Some(unended) = unended
            .into_iter()
            .filter(|one| !except.contains(&one.platform))
            .find(|one| one.from == from || one.to == from)
        {
            return Ok(Some((unended.platform, unended.to)));
        }
        let others = except.iter();
        let others = others.map(|platform| Filter::ne(PLATFORMS.key(), Value::text(platform)));
        let others = of_cell(from).and(Filter::And(others.collect()));
        let first = Select::of(&PLATFORMS).filter(others).limit(1);
        let mut home = self.cells().rows(HOME).begin(Mode::Auto).await?;
        let first = copies(home.as_mut(), &first).await?;
        let platform = first.first().and_then(|row| row.first()?.as_text());
        Ok(platform.map(|platform| (platform.to_owned(), to.to_owned())))
    }
}

/// Matches the entries of the directory that name a cell. The name of the installation is that of no cell.
fn of_cell(name: &str) -> Filter {
    Filter::eq("cell", name)
}

async fn state(cells: &CellSet, cell: usize) -> Result<CellState, StoreError> {
    let config = &cells.configs[cell];
    let mut home = cells.rows(HOME).begin(Mode::Auto).await?;
    let platforms = home.count(&PLATFORMS, &of_cell(&config.name)).await?;
    drop(home);
    let uses = match cell {
        HOME => vec![CellUse::Home],
        _ => uses(cells, cell, platforms).await?,
    };
    Ok(CellState {
        name: config.name.clone(),
        platforms,
        takes_new_platforms: config.takes_new_platforms,
        uses,
    })
}

async fn move_state(cells: &CellSet, one: &Move) -> Result<MoveState, StoreError> {
    let mut home = cells.rows(HOME).begin(Mode::Auto).await?;
    let serving = cells.directory.read(home.as_mut(), &one.platform).await?;
    drop(home);
    let is_switched = serving == Some(one.target);
    // Each run hides the platform in the cell that does not serve it, and stores the time.
    let hiding = match is_switched {
        true => one.source,
        false => one.target,
    };
    let mut hidden_at = None;
    let mut visit = |row: &dyn ReadRow| {
        hidden_at = row.read(1)?.as_int();
        Ok(())
    };
    let mut unit = cells.rows(hiding).begin(Mode::Auto).await?;
    unit.get(&HIDDEN, &one.platform, &Filter::all(), &mut visit)
        .await?;
    let name = |cell: usize| cells.configs[cell].name.clone();
    Ok(MoveState {
        unended: UnendedMove {
            platform: one.platform.clone(),
            from: name(one.source),
            to: name(one.target),
        },
        is_switched,
        last_run_at: hidden_at.map(Timestamp::from_millis),
    })
}

/// Returns the uses of a cell that is not home.
async fn uses(cells: &CellSet, cell: usize, platforms: u64) -> Result<Vec<CellUse>, StoreError> {
    let moves = cells.directory.moves(cells.rows(HOME)).await?;
    let is_moving = moves
        .iter()
        .any(|one| one.source == cell || one.target == cell);
    let units = commit::prepared_units(cells, cell).await?;
    let known = [
        (
            CellUse::NewPlatforms,
            cells.configs[cell].takes_new_platforms,
        ),
        (CellUse::Platforms, platforms > 0),
        (CellUse::Moves, is_moving),
        (CellUse::Units, !units.is_empty()),
    ];
    let known = known.into_iter().filter(|(_, is_so)| *is_so);
    let mut uses: Vec<CellUse> = known.map(|(reason, _)| reason).collect();
    let mut unit = cells.rows(cell).begin(Mode::Auto).await?;
    for table in tables::of_records() {
        // Every cell has the same rows of these.
        if place_of(table) == Place::Everywhere {
            continue;
        }
        let found = copies(unit.as_mut(), &Select::of(table).limit(1)).await?;
        if !found.is_empty() {
            uses.push(CellUse::Rows(table.name));
        }
    }
    Ok(uses)
}
