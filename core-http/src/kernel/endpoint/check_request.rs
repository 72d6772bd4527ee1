//! Validates the query and the body of a request by the schemas of its row, and reports all violations at once.

use core_domain::kernel::{Error, Issue, Result};
use http::header;
use zeroize::Zeroize;

use super::definition::Endpoint;
use crate::kernel::request::body::{Body, read_body};
use crate::kernel::request::check::Checker;
use crate::kernel::request::context::Cx;
use crate::kernel::request::parse::{ParsedRequest, form_object, is_form, json_body, require_json};

/// Reads and validates the query and the body, and stores them in `parsed`.
///
/// # Errors
/// - `VALIDATION_ERROR` with all violations of query and body.
/// - `MALFORMED_JSON` if the body is not acceptable JSON.
/// - `PAYLOAD_TOO_LARGE` if the body exceeds the limit of the row or of the installation.
/// - `UNSUPPORTED_MEDIA_TYPE` if the body has another content type.
/// - `BAD_REQUEST` if the body does not arrive in time, or the query is not percent-encoded UTF-8.
pub(crate) async fn check(
    endpoint: &Endpoint,
    cx: &Cx,
    body: Body,
    parsed: &mut ParsedRequest,
) -> Result<()> {
    let mut issues = check_query(endpoint, cx, parsed)?;
    let content_type = cx.headers.get(header::CONTENT_TYPE);
    let content_type = content_type.map(|value| value.to_str().unwrap_or_default());
    if let Some(checker) = body_checker(endpoint) {
        let limit = endpoint.row.body_limit;
        let limit = limit.unwrap_or(cx.app.options.max_body_bytes);
        let bytes = read_body(body, limit).await?;
        let body = if endpoint.row.takes_forms && is_form(content_type) {
            form_object(&bytes, checker)
        } else {
            json_body(content_type, &bytes)
        };
        // The body can contain passwords and secrets. Not possible while the connection still uses the buffer.
        if let Ok(mut bytes) = bytes.try_into_mut() {
            bytes[..].zeroize();
        }
        parsed.body = body?;
        issues.extend(checker.issues(&parsed.body));
        checker.respell_numbers(&mut parsed.body);
    } else if !cx.method.is_safe() && http_body::Body::size_hint(&body).lower() > 0 {
        // The body is ignored. The content type is checked all the same: without a preflight, pages of other sites
        // can send only other types than JSON.
        require_json(content_type)?;
    }
    refuse(issues)
}

fn body_checker(endpoint: &Endpoint) -> Option<&Checker> {
    endpoint.shapes().ok()?.body.as_ref()
}

/// Reads the query, stores it in `parsed`, and returns its violations.
///
/// # Errors
/// - `BAD_REQUEST` if the query is not percent-encoded UTF-8.
/// - `VALIDATION_ERROR` if a parameter contains NUL.
pub(crate) fn check_query(
    endpoint: &Endpoint,
    cx: &Cx,
    parsed: &mut ParsedRequest,
) -> Result<Vec<Issue>> {
    let checker = endpoint
        .shapes()
        .ok()
        .and_then(|shapes| shapes.query.as_ref());
    let Some(checker) = checker else {
        return Ok(Vec::new());
    };
    parsed.query = form_object(cx.uri.query().unwrap_or_default().as_bytes(), checker)?;
    Ok(checker.issues(&parsed.query))
}

/// Returns `VALIDATION_ERROR` with these issues, if there are any.
pub(crate) fn refuse(issues: Vec<Issue>) -> Result<()> {
    if issues.is_empty() {
        return Ok(());
    }
    Err(Error::Invalid(issues))
}
