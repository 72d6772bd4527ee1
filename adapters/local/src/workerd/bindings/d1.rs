//! The D1 binding: databases.

use std::path::Path;

use http::{Method, Request, Response};
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::json;

use super::calls::Call;
use super::d1_query;
use super::d1_request::Queries;
use super::d1_result::RowFormat;
use super::reply::{self, BindingError, BindingResult, read_body};
use crate::error::LocalError;
use crate::execution::Execution;
use crate::host::SiteBody;

/// Maximum length of a request, in bytes.
const MAX_REQUEST: usize = 16 * 1024 * 1024;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Options {
    results_format: Option<String>,
}

/// Handles a request to a database. All its queries run in one transaction.
pub(super) async fn answer(
    path: &Path,
    execution: &Execution,
    request: Request<&mut Incoming>,
    call: Call,
) -> BindingResult {
    let is_query = matches!(request.uri().path(), "/query" | "/execute");
    if request.method() != Method::POST || !is_query {
        return Err(BindingError::unsupported("this call of a D1 database"));
    }
    let options = request.uri().query().unwrap_or_default();
    let options: Options = serde_urlencoded::from_str(options).unwrap_or_default();
    let form = match options.results_format.as_deref() {
        Some("ROWS_AND_COLUMNS") => RowFormat::Rows,
        _ => RowFormat::Objects,
    };
    let body = read_body(request.into_body(), MAX_REQUEST, &call).await?;
    // Parsing copies the texts and blobs of the request.
    call.reserve(body.len())?;
    let queries: Queries =
        serde_json::from_slice(&body).map_err(|error| BindingError::bad(error.to_string()))?;
    drop(body);
    match d1_query::run(path, execution, queries.0, form, call).await {
        Ok(results) => Ok(reply::json_text(results)),
        // Errors of the script's own statements are reported to the script.
        Err(LocalError::Sqlite(error)) => Err(BindingError::bad(sqlite_message(&error))),
        Err(error) => Err(error.into()),
    }
}

/// Returns the error response of D1.
pub(super) fn error_response(error: &BindingError) -> Response<SiteBody> {
    let mut answer = reply::json(&json!({ "success": false, "error": error.message }));
    *answer.status_mut() = error.status;
    answer
}

fn sqlite_message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        error => error.to_string(),
    }
}
