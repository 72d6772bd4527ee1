//! Free-form values, which are kept as they came.

use crate::kernel::{Error, JsonText, Result};

/// The largest free-form value, in bytes of JSON.
const MAX_BYTES: usize = 64 * 1024;

/// Refuses a value that is too large, as one of this field.
pub(super) fn check_free_form(field: &str, value: &JsonText) -> Result<()> {
    if value.as_str().len() <= MAX_BYTES {
        return Ok(());
    }
    let message = format!("must have at most {MAX_BYTES} bytes");
    Err(Error::invalid(field, "too_long", message))
}
