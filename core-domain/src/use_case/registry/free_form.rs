//! Free-form values, which are kept as they came.

use serde_json::Value;

use crate::kernel::{Error, Result};

/// The largest free-form value, in bytes of JSON.
const MAX_BYTES: usize = 64 * 1024;

/// Refuses a value that is too large, as one of this field.
pub(super) fn check_free_form(field: &str, value: &Value) -> Result<()> {
    if value.to_string().len() <= MAX_BYTES {
        return Ok(());
    }
    let message = format!("must have at most {MAX_BYTES} bytes");
    Err(Error::invalid(field, "too_long", message))
}
