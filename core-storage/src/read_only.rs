//! Stores that are opened for reading.

use core_domain::kernel::StoreError;
use core_domain::port::Mode;

/// Refuses units that write.
///
/// # Errors
/// [`StoreError::Backend`] if the mode permits changes.
pub(crate) fn ensure_read(mode: Mode) -> Result<(), StoreError> {
    match mode {
        Mode::Auto | Mode::Read => Ok(()),
        Mode::Write | Mode::ReadCommitted => {
            Err(StoreError::backend("the store was opened for reading only"))
        }
    }
}
