//! The header `Idempotency-Key`.

use core_domain::kernel::{Error, Result};
use http::{HeaderMap, HeaderValue};

/// The pattern of keys, for OpenAPI.
pub(crate) const KEY_PATTERN: &str = "^[!-~]{1,255}$";

const HEADER: &str = "idempotency-key";

/// Returns the idempotency key of a request, if it has one.
///
/// # Errors
/// `VALIDATION_ERROR` if the key is malformed.
pub(crate) fn key_of(headers: &HeaderMap) -> Result<Option<&str>> {
    headers.get(HEADER).map(validate_key).transpose()
}

/// Returns the key without quotes: 1 to 255 visible ASCII characters.
fn validate_key(value: &HeaderValue) -> Result<&str> {
    let refuse = || {
        Error::invalid(
            "Idempotency-Key",
            "pattern",
            "must be 1 to 255 visible ASCII characters",
        )
    };
    let text = value.to_str().map_err(|_| refuse())?;
    let key = text
        .strip_prefix('"')
        .and_then(|t| t.strip_suffix('"'))
        .unwrap_or(text);
    if (1..=255).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic()) {
        Ok(key)
    } else {
        Err(refuse())
    }
}
