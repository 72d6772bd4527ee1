//! The origin of the page that has sent a request.

use core_domain::kernel::{Code, Error, Result};
use http::header;

use super::context::Cx;

/// Returns the refusal of a request from a page of an untrusted origin.
pub(crate) fn invalid_origin() -> Error {
    Error::refused(Code::InvalidOrigin, "Invalid origin")
}

/// Refuses a form that does not prove that a trusted page has sent it. Browsers always send the origin of a form, so programs
/// need no exception.
///
/// # Errors
/// `INVALID_ORIGIN` if another page has sent the form; `MISSING_OR_NULL_ORIGIN` if the origin is not known.
pub(crate) fn ensure_trusted_form(cx: &Cx, trusts: impl Fn(&str) -> bool) -> Result<()> {
    if let Some(origin) = cx.headers.get(header::ORIGIN) {
        return match origin.to_str().is_ok_and(trusts) {
            true => Ok(()),
            false => Err(invalid_origin()),
        };
    }
    if cx.header("sec-fetch-site") == Some("same-origin") {
        return Ok(());
    }
    Err(Error::refused(
        Code::MissingOrNullOrigin,
        "Missing or null Origin",
    ))
}
