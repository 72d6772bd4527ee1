//! Hidden platforms: rows in a cell that does not serve their platform.
//!
//! While a platform moves, both of its cells have its rows. Queries must see those of one cell only.

use std::collections::BTreeSet;
use std::time::Duration;

use core_domain::kernel::StoreError;
use core_domain::provisioning::Job;

use super::place::{Naming, Place, place_of};
use super::tables::HIDDEN;
use crate::filter::Filter;
use crate::query::Select;
use crate::row_store::{RowTx, copies};
use crate::table::Table;
use crate::tabular::Tabular;
use crate::value::{ReadRow, Row, Value};

/// How long a platform stays hidden in the cell that it left. No unit of work is open for so long.
const KEEP: Duration = Duration::from_secs(60 * 60);

/// Returns the platforms that are hidden in the cell of the unit.
pub(super) async fn hidden_platforms(unit: &mut dyn RowTx) -> Result<Vec<String>, StoreError> {
    let mut platforms = Vec::new();
    let mut visit = |row: &dyn ReadRow| {
        platforms.extend(row.read(0)?.as_text().map(str::to_owned));
        Ok(())
    };
    unit.select(&Select::of(&HIDDEN), &mut visit).await?;
    Ok(platforms)
}

/// Returns a filter for the rows of the table that belong to none of the platforms; `None` if no row of the table names a
/// platform. The rows of jobs name none: see [`hidden_jobs`]. Leases are never in two cells.
pub(super) fn rows_without(table: &Table, platforms: &[String]) -> Option<Filter> {
    let Place::Named(column, naming) = place_of(table) else {
        return None;
    };
    let names = platforms.iter().flat_map(|platform| naming.names(platform));
    let differ = names.map(|name| Filter::ne(column, Value::text(&name)));
    let differ = Filter::And(differ.collect());
    let is_nullable = table.column(column).is_ok_and(|column| column.nullable);
    Some(match is_nullable {
        true => Filter::Or(vec![Filter::IsNull(column), differ]),
        false => differ,
    })
}

/// Returns the jobs of hidden platforms to which rows of the cell belong, if the table names only jobs.
pub(super) async fn hidden_jobs(
    unit: &mut dyn RowTx,
    table: &'static Table,
    rows: &[Row],
    platforms: &[String],
) -> Result<BTreeSet<Value>, StoreError> {
    let (Place::OfJob(column), [_, ..]) = (place_of(table), platforms) else {
        return Ok(BTreeSet::new());
    };
    let keys = rows.iter().map(|row| table.value(row, column).clone());
    let keys = Filter::In(Job::TABLE.key(), keys.collect());
    let lanes = platforms
        .iter()
        .flat_map(|platform| Naming::Lane.names(platform));
    let lanes = lanes.map(|lane| Value::text(&lane)).collect();
    let of_hidden = Select::of(Job::TABLE).filter(keys.and(Filter::In("lane", lanes)));
    let jobs = copies(unit, &of_hidden).await?.into_iter();
    Ok(jobs.filter_map(|job| job.into_iter().next()).collect())
}

/// Returns whether the row belongs to one of the jobs.
pub(super) fn is_of_job(table: &Table, row: &Row, jobs: &BTreeSet<Value>) -> bool {
    match place_of(table) {
        Place::OfJob(column) => jobs.contains(table.value(row, column)),
        _ => false,
    }
}

/// One run of the command that moves a platform. Only the latest run changes rows: an earlier one, whose process stalled, fails.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<'r> {
    pub(super) platform: &'r str,
    /// A random name.
    pub(super) name: &'r str,
}

/// Hides the platform of a run in the cell of the unit. If it is hidden already, the run takes over from the one before.
pub(super) async fn hide(unit: &mut dyn RowTx, run: Run<'_>) -> Result<(), StoreError> {
    let now = unit.now().await?.millis();
    let row = vec![
        Value::text(run.platform),
        Value::Int(now),
        Value::text(run.name),
        Value::Int(1),
    ];
    match unit.insert_new(&HIDDEN, vec![row]).await?.is_empty() {
        true => take_over(unit, run).await,
        false => Ok(()),
    }
}

/// Makes a run the latest one in the cell of the unit, where the platform is hidden.
///
/// # Errors
/// [`StoreError::Backend`] if the cell serves the platform.
pub(super) async fn take_over(unit: &mut dyn RowTx, run: Run<'_>) -> Result<(), StoreError> {
    let now = unit.now().await?.millis();
    let of_platform = Filter::eq(HIDDEN.key(), run.platform);
    let set = [
        ("hidden_at", Value::Int(now)),
        ("run", Value::text(run.name)),
    ];
    match unit.update(&HIDDEN, &of_platform, &set).await? {
        1 => Ok(()),
        _ => Err(other_run_error(run)),
    }
}

/// Ends the hiding of a platform in the cell of the unit.
///
/// # Errors
/// [`StoreError::Backend`] if another run has taken over.
pub(super) async fn show(unit: &mut dyn RowTx, run: Run<'_>) -> Result<(), StoreError> {
    let of_run = Filter::eq(HIDDEN.key(), run.platform).and(Filter::eq("run", run.name));
    match unit.delete(&HIDDEN, &of_run).await? {
        1 => Ok(()),
        _ => Err(other_run_error(run)),
    }
}

/// Locks the row that hides a platform, so that the cell does not start to serve it, and no other run takes over, before the
/// unit has ended.
///
/// # Errors
/// [`StoreError::Backend`] if the cell serves the platform, or if another run has taken over.
pub(super) async fn lock_hidden(unit: &mut dyn RowTx, run: Run<'_>) -> Result<(), StoreError> {
    let mut is_current = false;
    let mut visit = |row: &dyn ReadRow| {
        is_current = row.read(2)?.as_text() == Some(run.name);
        Ok(())
    };
    let key = Value::text(run.platform);
    unit.lock(&HIDDEN, &key, &mut visit).await?;
    match is_current {
        true => Ok(()),
        false => Err(other_run_error(run)),
    }
}

/// Removes the rows of platforms that have been hidden for long, except of these. No unit remembers that the cell served them.
pub(super) async fn remove_old_rows(
    unit: &mut dyn RowTx,
    except: &[Value],
) -> Result<(), StoreError> {
    let keep = i64::try_from(KEEP.as_millis()).unwrap_or(i64::MAX);
    let bound = unit.now().await?.millis().saturating_sub(keep);
    let others = except
        .iter()
        .map(|platform| Filter::ne(HIDDEN.key(), platform.clone()));
    let old = Filter::lt("hidden_at", bound).and(Filter::And(others.collect()));
    unit.delete(&HIDDEN, &old).await?;
    Ok(())
}

fn other_run_error(run: Run<'_>) -> StoreError {
    StoreError::backend(format!(
        "another process has taken over the move of the platform {}",
        run.platform
    ))
}
