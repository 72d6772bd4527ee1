//! Query and body of a request against the schemas of its row, all violations at once.

use core_domain::kernel::{Error, Issue, Result};
use http::header;

use super::body::{Body, read_body};
use super::parse::{Parsed, form_object, is_form, json_body, require_json};
use crate::kernel::endpoint::context::Cx;
use crate::kernel::endpoint::definition::Endpoint;
use crate::kernel::request::check::Checker;

/// Checks query and body, and keeps what they say.
///
/// # Errors
/// `VALIDATION_ERROR` lists everything that is wrong; `MALFORMED_JSON`, `PAYLOAD_TOO_LARGE`, `UNSUPPORTED_MEDIA_TYPE`.
pub(crate) async fn check(
    endpoint: &Endpoint,
    cx: &Cx,
    body: Body,
    parsed: &mut Parsed,
) -> Result<()> {
    let mut issues = check_query(endpoint, cx, parsed)?;
    let content_type = cx.headers.get(header::CONTENT_TYPE);
    let content_type = content_type.map(|value| value.to_str().unwrap_or_default());
    if let Some(checker) = body_checker(endpoint) {
        let limit = endpoint.row.body_limit;
        let limit = limit.unwrap_or(cx.app.options.max_body_bytes);
        let bytes = read_body(body, limit).await?;
        parsed.body = if endpoint.row.takes_forms && is_form(content_type) {
            form_object(&bytes, checker)?
        } else {
            json_body(content_type, &bytes)?
        };
        issues.extend(checker.issues(&parsed.body));
        checker.respell_numbers(&mut parsed.body);
    } else if !cx.method.is_safe() && http_body::Body::size_hint(&body).lower() > 0 {
        // Nothing of it is read; but a page may send other types than JSON without being asked.
        require_json(content_type)?;
    }
    refuse(issues)
}

fn body_checker(endpoint: &Endpoint) -> Option<&Checker> {
    endpoint.shapes().ok()?.body.as_ref()
}

/// Checks the query alone.
pub(crate) fn check_query(endpoint: &Endpoint, cx: &Cx, parsed: &mut Parsed) -> Result<Vec<Issue>> {
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

/// Refuses a request in which something is wrong.
pub(crate) fn refuse(issues: Vec<Issue>) -> Result<()> {
    if issues.is_empty() {
        return Ok(());
    }
    Err(Error::Invalid(issues))
}
