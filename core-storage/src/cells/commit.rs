//! The commit of a unit that changed several databases, in two phases.
//!
//! 1. Every database but home prepares the unit. From then on it can be committed, whatever happens to this process.
//! 2. Home stores the decision together with its own changes. Its commit is the commit of the unit.
//! 3. The other databases commit what they prepared.
//!
//! If the process ends in between, or cannot reach a database, another one carries on ([`end_abandoned`]). If home has no
//! decision, that process first stores the decision to undo the unit. Only one of the two decisions can be stored.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::{Arc, Weak};
use std::time::Duration;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use tokio::time::{Instant, sleep, timeout};

use super::availability::{MAX_FAILURES, PROBE_TIMEOUT, next_probe};
use super::cell_set::CellSet;
use super::config::HOME;
use super::tables::DECISIONS;
use crate::filter::Filter;
use crate::query::Select;
use crate::row_store::{PreparedUnit, RowTx, UnitEnd, copies};
use crate::value::{ReadRow, Row, Value};

/// The pause between two searches for abandoned units.
const INTERVAL: Duration = Duration::from_secs(5);

/// The age from which a prepared unit without a decision counts as abandoned. Its process usually decides within milliseconds.
const MIN_AGE: Duration = Duration::from_secs(10);

/// How long a move waits for the end of prepared units.
const MAX_WAIT: Duration = Duration::from_secs(3);

/// How long a reader leaves it to the process of a unit to carry out its decision.
const LEFT_TO_PROCESS: Duration = Duration::from_millis(100);

/// The pause between two looks at units that a reader waits for.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// How long a decision is kept after all databases have carried it out, because their lists are not read at one time.
const KEEP_DECISIONS: Duration = Duration::from_secs(60 * 60);

/// The maximum number of old decisions that are removed in one unit of work.
const MAX_REMOVED: u32 = 1_000;

/// Returns the start of the names of the units that this installation prepares in the cell.
pub(super) fn prefix(cells: &CellSet, cell: usize) -> String {
    format!("core:{}:{}:", cells.installation, cells.configs[cell].name)
}

/// Returns the units of this installation that are prepared in the cell.
pub(super) async fn prepared_units(
    cells: &CellSet,
    cell: usize,
) -> Result<Vec<PreparedUnit>, StoreError> {
    let units = read_prepared_units(cells, cell);
    cells.availability.while_reached(cell, units).await
}

/// Returns these units also if the cell could not be reached.
async fn read_prepared_units(
    cells: &CellSet,
    cell: usize,
) -> Result<Vec<PreparedUnit>, StoreError> {
    cells.rows(cell).prepared_units(&prefix(cells, cell)).await
}

async fn end(cells: &CellSet, cell: usize, id: &str, end: UnitEnd) -> Result<(), StoreError> {
    let name = prefix(cells, cell) + id;
    cells.rows(cell).end_prepared(&name, end).await
}

/// Undoes the unit in the cells that may have prepared it. Where this fails, the unit is undone later.
async fn undo(cells: &CellSet, prepared: &[usize], id: &str) {
    for cell in prepared {
        let _later = end(cells, *cell, id, UnitEnd::Rollback).await;
    }
}

/// Returns a random name.
pub(super) fn new_id(cells: &CellSet) -> String {
    let mut random = [0; 16];
    cells.entropy.fill(&mut random);
    random.iter().fold(String::new(), |mut id, byte| {
        // Writing to a string does not fail.
        let _ = write!(id, "{byte:02x}");
        id
    })
}

/// Commits a unit of the home cell and of others.
///
/// # Errors
/// Those of [`RowTx::commit`]. [`StoreError::CommitUnknown`] also if the unit is committed, and a database could not be
/// reached to make its part visible.
pub(super) async fn commit_together(
    cells: Arc<CellSet>,
    mut home: Box<dyn RowTx>,
    others: Vec<(usize, Box<dyn RowTx>)>,
) -> Result<(), StoreError> {
    let id = new_id(&cells);
    let mut prepared = Vec::with_capacity(others.len());
    for (cell, unit) in others {
        // The reply may be lost, so the cell may have prepared the unit although there is an error.
        prepared.push(cell);
        let name = prefix(&cells, cell) + &id;
        if let Err(error) = unit.prepare(&name).await {
            home.rollback().await;
            undo(&cells, &prepared, &id).await;
            return Err(error);
        }
    }
    if let Err(error) = store_decision(home.as_mut(), &id).await {
        home.rollback().await;
        undo(&cells, &prepared, &id).await;
        return Err(error);
    }
    match home.commit().await {
        Ok(()) => {}
        Err(unknown @ StoreError::CommitUnknown(_)) => return Err(unknown),
        Err(error) => {
            undo(&cells, &prepared, &id).await;
            return Err(error);
        }
    }
    let mut outcome = Ok(());
    for cell in prepared {
        let ended = end(&cells, cell, &id, UnitEnd::Commit).await;
        outcome = outcome.and(ended);
    }
    outcome.map_err(|error| match error {
        unknown @ StoreError::CommitUnknown(_) => unknown,
        other => StoreError::commit_unknown(other),
    })
}

/// Waits until the units that are prepared in the cell have ended.
///
/// # Errors
/// [`StoreError::Unavailable`] if they have not ended after a few seconds, because their process did.
pub(super) async fn wait_for_prepared(cells: &CellSet, cell: usize) -> Result<(), StoreError> {
    match wait_for_end(cells, cell, MAX_WAIT).await?.is_empty() {
        true => Ok(()),
        false => Err(StoreError::unavailable(
            "a change of several cells has not ended yet",
        )),
    }
}

/// Makes everything visible in the cell that the unit of home sees as decided. Carries out decisions whose process ended, or could
/// not reach the cell.
///
/// # Errors
/// [`StoreError::Unavailable`] if a decision cannot be carried out now.
pub(super) async fn carry_out_decisions(
    cells: &CellSet,
    cell: usize,
    home: &mut dyn RowTx,
) -> Result<(), StoreError> {
    for id in wait_for_end(cells, cell, LEFT_TO_PROCESS).await? {
        if is_committed(home, &id).await? {
            // The reader has changed nothing, whatever the error says about the unit.
            let ended = end(cells, cell, &id, UnitEnd::Commit).await;
            ended.map_err(StoreError::unavailable)?;
        }
    }
    Ok(())
}

/// Waits for the end of the units that are prepared in the cell. Returns those that have not ended after this time.
async fn wait_for_end(
    cells: &CellSet,
    cell: usize,
    max_wait: Duration,
) -> Result<BTreeSet<String>, StoreError> {
    if cell == HOME {
        return Ok(BTreeSet::new());
    }
    let prefix = prefix(cells, cell);
    let ids = async || {
        let units = prepared_units(cells, cell).await?;
        let id = |unit: PreparedUnit| unit.name.strip_prefix(&prefix).map(str::to_owned);
        Ok::<BTreeSet<String>, StoreError>(units.into_iter().filter_map(id).collect())
    };
    let began = Instant::now();
    let mut waiting = ids().await?;
    while !waiting.is_empty() && began.elapsed() < max_wait {
        sleep(POLL_INTERVAL).await;
        let left = ids().await?;
        waiting.retain(|id| left.contains(id));
    }
    Ok(waiting)
}

/// Stores the decision to commit, in the unit of the home cell.
async fn store_decision(home: &mut dyn RowTx, id: &str) -> Result<(), StoreError> {
    let now = home.now().await?.millis();
    let stored = home.insert(&DECISIONS, decision(id, true, now)).await;
    stored.map_err(StoreError::conflict_as_retry)
}

fn decision(id: &str, is_committed: bool, at: i64) -> Row {
    vec![
        Value::text(id),
        Value::Bool(is_committed),
        Value::Int(at),
        Value::Int(1),
    ]
}

/// Ends the units that are decided, or were prepared at least this long ago, and removes old decisions. Returns the number of
/// units.
pub(super) async fn end_abandoned(cells: &CellSet, min_age: Duration) -> Result<u64, StoreError> {
    let mut ended = 0;
    let mut open = BTreeSet::new();
    let mut outcome = Ok(());
    for cell in HOME + 1..cells.configs.len() {
        match end_in_cell(cells, cell, min_age, &mut open).await {
            Ok(count) => ended += count,
            Err(error) => outcome = Err(error),
        }
    }
    outcome?;
    while remove_old_decisions(cells, &open).await? == u64::from(MAX_REMOVED) {}
    Ok(ended)
}

/// Ends abandoned units until the cells are dropped. After an error of a store, the next round tries again.
pub(super) async fn end_abandoned_until_dropped(cells: Weak<CellSet>) {
    loop {
        sleep(INTERVAL).await;
        let Some(cells) = cells.upgrade() else {
            return;
        };
        let _in_the_next_round = end_abandoned(&cells, MIN_AGE).await;
    }
}

/// Ends the abandoned units of one cell. Adds the ids of the others to `open`.
async fn end_in_cell(
    cells: &CellSet,
    cell: usize,
    min_age: Duration,
    open: &mut BTreeSet<String>,
) -> Result<u64, StoreError> {
    let units = prepared_units(cells, cell).await?;
    end_units(cells, cell, units, min_age, open).await
}

/// Ends those of the units that are abandoned. Adds the ids of the others to `open`.
async fn end_units(
    cells: &CellSet,
    cell: usize,
    units: Vec<PreparedUnit>,
    min_age: Duration,
    open: &mut BTreeSet<String>,
) -> Result<u64, StoreError> {
    let prefix = prefix(cells, cell);
    let (mut ended, mut outcome) = (0, Ok(()));
    for unit in units {
        let Some(id) = unit.name.strip_prefix(&prefix) else {
            continue;
        };
        // A unit that cannot be ended does not keep the others from their end.
        match end_if_decided(cells, cell, id, unit.age >= min_age).await {
            Ok(true) => ended += 1,
            Ok(false) => {
                open.insert(id.to_owned());
            }
            Err(error) => outcome = Err(error),
        }
    }
    outcome.map(|()| ended)
}

/// Ends a unit that is decided, or decides it if it `is_old`. Returns whether it has ended.
async fn end_if_decided(
    cells: &CellSet,
    cell: usize,
    id: &str,
    is_old: bool,
) -> Result<bool, StoreError> {
    if !is_old {
        let mut home = cells.rows(HOME).begin(Mode::Auto).await?;
        if !is_committed(home.as_mut(), id).await? {
            return Ok(false);
        }
    }
    let decision = decide(cells, id).await?;
    end(cells, cell, id, decision).await?;
    Ok(true)
}

/// Asks a cell once a second whether it can be reached, until the cells are dropped.
pub(super) async fn watch_until_dropped(cells: Weak<CellSet>, cell: usize) {
    let mut failures = 0;
    loop {
        let probe = async {
            let cells = cells
                .upgrade()
                .ok_or_else(|| StoreError::unavailable("dropped"))?;
            read_prepared_units(&cells, cell).await.map(drop)
        };
        let is_reached = next_probe(probe).await;
        let Some(cells) = cells.upgrade() else {
            return;
        };
        failures = if is_reached { 0 } else { failures + 1 };
        if !cells.availability.is_away(cell) && failures < MAX_FAILURES {
            continue;
        }
        let name = &cells.configs[cell].name;
        if cells.availability.record(cell, false) {
            tracing::warn!(cell = %name, "the cell cannot be reached; requests for its platforms fail");
        }
        if restore(&cells, cell).await.is_ok() {
            cells.availability.record(cell, true);
            tracing::info!(cell = %name, "the cell can be reached again");
        }
    }
}

/// Carries out the decisions of the time in which the cell could not be reached, so that they are visible before anything is
/// read.
///
/// # Errors
/// [`StoreError`] if the cell cannot be reached.
async fn restore(cells: &CellSet, cell: usize) -> Result<(), StoreError> {
    let units = timeout(PROBE_TIMEOUT, read_prepared_units(cells, cell)).await;
    let units = units.map_err(StoreError::unavailable)??;
    // Units can have another address than the recovery.
    let unit = cells.rows(cell).begin(Mode::Auto).await?;
    unit.rollback().await;
    if let Err(error) = end_units(cells, cell, units, MIN_AGE, &mut BTreeSet::new()).await {
        let cell = &cells.configs[cell].name;
        tracing::warn!(%cell, %error, "a change of several cells cannot be ended");
    }
    Ok(())
}

/// Returns whether home has decided to commit a unit.
async fn is_committed(home: &mut dyn RowTx, id: &str) -> Result<bool, StoreError> {
    let of_unit = Select::of(&DECISIONS).filter(Filter::eq(DECISIONS.key(), id));
    let mut is_committed = false;
    let mut visit = |row: &dyn ReadRow| {
        is_committed = row.read(1)?.as_bool() == Some(true);
        Ok(())
    };
    home.select(&of_unit, &mut visit).await?;
    Ok(is_committed)
}

/// Returns the decision about a unit. If home has none, the unit is undone.
async fn decide(cells: &CellSet, id: &str) -> Result<UnitEnd, StoreError> {
    let mut home = cells.rows(HOME).begin(Mode::ReadCommitted).await?;
    let now = home.now().await?.millis();
    let mut end = UnitEnd::Rollback;
    let mut visit = |row: &dyn ReadRow| {
        if row.read(1)?.as_bool() == Some(true) {
            end = UnitEnd::Commit;
        }
        Ok(())
    };
    home.insert_or_lock(&DECISIONS, vec![decision(id, false, now)], &mut visit)
        .await?;
    home.commit().await?;
    Ok(end)
}

/// Removes decisions that every database has carried out, at most [`MAX_REMOVED`]. `open` has the ids of the units that are still
/// prepared. Returns the number of decisions.
async fn remove_old_decisions(cells: &CellSet, open: &BTreeSet<String>) -> Result<u64, StoreError> {
    let mut home = cells.rows(HOME).begin(Mode::ReadCommitted).await?;
    let keep = i64::try_from(KEEP_DECISIONS.as_millis()).unwrap_or(i64::MAX);
    let bound = home.now().await?.millis().saturating_sub(keep);
    let old = Select::of(&DECISIONS)
        .filter(Filter::lt("decided_at", bound))
        .order_by("decided_at")
        .limit(MAX_REMOVED);
    let mut keys = Vec::new();
    for row in copies(home.as_mut(), &old).await? {
        keys.extend(row.into_iter().next());
    }
    keys.retain(|key| key.as_text().is_some_and(|id| !open.contains(id)));
    if keys.is_empty() {
        home.rollback().await;
        return Ok(0);
    }
    let with_keys = Filter::In(DECISIONS.key(), keys);
    let removed = home.delete(&DECISIONS, &with_keys).await?;
    home.commit().await?;
    Ok(removed)
}
