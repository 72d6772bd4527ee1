//! Copies all rows from one store to another, of the same or another engine, and compares them.

use std::cmp::Ordering;

use core_domain::kernel::{StoreError, hex};
use core_domain::port::Mode;
use sha2::{Digest, Sha256};

use crate::canonical::canonical_row;
use crate::filter::Filter;
use crate::query::Select;
use crate::row_store::{RowStore, RowTx};
use crate::table::Table;
use crate::tables;
use crate::value::{ReadRow, Row, Value};

/// Number of rows that are read at once, and written in one unit of work.
const PAGE_ROWS: u32 = 500;

/// The number of rows of a table and their digest. Equal tables have equal digests, whatever the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDigest {
    /// The name of the table.
    pub table: &'static str,
    /// The number of rows.
    pub rows: u64,
    /// The SHA-256 of all rows in the order of their keys, as hexadecimal digits.
    pub sha256: String,
}

/// The progress of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// The table that is being copied.
    pub table: &'static str,
    /// The number of rows of this table that were read so far.
    pub rows: u64,
    /// The number of tables that are complete.
    pub complete_tables: usize,
    /// The number of all tables.
    pub tables: usize,
}

/// The state of the destination before a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyStart {
    /// The destination has no rows; otherwise nothing is copied.
    Empty,
    /// The destination has a part of an earlier copy of the same source. Rows that differ are replaced, and rows that the
    /// source does not have are deleted.
    Resumed,
}

/// The reason why a copy ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The source cannot be read.
    #[error("the source cannot be read")]
    Source(#[source] StoreError),
    /// The destination cannot be read or written. If it is reachable again, the copy can be repeated, and continues.
    #[error("the destination cannot be written")]
    Destination(#[source] StoreError),
    /// The destination already has rows in this table. Nothing was changed.
    #[error("the destination already has records in the table {0}; use an empty database")]
    NotEmpty(&'static str),
    /// The destination has rows of an append-only table that the source does not have. It belongs to another
    /// installation.
    #[error("the destination has other records in the table {0}; it is not a copy of this source")]
    OtherInstallation(&'static str),
    /// After the copy, the table differs. Another program has changed the destination.
    #[error("the copy of the table {0} differs from its source; another program changes it")]
    Differs(&'static str),
}

/// Copies every row of the suite's tables, and verifies the copy by the counts and digests of all tables. Returns those
/// of the source.
///
/// The rows are those of one state of the source: it is read in a single read unit, while other processes may change it.
/// Nothing else may use the destination. A copy that ended early can be [resumed](CopyStart::Resumed): rows that are equal
/// are not written again.
///
/// # Errors
/// See [`CopyError`].
pub async fn copy_rows(
    source: &dyn RowStore,
    destination: &dyn RowStore,
    start: CopyStart,
    on_progress: &mut (dyn FnMut(CopyProgress) + Send),
) -> Result<Vec<TableDigest>, CopyError> {
    let all = tables::of_records();
    if start == CopyStart::Empty {
        ensure_empty(destination).await?;
    }
    let mut reading = source.begin(Mode::Read).await.map_err(CopyError::Source)?;
    let mut copied = Vec::with_capacity(all.len());
    for (complete_tables, table) in all.iter().enumerate() {
        let mut report = |rows| {
            on_progress(CopyProgress {
                table: table.name,
                rows,
                complete_tables,
                tables: all.len(),
            });
        };
        copied.push(copy_table(table, reading.as_mut(), destination, &mut report).await?);
    }
    reading.rollback().await;
    let verified = digest_rows(destination).await;
    let verified = verified.map_err(CopyError::Destination)?;
    for (source, copy) in copied.iter().zip(&verified) {
        if source != copy {
            return Err(CopyError::Differs(source.table));
        }
    }
    Ok(copied)
}

/// Returns the counts and digests of all tables, in one state of the store.
///
/// # Errors
/// Only those of the store.
pub async fn digest_rows(store: &dyn RowStore) -> Result<Vec<TableDigest>, StoreError> {
    let mut reading = store.begin(Mode::Read).await?;
    let mut digests = Vec::new();
    for table in tables::of_records() {
        let mut digest = DigestInProgress::new(table);
        let mut after = None;
        loop {
            let page = read_page(reading.as_mut(), &Scope::all(table), after.take(), None).await?;
            digest.add(&page);
            match next_position(&page) {
                Some(position) => after = Some(position),
                None => break,
            }
        }
        digests.push(digest.finish());
    }
    reading.rollback().await;
    Ok(digests)
}

/// The digest of the rows that were read so far.
struct DigestInProgress {
    table: &'static Table,
    rows: u64,
    sha256: Sha256,
}

impl DigestInProgress {
    fn new(table: &'static Table) -> Self {
        Self {
            table,
            rows: 0,
            sha256: Sha256::new(),
        }
    }

    fn add(&mut self, rows: &[Row]) {
        for row in rows {
            self.sha256.update(canonical_row(row));
            self.rows += 1;
        }
    }

    fn finish(self) -> TableDigest {
        TableDigest {
            table: self.table.name,
            rows: self.rows,
            sha256: hex(&self.sha256.finalize()),
        }
    }
}

/// The rows of a table that are copied.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) table: &'static Table,
    /// Matches the rows that are copied.
    pub(crate) filter: Filter,
}

impl Scope {
    /// Returns all rows of a table.
    pub(crate) const fn all(table: &'static Table) -> Self {
        Self {
            table,
            filter: Filter::all(),
        }
    }
}

/// Reads a page of a table in the order of its keys: the rows after one key, up to another.
pub(crate) async fn read_page(
    unit: &mut dyn RowTx,
    scope: &Scope,
    after: Option<Value>,
    last: Option<&Value>,
) -> Result<Vec<Row>, StoreError> {
    let table = scope.table;
    let up_to = last.map(|last| Filter::le(table.key(), last.clone()));
    let mut select = Select::of(table)
        .filter(scope.filter.clone())
        .filter_if(up_to)
        .limit(PAGE_ROWS);
    select.after = after.map(|key| vec![key]);
    let mut rows = Vec::new();
    let mut visit = |row: &dyn ReadRow| {
        rows.push(table.copy_row(row)?);
        Ok(())
    };
    unit.select(&select, &mut visit).await?;
    Ok(rows)
}

/// Returns the position after a full page; `None` if the page is the last one.
pub(crate) fn next_position(page: &[Row]) -> Option<Value> {
    let is_full = page.len() == PAGE_ROWS as usize;
    page.last().filter(|_| is_full)?.first().cloned()
}

async fn copy_table(
    table: &'static Table,
    reading: &mut dyn RowTx,
    destination: &dyn RowStore,
    report: &mut (dyn FnMut(u64) + Send),
) -> Result<TableDigest, CopyError> {
    let scope = Scope::all(table);
    let mut digest = DigestInProgress::new(table);
    let is_empty = is_empty(destination, table).await;
    let is_empty = is_empty.map_err(CopyError::Destination)?;
    let mut after = None;
    loop {
        let page = read_page(reading, &scope, after.clone(), None).await;
        let page = page.map_err(CopyError::Source)?;
        digest.add(&page);
        let next = next_position(&page);
        let range = KeyRange {
            after: after.take(),
            last: next.as_ref(),
        };
        if !(is_empty && page.is_empty()) {
            write_page(destination, &scope, &range, page, is_empty).await?;
        }
        report(digest.rows);
        match next {
            Some(next) => after = Some(next),
            None => return Ok(digest.finish()),
        }
    }
}

/// Checks that a store has no rows in the suite's tables.
///
/// # Errors
/// [`CopyError::NotEmpty`] with the first table that has rows.
pub async fn ensure_empty(destination: &dyn RowStore) -> Result<(), CopyError> {
    for table in tables::of_records() {
        let is_empty = is_empty(destination, table).await;
        if !is_empty.map_err(CopyError::Destination)? {
            return Err(CopyError::NotEmpty(table.name));
        }
    }
    Ok(())
}

async fn is_empty(store: &dyn RowStore, table: &'static Table) -> Result<bool, StoreError> {
    let mut unit = store.begin(Mode::Auto).await?;
    let mut is_empty = true;
    let mut visit = |_: &dyn ReadRow| {
        is_empty = false;
        Ok(())
    };
    unit.select(&Select::of(table).limit(1), &mut visit).await?;
    unit.rollback().await;
    Ok(is_empty)
}

/// A range of keys.
pub(crate) struct KeyRange<'a> {
    /// The key before the range; `None` if it starts with the first key.
    pub(crate) after: Option<Value>,
    /// The last key of the range; `None` if it ends with the last key.
    pub(crate) last: Option<&'a Value>,
}

/// Makes the rows of a range of keys equal to those of the source.
async fn write_page(
    destination: &dyn RowStore,
    scope: &Scope,
    range: &KeyRange<'_>,
    source: Vec<Row>,
    is_empty: bool,
) -> Result<(), CopyError> {
    let unit = destination.begin(Mode::Write).await;
    let mut unit = unit.map_err(CopyError::Destination)?;
    let stored = if is_empty {
        Vec::new()
    } else {
        let stored = read_range(unit.as_mut(), scope, range).await;
        stored.map_err(CopyError::Destination)?
    };
    let Changes { delete, insert } = Changes::between(stored, source);
    let table = scope.table;
    if !delete.is_empty() && table.append_only {
        return Err(CopyError::OtherInstallation(table.name));
    }
    let write = async {
        if !delete.is_empty() {
            let keys = Filter::In(table.key(), delete);
            unit.delete(table, &keys).await?;
        }
        if !insert.is_empty() {
            unit.insert_many(table, insert).await?;
        }
        unit.commit().await
    };
    write.await.map_err(CopyError::Destination)
}

/// Reads all rows of a range, in the order of their keys.
pub(crate) async fn read_range(
    unit: &mut dyn RowTx,
    scope: &Scope,
    range: &KeyRange<'_>,
) -> Result<Vec<Row>, StoreError> {
    let (mut rows, mut after) = (Vec::new(), range.after.clone());
    loop {
        let page = read_page(unit, scope, after.take(), range.last).await?;
        let next = next_position(&page);
        rows.extend(page);
        match next {
            Some(next) => after = Some(next),
            None => return Ok(rows),
        }
    }
}

/// The changes that make stored rows equal to those of the source. A changed row is deleted and inserted.
pub(crate) struct Changes {
    /// The keys of the rows to delete.
    pub(crate) delete: Vec<Value>,
    /// The rows to insert.
    pub(crate) insert: Vec<Row>,
}

impl Changes {
    /// Compares rows that are sorted by key.
    pub(crate) fn between(stored: Vec<Row>, source: Vec<Row>) -> Self {
        let mut changes = Self {
            delete: Vec::new(),
            insert: Vec::new(),
        };
        let mut stored = stored.into_iter().peekable();
        for row in source {
            while let Some(gone) = stored.next_if(|old| old.first() < row.first()) {
                changes.delete.extend(gone.into_iter().next());
            }
            match stored.peek().map(|old| old.first().cmp(&row.first())) {
                Some(Ordering::Equal) if stored.next_if_eq(&row).is_some() => continue,
                Some(Ordering::Equal) => {
                    let old = stored.next().unwrap_or_default();
                    changes.delete.extend(old.into_iter().next());
                }
                _ => {}
            }
            changes.insert.push(row);
        }
        let gone = stored.filter_map(|old| old.into_iter().next());
        changes.delete.extend(gone);
        changes
    }
}
