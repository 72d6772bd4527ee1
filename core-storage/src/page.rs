//! The records of a page: limited by the requested number and by a byte budget.

use core_domain::kernel::{StoreError, Stored};

use crate::query::Select;
use crate::table::{Table, Type};
use crate::tabular::{Tabular, decode};
use crate::value::{ReadRow, Value};

/// The default byte budget of a page: 1 MiB.
pub const DEFAULT_PAGE_BYTES: usize = 1024 * 1024;

/// The number of rows in the first slice of a table with free-form values, whose rows may be large. It is a power of
/// two, as are the later slice sizes. An engine that prepares a statement for each limit then needs few statements.
const FIRST_SLICE: usize = 16;

/// The maximum size of a page.
#[derive(Clone, Copy)]
pub(crate) struct PageSize {
    /// The maximum number of rows, at least 1.
    pub(crate) rows: usize,
    /// The maximum number of bytes. One row is read whatever its size.
    pub(crate) bytes: usize,
}

/// The records of a page while it is read.
pub(crate) struct PageRows<R> {
    pub(crate) items: Vec<Stored<R>>,
    /// Whether a row was read that does not fit in the page.
    pub(crate) has_more: bool,
    size: PageSize,
    rows: usize,
    bytes: usize,
    /// The keyset position of the last admitted row, if it cannot be derived from the last record.
    pub(crate) last: Option<Vec<Value>>,
}

impl<R: Tabular> PageRows<R> {
    pub(crate) const fn new(size: PageSize) -> Self {
        Self {
            items: Vec::new(),
            has_more: false,
            size,
            rows: 0,
            bytes: 0,
            last: None,
        }
    }

    /// Decodes and adds a row if the page has room for it.
    pub(crate) fn push(&mut self, table: &Table, row: &dyn ReadRow) -> Result<(), StoreError> {
        if self.admit(row_bytes(table, row)?) {
            self.items.push(decode(row)?);
        }
        Ok(())
    }

    /// Reserves room for a row of this size. Returns whether there was room. If not, the page is full.
    pub(crate) fn admit(&mut self, bytes: usize) -> bool {
        let total = self.bytes.saturating_add(bytes);
        if self.has_more
            || self.rows == self.size.rows
            || (self.rows > 0 && total > self.size.bytes)
        {
            self.has_more = true;
            return false;
        }
        self.rows += 1;
        self.bytes = total;
        true
    }

    /// Returns the number of rows to read next. One row more than the page needs shows whether another page follows.
    pub(crate) fn slice(&self, table: &Table) -> usize {
        let missing = self.size.rows - self.rows + 1;
        if !has_free_form(table) {
            return missing;
        }
        if self.rows == 0 {
            return missing.min(FIRST_SLICE);
        }
        let average = (self.bytes / self.rows).max(1);
        let room = self.size.bytes.saturating_sub(self.bytes) / average + 1;
        room.next_power_of_two().min(missing)
    }

    /// Returns the keyset position of the last row.
    pub(crate) fn position(&mut self, select: &Select) -> Result<Option<Vec<Value>>, StoreError> {
        if self.last.is_some() {
            return Ok(self.last.clone());
        }
        let last = self.items.last();
        last.map(|record| select.position_of(&record.to_row()))
            .transpose()
    }
}

/// Returns whether the table has values of unlimited size, as far as its description shows.
fn has_free_form(table: &Table) -> bool {
    table.columns.iter().any(|column| column.kind == Type::Json)
}

/// Returns the size of a row in bytes: the length of its text, and 8 bytes for every other value.
pub(crate) fn row_bytes(table: &Table, row: &dyn ReadRow) -> Result<usize, StoreError> {
    let mut bytes = 0;
    for at in 0..table.columns.len() {
        bytes += row.read(at)?.as_text().map_or(8, str::len);
    }
    Ok(bytes)
}
