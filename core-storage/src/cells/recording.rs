//! The changes of a platform that its cell records while the platform moves to another cell.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use tokio::time::sleep;

use super::cell_set::CellSet;
use super::hidden::{Run, lock_hidden};
use super::place::named_tables;
use super::tables::CHANGES;
use crate::filter::Filter;
use crate::query::Select;
use crate::row_store::{RecordedRows, RowTx};
use crate::value::{ReadRow, Value};

/// The maximum number of changes that are read at once.
const MAX_CHANGES: u32 = 2_000;

/// How long a table's triggers wait for units that have changed the table, in one attempt after the other. New units that change it
/// wait behind them. The last wait is longer than the `deadlock_timeout` of the server (1 s): after that, it interrupts a vacuum of the table.
const TRIGGER_WAITS: [Duration; 4] = [
    Duration::from_millis(300),
    Duration::from_millis(300),
    Duration::from_millis(300),
    Duration::from_millis(1_300),
];

/// The maximum number of times that all these attempts are made.
const TRIGGER_ROUNDS: usize = 15;

/// The pause between two attempts.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// A part of the recorded changes of a platform.
pub(super) struct RecordedChanges {
    /// The keys of the changed rows, by the name of their table.
    pub(super) keys: BTreeMap<String, BTreeSet<String>>,
    /// The keys of the records of these changes.
    pub(super) ids: Vec<Value>,
}

impl RecordedChanges {
    /// Reads changes of a platform in a unit of its cell.
    pub(super) async fn read(unit: &mut dyn RowTx, platform: &str) -> Result<Self, StoreError> {
        let (mut keys, mut ids) = (BTreeMap::new(), Vec::new());
        let mut visit = |row: &dyn ReadRow| {
            let text =
                |at| Ok::<_, StoreError>(row.read(at)?.as_text().unwrap_or_default().to_owned());
            ids.push(Value::text(&text(0)?));
            let of_table: &mut BTreeSet<String> = keys.entry(text(2)?).or_default();
            of_table.insert(text(3)?);
            Ok(())
        };
        let of_platform = Filter::eq("platform_id", platform);
        let select = Select::of(&CHANGES).filter(of_platform).limit(MAX_CHANGES);
        unit.select(&select, &mut visit).await?;
        Ok(Self { keys, ids })
    }

    async fn delete(self, mut change: GuardedUnit) -> Result<(), StoreError> {
        if !self.ids.is_empty() {
            let of_ids = Filter::In(CHANGES.key(), self.ids);
            change.unit().delete(&CHANGES, &of_ids).await?;
        }
        change.commit().await
    }

    /// Returns whether the unit that read these saw no more changes.
    pub(super) fn is_last(&self) -> bool {
        self.ids.len() < MAX_CHANGES as usize
    }
}

/// The recording of a run's platform in the cell that it leaves.
#[derive(Clone, Copy)]
pub(super) struct Recording<'r> {
    pub(super) cells: &'r CellSet,
    pub(super) run: Run<'r>,
    /// The cell that records.
    pub(super) source: usize,
    /// The cell where the platform is hidden. No other run takes over while a table's triggers change.
    pub(super) hidden_in: usize,
}

impl Recording<'_> {
    /// Starts to record, or goes on. Returns whether the source can record changes.
    pub(super) async fn start(&self) -> Result<bool, StoreError> {
        self.change_all(true).await
    }

    /// Stops to record, and deletes all recorded changes.
    pub(super) async fn stop(&self) -> Result<(), StoreError> {
        if !self.change_all(false).await? {
            return Ok(());
        }
        loop {
            let mut change = self.begin().await?;
            let changes = RecordedChanges::read(change.unit(), self.run.platform).await?;
            let is_last = changes.is_last();
            changes.delete(change).await?;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Deletes changes that were copied.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if another run has taken over.
    pub(super) async fn forget(&self, changes: RecordedChanges) -> Result<(), StoreError> {
        if changes.ids.is_empty() {
            return Ok(());
        }
        changes.delete(self.begin().await?).await
    }

    /// Starts or stops to record the changes of all tables. Returns whether the source can record changes.
    async fn change_all(&self, is_on: bool) -> Result<bool, StoreError> {
        for (table, column, naming) in named_tables() {
            let names = naming.names(self.run.platform);
            let rows = RecordedRows {
                platform: self.run.platform,
                table,
                column,
                names: &names,
            };
            if !self.change(&rows, is_on).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Starts or stops to record the changes of a table. Returns whether the source can record changes.
    async fn change(&self, rows: &RecordedRows<'_>, is_on: bool) -> Result<bool, StoreError> {
        for attempt in 0..TRIGGER_WAITS.len() * TRIGGER_ROUNDS {
            let max_wait = TRIGGER_WAITS[attempt % TRIGGER_WAITS.len()];
            match self.try_change(rows, is_on, max_wait).await {
                Err(StoreError::Retry(_)) => sleep(RETRY_PAUSE).await,
                outcome => return outcome,
            }
        }
        Err(StoreError::unavailable(
            "units of work that have changed a table of the platform did not end in time",
        ))
    }

    async fn try_change(
        &self,
        rows: &RecordedRows<'_>,
        is_on: bool,
        max_wait: Duration,
    ) -> Result<bool, StoreError> {
        let mut change = self.begin().await?;
        let can_record = change.unit().set_recording(rows, is_on, max_wait).await?;
        change.commit().await?;
        Ok(can_record)
    }

    /// Opens a unit of the source, until whose end no other run takes over.
    async fn begin(&self) -> Result<GuardedUnit, StoreError> {
        let hidden_in = self.cells.rows(self.hidden_in);
        let mut guard = hidden_in.begin(Mode::ReadCommitted).await?;
        lock_hidden(guard.as_mut(), self.run).await?;
        let of_source = match self.source == self.hidden_in {
            true => None,
            false => {
                let source = self.cells.rows(self.source);
                Some(source.begin(Mode::ReadCommitted).await?)
            }
        };
        Ok(GuardedUnit { guard, of_source })
    }
}

/// A unit of the source, and the unit that prevents a takeover.
struct GuardedUnit {
    guard: Box<dyn RowTx>,
    /// `None` if the other one is of the source.
    of_source: Option<Box<dyn RowTx>>,
}

impl GuardedUnit {
    fn unit(&mut self) -> &mut dyn RowTx {
        self.of_source.as_mut().unwrap_or(&mut self.guard).as_mut()
    }

    async fn commit(self) -> Result<(), StoreError> {
        let Some(of_source) = self.of_source else {
            return self.guard.commit().await;
        };
        of_source.commit().await?;
        self.guard.rollback().await;
        Ok(())
    }
}
