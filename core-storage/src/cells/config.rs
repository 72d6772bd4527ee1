//! The description of a cell.

use std::collections::BTreeSet;
use std::sync::Arc;

use core_domain::kernel::StoreError;

use crate::row_store::RowStore;

/// The name of the home cell.
pub const HOME_NAME: &str = "home";

/// The index of the home cell.
pub(super) const HOME: usize = 0;

/// A database of the store, and what is assigned to it.
#[derive(Clone, Debug)]
pub struct CellConfig {
    /// The unique name: 1 to 32 of `[a-z0-9-]`. It is part of the directory, so it never changes. That of the home cell is
    /// [`HOME_NAME`].
    pub name: String,
    /// The engine of its database.
    pub rows: Arc<dyn RowStore>,
    /// `true` if new platforms are assigned to this cell. They are spread evenly over the cells that take them. If none does,
    /// they are assigned to home.
    pub takes_new_platforms: bool,
}

/// Checks the names of cells.
///
/// # Errors
/// [`StoreError::Backend`] if a name is invalid or used twice, or if none is [`HOME_NAME`].
pub fn check_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<(), StoreError> {
    let mut known = BTreeSet::new();
    for name in names {
        let is_valid = |letter: u8| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if !(1..=32).contains(&name.len()) || !name.bytes().all(is_valid) {
            return Err(StoreError::backend(format!(
                "the name of the cell {name:?} must have 1 to 32 of a-z, 0-9 and -"
            )));
        }
        if !known.insert(name) {
            return Err(StoreError::backend(format!(
                "two cells have the name {name}"
            )));
        }
    }
    if known.contains(HOME_NAME) {
        return Ok(());
    }
    Err(StoreError::backend("there is no cell with the name home"))
}
