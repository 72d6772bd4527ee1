//! The move of a platform to another cell, while the platform is in use.
//!
//! 1. The move is announced at home, and the platform is hidden in the target. All processes notice this within seconds: from
//!    then on they read the directory for each unit, and ignore the rows in the target.
//! 2. The source starts to record which rows change. A pass copies all rows, and a second one compares them. Then the changed
//!    rows are copied, until there are few.
//! 3. The gate of the source is closed: units that write there end, and new ones wait. The last changes are copied, and the
//!    directory is changed, together with what both cells hide. Then the gate opens. A unit that waited and had looked up the
//!    platform is run again, and goes to the target.
//! 4. When no unit reads the source any more, the rows there are removed, and the move ends.
//!
//! If the process ends early, the move can be started again and goes on from what is there, or it can be cancelled before
//! the switch.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{PlatformId, StoreError};
use core_domain::port::Mode;
use core_domain::provisioning::{Job, JobLease};
use tokio::time::{Instant, sleep, timeout};

use super::backfill::backfill;
use super::cell_set::CellSet;
use super::commit::{commit_together, new_id, wait_for_prepared};
use super::config::HOME;
use super::directory::{Move, VALIDITY};
use super::hidden::{Run, hide, show, take_over};
use super::place::Naming;
use super::recording::Recording;
use super::rows::{CellRows, remove_old_hidden_rows};
use super::tables::{MOVES, PLATFORMS};
use super::transfer::{Transfer, remove_rows};
use crate::filter::Filter;
use crate::query::Select;
use crate::row_store::{RowTx, copies};
use crate::tabular::Tabular;
use crate::value::{ReadRow, Row, Value};

/// The number of passes over all rows: one copies them, and one verifies the copy.
const PASSES: u32 = 2;

/// The number of changes that are copied quickly.
const FEW_CHANGES: u64 = 500;

/// The maximum number of times that changes are copied before the first attempt to switch, each time up to some thousands.
const MAX_ROUNDS: u32 = 1_000;

/// The maximum number of attempts to wait for the units in the target.
const GATE_ATTEMPTS: u32 = 20;

/// How long units that write to the target wait in such an attempt.
const GATE_WAIT: Duration = Duration::from_millis(500);

/// The shortest pause between two attempts; the longest is twice as long.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The number of attempts to wait for the end of a commit whose process died. Together they take longer than it takes until
/// another process ends it.
const COMMIT_ATTEMPTS: u32 = 6;

/// How a platform is moved.
#[derive(Clone, Copy, Debug)]
pub struct MoveOptions {
    /// The maximum time for which units that write to the source wait, before the databases commit. An attempt that needs
    /// longer is undone and repeated. Keep it below the time for which a statement waits for a lock. Default: 1.5 s.
    pub max_pause: Duration,
    /// The maximum number of attempts to switch. With 0, the rows are copied only. Default: 20.
    pub max_attempts: u32,
    /// The time in which all processes notice a change, and units that began before it end. Default: 25 s, which is more than
    /// the time-out of a statement. Less is for tests, whose units are short.
    pub settle_time: Duration,
}

impl Default for MoveOptions {
    fn default() -> Self {
        Self {
            max_pause: Duration::from_millis(1_500),
            max_attempts: 20,
            settle_time: VALIDITY + Duration::from_secs(22),
        }
    }
}

/// The progress of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MoveProgress {
    /// Processes are noticing the move.
    Announced,
    /// A pass has reached this table.
    Copying {
        /// The name of the table.
        table: &'static str,
        /// The number of rows that the pass has compared.
        rows: u64,
    },
    /// A pass over all rows has ended.
    Copied {
        /// The number of rows that the pass has compared.
        rows: u64,
        /// The number of rows that differed.
        changed: u64,
    },
    /// Rows that have changed since a pass were copied.
    CaughtUp {
        /// The number of changes.
        changes: u64,
    },
    /// An attempt to switch was undone, because it needed too long.
    TooSlow,
    /// The target serves the platform. Its rows in the source are removed next.
    Switched {
        /// The time for which units that write to the source waited.
        pause: Duration,
    },
}

/// The outcome of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveReport {
    /// The number of rows in each table, when they were compared last. Empty if the switch was in an earlier run.
    pub tables: Vec<(&'static str, u64)>,
    /// The time for which units that write to the source waited. `None` if the switch was in an earlier run.
    pub pause: Option<Duration>,
    /// The number of rows that were removed from the source, without those that belong to jobs.
    pub removed: u64,
}

/// A move that has not ended: a process may be working on it, or it ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnendedMove {
    /// The id of the platform.
    pub platform: String,
    /// The name of the cell that the platform leaves.
    pub from: String,
    /// The name of the cell that it moves to.
    pub to: String,
}

/// The reason why a move did not take place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MoveError {
    /// The directory does not contain the platform.
    #[error("there is no platform {0}")]
    UnknownPlatform(String),
    /// There is no cell with this name.
    #[error("there is no cell {0}")]
    UnknownCell(String),
    /// The cell serves the platform already.
    #[error("the platform is in the cell {0} already")]
    AlreadyThere(String),
    /// The platform is moving to another cell.
    #[error("the platform is moving to the cell {0}; end that move first, or cancel it")]
    OtherMove(String),
    /// All platforms of a cell were to be moved, and new ones are assigned to it.
    #[error(
        "new platforms are assigned to the cell {0}; change that in the configuration of every server first"
    )]
    TakesNewPlatforms(String),
    /// The platform is not moving.
    #[error("the platform is not moving")]
    NotMoving,
    /// The target serves the platform, so the move can only be ended.
    #[error("the cell {0} serves the platform already; start the move again to end it")]
    Switched(String),
    /// The last changes could not be copied within the maximum pause. Nothing is lost, and the platform is where it was.
    #[error(
        "the last changes could not be copied in time; try again at a quieter time, or allow a longer pause"
    )]
    TooSlow,
    /// Some platforms of a cell could not be moved, because their last changes could not be copied within the maximum pause. The
    /// others have moved.
    #[error(
        "{moved} platforms have moved; the last changes of others could not be copied in time ({}); try again at a \
         quieter time, or allow a longer pause",
        .left.join(", ")
    )]
    SomeTooSlow {
        /// The number of platforms that have moved.
        moved: u64,
        /// The platforms that were not moved.
        left: Vec<String>,
    },
    /// A database cannot be used. The move can be started again.
    #[error("a database cannot be used")]
    Store(#[from] StoreError),
}

impl CellRows {
    /// Moves a platform to another cell, or continues such a move. The platform stays in use. A second run takes over from the
    /// first one, which fails.
    ///
    /// All rows are copied and then compared in both cells, before the pause of writes. In the pause, those are copied that have
    /// changed since: the source records them, so the pause does not grow with the number of rows. (A store that cannot record
    /// changes compares all rows in the pause.) After the move, the cell that the platform left has no rows of it.
    ///
    /// # Errors
    /// See [`MoveError`].
    pub async fn move_platform(
        &self,
        platform: &str,
        to: &str,
        options: &MoveOptions,
        on_progress: &mut (dyn FnMut(MoveProgress) + Send),
    ) -> Result<MoveReport, MoveError> {
        let cells = self.cells();
        let target = cells.directory.index_of(to);
        let target = target.map_err(|_| MoveError::UnknownCell(to.to_owned()))?;
        record(cells, platform, target).await?;
        let name = new_id(cells);
        let run = Run {
            platform,
            name: &name,
        };
        let claimed = claim(cells, run).await?;
        let moving = Moving {
            cells,
            run,
            source: claimed.source,
            target,
            options,
        };
        let mut report = MoveReport {
            tables: Vec::new(),
            pause: None,
            removed: 0,
        };
        if !claimed.is_switched {
            let (tables, pause) = moving.copy_and_switch(on_progress).await?;
            report.tables = tables;
            report.pause = Some(pause);
            on_progress(MoveProgress::Switched { pause });
        }
        sleep(options.settle_time).await;
        let mut unit = cells.rows(moving.source).begin(Mode::ReadCommitted).await?;
        take_over(unit.as_mut(), run).await?;
        unit.commit().await?;
        moving.recording(moving.source).stop().await?;
        report.removed = remove_rows(cells, moving.source, run).await?;
        end(cells, run, &claimed, None).await?;
        Ok(report)
    }

    /// Returns the moves that have not ended.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if home cannot be read.
    pub async fn unended_moves(&self) -> Result<Vec<UnendedMove>, StoreError> {
        let cells = self.cells();
        cells.directory.read_moves(cells.rows(HOME)).await?;
        let moves = cells.directory.moves(cells.rows(HOME)).await?;
        let name = |cell: usize| cells.configs[cell].name.clone();
        let unended = |one: &Move| UnendedMove {
            platform: one.platform.clone(),
            from: name(one.source),
            to: name(one.target),
        };
        Ok(moves.iter().map(unended).collect())
    }

    /// Cancels a move that has not switched: removes the copies from the target. Returns their number, without those that
    /// belong to jobs.
    ///
    /// # Errors
    /// See [`MoveError`].
    pub async fn cancel_move(&self, platform: &str) -> Result<u64, MoveError> {
        let cells = self.cells();
        let name = new_id(cells);
        let run = Run {
            platform,
            name: &name,
        };
        let claimed = claim(cells, run).await?;
        let target = claimed.target;
        if claimed.is_switched {
            return Err(MoveError::Switched(cells.configs[target].name.clone()));
        }
        let recording = Recording {
            cells,
            run,
            source: claimed.source,
            hidden_in: target,
        };
        recording.stop().await?;
        let removed = remove_rows(cells, target, run).await?;
        end(cells, run, &claimed, Some(target)).await?;
        Ok(removed)
    }
}

/// Records a move at home, unless it is recorded already.
async fn record(cells: &CellSet, platform: &str, target: usize) -> Result<(), MoveError> {
    let unknown = || MoveError::UnknownPlatform(platform.to_owned());
    if PlatformId::parse(platform).is_none() {
        return Err(unknown());
    }
    let mut home = cells.rows(HOME).begin(Mode::Write).await?;
    let serving = cells.directory.read(home.as_mut(), platform).await?;
    let serving = serving.ok_or_else(unknown)?;
    let [name, target_name] = [serving, target].map(|cell| &cells.configs[cell].name);
    let of_platform = Filter::eq(MOVES.key(), platform);
    let recorded = copies(home.as_mut(), &Select::of(&MOVES).filter(of_platform)).await?;
    if let Some([_, _, to, ..]) = recorded.first().map(Vec::as_slice) {
        let to = to.as_text().unwrap_or_default();
        return match to == target_name {
            true => Ok(()),
            false => Err(MoveError::OtherMove(to.to_owned())),
        };
    }
    if serving == target {
        return Err(MoveError::AlreadyThere(name.clone()));
    }
    for cell in [serving, target] {
        ensure_gate(cells, cell)?;
    }
    let mut row: Row = [platform, name, target_name].map(Value::text).into();
    row.push(Value::Int(1));
    let recorded = home.insert(&MOVES, row).await;
    recorded.map_err(StoreError::conflict_as_retry)?;
    home.commit().await?;
    Ok(())
}

/// Returns the cells of a recorded move: the one that the platform leaves, and the one that it moves to.
async fn recorded_cells(cells: &CellSet, platform: &str) -> Result<(usize, usize), MoveError> {
    cells.directory.read_moves(cells.rows(HOME)).await?;
    let moves = cells.directory.moves(cells.rows(HOME)).await?;
    let found = moves.iter().find(|one| one.platform == platform);
    let found = found.ok_or(MoveError::NotMoving)?;
    Ok((found.source, found.target))
}

/// A recorded move, of which a run is the latest one.
struct Claim {
    source: usize,
    target: usize,
    /// `true` if the target serves the platform.
    is_switched: bool,
}

/// Makes a run the latest one of its move. Unless the target serves the platform, it is hidden there: an earlier run that still
/// exists cannot switch any more.
async fn claim(cells: &CellSet, run: Run<'_>) -> Result<Claim, MoveError> {
    let (source, target) = recorded_cells(cells, run.platform).await?;
    wait_for_commits(cells, &[source, target]).await?;
    let _turn = cells.take_turn().await;
    let mut home = cells.rows(HOME).begin(Mode::ReadCommitted).await?;
    if !lock_move(home.as_mut(), run.platform).await? {
        return Err(MoveError::NotMoving);
    }
    let serving = cells.directory.read(home.as_mut(), run.platform).await?;
    let is_switched = serving == Some(target);
    if !is_switched && target == HOME {
        hide(home.as_mut(), run).await?;
    } else if !is_switched {
        let mut unit = cells.rows(target).begin(Mode::ReadCommitted).await?;
        hide(unit.as_mut(), run).await?;
        unit.commit().await?;
    }
    home.commit().await?;
    Ok(Claim {
        source,
        target,
        is_switched,
    })
}

/// Locks the record of a move at home, so that no other run claims, switches or ends it before the unit has ended. Returns whether
/// there is one.
async fn lock_move(home: &mut dyn RowTx, platform: &str) -> Result<bool, StoreError> {
    let mut is_recorded = false;
    let mut visit = |_: &dyn ReadRow| {
        is_recorded = true;
        Ok(())
    };
    let key = Value::text(platform);
    home.lock(&MOVES, &key, &mut visit).await?;
    Ok(is_recorded)
}

/// Waits for commits of earlier units that have not reached the cells, such as that of an earlier run.
async fn wait_for_commits(cells: &CellSet, of: &[usize]) -> Result<(), StoreError> {
    for cell in of {
        let mut attempts = COMMIT_ATTEMPTS;
        loop {
            attempts -= 1;
            match wait_for_prepared(cells, *cell).await {
                Err(StoreError::Unavailable(_)) if attempts > 0 => {}
                outcome => break outcome?,
            }
        }
    }
    Ok(())
}

/// Checks that changes of a cell can be held back.
fn ensure_gate(cells: &CellSet, cell: usize) -> Result<(), StoreError> {
    if cells.rows(cell).has_gate() {
        return Ok(());
    }
    let name = &cells.configs[cell].name;
    Err(StoreError::backend(format!(
        "platforms cannot be moved from or to the cell {name}: its store has no gate"
    )))
}

/// Ends a move at home. Shows the platform in a cell from which all copies were removed, if there is one, unless another run has
/// taken over: it waits for this unit, and then finds no move.
async fn end(
    cells: &CellSet,
    run: Run<'_>,
    claimed: &Claim,
    shown: Option<usize>,
) -> Result<(), StoreError> {
    let name = |cell: usize| cells.configs[cell].name.as_str();
    let of_move = Filter::eq(MOVES.key(), run.platform)
        .and(Filter::eq("source", name(claimed.source)))
        .and(Filter::eq("target", name(claimed.target)));
    let turn = cells.take_turn().await;
    let mut home = cells.rows(HOME).begin(Mode::ReadCommitted).await?;
    home.delete(&MOVES, &of_move).await?;
    match shown {
        Some(HOME) => show(home.as_mut(), run).await?,
        Some(cell) => {
            let mut unit = cells.rows(cell).begin(Mode::ReadCommitted).await?;
            show(unit.as_mut(), run).await?;
            unit.commit().await?;
        }
        None => {}
    }
    home.commit().await?;
    drop(turn);
    cells.directory.read_moves(cells.rows(HOME)).await
}

/// A move in progress.
struct Moving<'m> {
    cells: &'m Arc<CellSet>,
    run: Run<'m>,
    source: usize,
    target: usize,
    options: &'m MoveOptions,
}

/// The outcome of a switch: the number of rows in each table when they were compared last, and the pause.
type SwitchOutcome = (Vec<(&'static str, u64)>, Duration);

impl Moving<'_> {
    async fn copy_and_switch(
        &self,
        on_progress: &mut (dyn FnMut(MoveProgress) + Send),
    ) -> Result<SwitchOutcome, MoveError> {
        self.settle_target().await?;
        on_progress(MoveProgress::Announced);
        sleep(self.options.settle_time).await;
        backfill(self.cells, self.source, self.run.platform).await?;
        let is_recorded = self.recording(self.target).start().await?;
        let mut transfer = Transfer::new(self.cells, self.run, self.source, self.target);
        for _ in 0..PASSES {
            self.copy(&mut transfer, on_progress).await?;
        }
        for _ in 0..MAX_ROUNDS {
            if !is_recorded || self.catch_up(&transfer, on_progress).await? {
                break;
            }
        }
        for _ in 0..self.options.max_attempts {
            if let Some(pause) = self.switch(&mut transfer, is_recorded).await? {
                return Ok((transfer.into_tables(), pause));
            }
            on_progress(MoveProgress::TooSlow);
            self.pause().await;
            if is_recorded {
                self.catch_up(&transfer, on_progress).await?;
            }
        }
        // The next run compares all rows.
        self.recording(self.target).stop().await?;
        Err(MoveError::TooSlow)
    }

    /// The recording of the source. The platform is hidden in the other cell.
    fn recording(&self, hidden_in: usize) -> Recording<'_> {
        Recording {
            cells: self.cells,
            run: self.run,
            source: self.source,
            hidden_in,
        }
    }

    /// Sleeps before the next attempt. Two moves in opposite directions do not try again at the same time.
    async fn pause(&self) {
        let mut random = [0];
        self.cells.entropy.fill(&mut random);
        sleep(RETRY_PAUSE + RETRY_PAUSE * u32::from(random[0]) / 255).await;
    }

    /// Waits until the units that write to the target, and could not know that the platform is hidden there, have ended.
    async fn settle_target(&self) -> Result<(), MoveError> {
        let cells = self.cells;
        let rows = cells.rows(self.target);
        remove_old_hidden_rows(cells, self.target).await?;
        for _ in 0..GATE_ATTEMPTS {
            let mut unit = rows.begin(Mode::ReadCommitted).await?;
            match unit.close_gate(GATE_WAIT).await {
                Ok(()) => {
                    unit.rollback().await;
                    return Ok(());
                }
                Err(StoreError::Retry(_)) => self.pause().await,
                Err(error) => return Err(error.into()),
            }
        }
        Err(MoveError::TooSlow)
    }

    /// Runs a pass.
    async fn copy(
        &self,
        transfer: &mut Transfer<'_>,
        on_progress: &mut (dyn FnMut(MoveProgress) + Send),
    ) -> Result<(), StoreError> {
        let mut on_table = |table, rows| on_progress(MoveProgress::Copying { table, rows });
        let pass = transfer.copy_all(&mut on_table).await?;
        on_progress(MoveProgress::Copied {
            rows: pass.rows,
            changed: pass.changed,
        });
        Ok(())
    }

    /// Copies rows that have changed. Returns whether few changes are left.
    async fn catch_up(
        &self,
        transfer: &Transfer<'_>,
        on_progress: &mut (dyn FnMut(MoveProgress) + Send),
    ) -> Result<bool, StoreError> {
        let recording = self.recording(self.target);
        let (changes, is_last) = transfer.copy_changes(&recording).await?;
        on_progress(MoveProgress::CaughtUp { changes });
        Ok(is_last && changes <= FEW_CHANGES)
    }

    /// Copies all changes that are recorded, while nothing changes in the source.
    async fn copy_last_changes(&self, transfer: &Transfer<'_>) -> Result<(), StoreError> {
        let recording = self.recording(self.target);
        while let (_, false) = transfer.copy_changes(&recording).await? {}
        Ok(())
    }

    /// Copies the last changes and switches to the target. Returns the pause; `None`, with nothing changed, if it would be too
    /// long.
    async fn switch(
        &self,
        transfer: &mut Transfer<'_>,
        is_recorded: bool,
    ) -> Result<Option<Duration>, StoreError> {
        let cells = self.cells;
        let _turn = cells.take_turn().await;
        let started = Instant::now();
        let mut leaving = cells.rows(self.source).begin(Mode::ReadCommitted).await?;
        match leaving.close_gate(self.options.max_pause / 2).await {
            Ok(()) => {}
            Err(StoreError::Retry(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
        let last = async {
            match is_recorded {
                true => self.copy_last_changes(transfer).await,
                false => transfer.copy_all(&mut |_, _| {}).await.map(|_| ()),
            }
        };
        let left = self.options.max_pause.saturating_sub(started.elapsed());
        let Ok(copied) = timeout(left, last).await else {
            leaving.rollback().await;
            return Ok(None);
        };
        copied?;
        self.commit(leaving).await?;
        cells.directory.forget(self.run.platform);
        Ok(Some(started.elapsed()))
    }

    /// Changes the directory and what both cells hide, and moves the leases of running jobs.
    async fn commit(&self, mut leaving: Box<dyn RowTx>) -> Result<(), StoreError> {
        let cells = self.cells;
        let mut arriving = cells.rows(self.target).begin(Mode::ReadCommitted).await?;
        let mut home = match [self.source, self.target].contains(&HOME) {
            true => None,
            false => Some(cells.rows(HOME).begin(Mode::ReadCommitted).await?),
        };
        // At home first: there, another run waits for this one.
        let of_home = match &mut home {
            Some(home) => home.as_mut(),
            None if self.source == HOME => leaving.as_mut(),
            None => arriving.as_mut(),
        };
        self.change_directory(of_home).await?;
        self.move_leases(leaving.as_mut(), arriving.as_mut())
            .await?;
        hide(leaving.as_mut(), self.run).await?;
        show(arriving.as_mut(), self.run).await?;
        let (home, others) = match home {
            Some(home) => (home, vec![(self.source, leaving), (self.target, arriving)]),
            None if self.source == HOME => (leaving, vec![(self.target, arriving)]),
            None => (arriving, vec![(self.source, leaving)]),
        };
        // A command that is interrupted does not stop a commit half-way.
        let together = tokio::spawn(commit_together(Arc::clone(cells), home, others));
        together.await.map_err(StoreError::commit_unknown)?
    }

    async fn change_directory(&self, home: &mut dyn RowTx) -> Result<(), StoreError> {
        let name = |cell: usize| self.cells.configs[cell].name.as_str();
        let entry = Filter::eq(PLATFORMS.key(), self.run.platform);
        let entry = entry.and(Filter::eq("cell", name(self.source)));
        let set = [("cell", Value::text(name(self.target)))];
        let is_recorded = lock_move(home, self.run.platform).await?;
        match home.update(&PLATFORMS, &entry, &set).await? {
            1 if is_recorded => Ok(()),
            _ => Err(StoreError::backend(
                "another process has changed the cell of the platform",
            )),
        }
    }

    /// Moves the leases of the platform's jobs. They name no platform, so they are never in two cells.
    async fn move_leases(
        &self,
        leaving: &mut dyn RowTx,
        arriving: &mut dyn RowTx,
    ) -> Result<(), StoreError> {
        let (leases, jobs) = (JobLease::TABLE, Job::TABLE);
        let mut rows = copies(leaving, &Select::of(leases)).await?;
        let keys: Vec<Value> = rows.iter().filter_map(|row| row.first().cloned()).collect();
        let lanes = Naming::Lane.names(self.run.platform);
        let lanes = lanes.iter().map(|lane| Value::text(lane)).collect();
        let of_platform = Filter::In(jobs.key(), keys).and(Filter::In("lane", lanes));
        let found = copies(leaving, &Select::of(jobs).filter(of_platform)).await?;
        let found: BTreeSet<&Value> = found.iter().filter_map(|row| row.first()).collect();
        rows.retain(|row| row.first().is_some_and(|key| found.contains(key)));
        if rows.is_empty() {
            return Ok(());
        }
        let keys = rows.iter().filter_map(|row| row.first().cloned()).collect();
        leaving
            .delete(leases, &Filter::In(leases.key(), keys))
            .await?;
        arriving.insert_many(leases, rows).await
    }
}
