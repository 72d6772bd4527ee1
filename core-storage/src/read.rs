//! Reads the records of a query from every table that may contain them.

use core_domain::kernel::{StoreError, Stored};
use core_domain::port::Staged;

use crate::filter::Filter;
use crate::page::row_bytes;
use crate::query::{Select, compare_positions};
use crate::table::Table;
use crate::tabular::{Tabular, decode};
use crate::unit::{RowUnit, push_decoded};
use crate::value::{ReadRow, Value};

/// Returns every table with records of the type, the staging table first. A record that is promoted between two reads
/// is then read twice instead of never.
fn tables_of<R: Tabular>() -> impl Iterator<Item = &'static Table> + Send {
    R::STAGING.into_iter().chain([R::TABLE])
}

impl RowUnit {
    /// Returns the record with this key if it matches.
    pub(crate) async fn read_one<R: Tabular>(
        &mut self,
        key: &str,
        filter: &Filter,
    ) -> Result<Option<Stored<R>>, StoreError> {
        let mut found = None;
        for table in tables_of::<R>() {
            let mut visit = |row: &dyn ReadRow| {
                found = Some(decode(row)?);
                Ok(())
            };
            self.tx.get(table, key, filter, &mut visit).await?;
            if found.is_some() {
                break;
            }
        }
        Ok(found)
    }

    /// Returns the records of a query, staged ones included.
    pub(crate) async fn read<R: Tabular>(
        &mut self,
        select: &Select,
    ) -> Result<Vec<Stored<R>>, StoreError> {
        self.ensure_active()?;
        if select.skips_damaged {
            return self.read_undamaged(select.clone()).await;
        }
        if R::STAGING.is_some() {
            let rows = self.read_rows::<R>(select).await?;
            return Ok(rows.into_iter().filter_map(|row| row.record).collect());
        }
        let mut records = Vec::new();
        let mut visit = |row: &dyn ReadRow| push_decoded(&mut records, row);
        self.tx.select(select, &mut visit).await?;
        Ok(records)
    }

    /// Returns the records of a query that can be decoded. Reads on until the limit is reached or no row is left.
    async fn read_undamaged<R: Tabular>(
        &mut self,
        mut select: Select,
    ) -> Result<Vec<Stored<R>>, StoreError> {
        let mut records = Vec::new();
        loop {
            let mut rows = self.read_rows::<R>(&select).await?;
            let read = u32::try_from(rows.len()).unwrap_or(u32::MAX);
            let last = rows.last_mut().map(|row| std::mem::take(&mut row.position));
            let before = records.len();
            records.extend(rows.into_iter().filter_map(|row| row.record));
            let decoded = u32::try_from(records.len() - before).unwrap_or(u32::MAX);
            match select.limit {
                Some(limit) if read >= limit && decoded < read => {
                    select.limit = Some(limit - decoded);
                    select.after = last;
                }
                _ => return Ok(records),
            }
        }
    }

    /// Returns the first rows of the staging table, sorted by key.
    pub(crate) async fn read_staged<R: Tabular>(
        &mut self,
        limit: u32,
    ) -> Result<Vec<Staged<R>>, StoreError> {
        let Some(staging) = R::STAGING else {
            return Ok(Vec::new());
        };
        let mut staged = Vec::new();
        let select = Select::of(staging).limit(limit).skip_unreachable();
        let select = select.leave_out_damaged(true);
        let mut visit = |row: &dyn ReadRow| {
            let id = row.read(0)?.as_text().unwrap_or_default().to_owned();
            let DecodedRow { record, .. } = DecodedRow::of(&select, row)?;
            staged.push(Staged { id, record });
            Ok(())
        };
        self.tx.select(&select, &mut visit).await?;
        Ok(staged)
    }

    /// Returns the rows of a query from the staging table and from the table of the records, in order.
    pub(crate) async fn read_rows<R: Tabular>(
        &mut self,
        select: &Select,
    ) -> Result<Vec<DecodedRow<R>>, StoreError> {
        let mut rows = Vec::new();
        for table in tables_of::<R>() {
            let select = Select {
                table,
                ..select.clone()
            };
            let mut visit = |row: &dyn ReadRow| {
                rows.push(DecodedRow::of(&select, row)?);
                Ok(())
            };
            self.tx.select(&select, &mut visit).await?;
        }
        let order = select.full_order();
        rows.sort_by(|left, right| compare_positions(&order, &left.position, &right.position));
        // A row that was promoted between the two reads was read twice.
        rows.dedup_by(|next, last| next.position == last.position);
        let limit = select.limit.and_then(|limit| usize::try_from(limit).ok());
        rows.truncate(limit.unwrap_or(usize::MAX));
        Ok(rows)
    }
}

/// A row of a query with its decoded record.
pub(crate) struct DecodedRow<R> {
    pub(crate) position: Vec<Value>,
    /// The record; `None` if it is damaged and skipped.
    pub(crate) record: Option<Stored<R>>,
    /// The size of the row in bytes.
    pub(crate) bytes: usize,
}

impl<R: Tabular> DecodedRow<R> {
    fn of(select: &Select, row: &dyn ReadRow) -> Result<Self, StoreError> {
        let record = match decode(row) {
            Ok(record) => Some(record),
            Err(StoreError::Corrupt { .. }) if select.skips_damaged => None,
            Err(error) => return Err(error),
        };
        Ok(Self {
            position: select.position_of(row)?,
            record,
            bytes: row_bytes(select.table, row)?,
        })
    }
}
