//! Reads pages in slices, so that few rows are read that do not fit in the page.

use core_domain::kernel::{StoreError, Stored};

use crate::page::{PageRows, PageSize};
use crate::query::Select;
use crate::read::DecodedRow;
use crate::tabular::Tabular;
use crate::unit::RowUnit;
use crate::value::{ReadRow, Value};

impl RowUnit {
    /// Reads the first records of a query that fit in a page. Also returns the keyset position of the last record if
    /// more records follow. Rows are read in slices, so that few rows are read that do not fit.
    pub(crate) async fn read_page<R: Tabular>(
        &mut self,
        select: &Select,
        size: PageSize,
    ) -> Result<(Vec<Stored<R>>, Option<Vec<Value>>), StoreError> {
        let mut page = PageRows::<R>::new(size);
        let mut select = select.clone();
        loop {
            let slice = page.slice(select.table);
            select.limit = Some(u32::try_from(slice).unwrap_or(u32::MAX));
            let read = self.read_slice(&select, &mut page).await?;
            let last = page.position(&select)?;
            if page.has_more || read < slice {
                let next = last.filter(|_| page.has_more);
                return Ok((page.items, next));
            }
            select.after = last;
        }
    }

    /// Reads the rows of a slice into the page. Returns the number of rows read.
    async fn read_slice<R: Tabular>(
        &mut self,
        select: &Select,
        page: &mut PageRows<R>,
    ) -> Result<usize, StoreError> {
        if R::STAGING.is_some() || select.skips_damaged {
            let rows: Vec<DecodedRow<R>> = self.read_rows(select).await?;
            let read = rows.len();
            for row in rows {
                if page.admit(row.bytes) {
                    page.items.extend(row.record);
                    page.last = Some(row.position);
                }
            }
            return Ok(read);
        }
        let mut read = 0;
        let mut visit = |row: &dyn ReadRow| {
            read += 1;
            page.push(select.table, row)
        };
        self.tx.select(select, &mut visit).await?;
        Ok(read)
    }
}
