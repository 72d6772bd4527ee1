//! The envelope of API responses.

use core_domain::port::Cause;
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use crate::error::shorten;

/// The content of a successful response.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Content {
    pub(crate) result: Value,
    pub(crate) info: ResultInfo,
}

/// The position of a page in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct ResultInfo {
    pub(crate) page: Option<u64>,
    pub(crate) per_page: Option<u64>,
    pub(crate) total_count: Option<u64>,
    pub(crate) cursor: Option<String>,
}

/// An unsuccessful response.
#[derive(Debug)]
pub(crate) enum EnvelopeError {
    /// The API refused the request, with these codes and messages.
    Refused(Vec<(u32, String)>),
    /// The response is not from the API, for example a page of a proxy.
    Unreadable(Cause),
}

/// Decodes a response. The `success` field decides, not the HTTP status. A few responses have no envelope.
pub(crate) fn decode(status: StatusCode, body: &[u8]) -> Result<Content, EnvelopeError> {
    if body.is_empty() && status.is_success() {
        return Ok(Content::default());
    }
    let value: Value = serde_json::from_slice(body)
        .map_err(|_| EnvelopeError::Unreadable(Cause::new(format!("status {status}, not JSON"))))?;
    match value.get("success").and_then(Value::as_bool) {
        Some(true) => Ok(Content {
            info: info_of(&value),
            result: value.get("result").cloned().unwrap_or_default(),
        }),
        Some(false) => Err(EnvelopeError::Refused(errors_of(&value))),
        None if status.is_success() => Ok(Content {
            result: value,
            info: ResultInfo::default(),
        }),
        None => Err(EnvelopeError::Refused(errors_of(&value))),
    }
}

fn info_of(value: &Value) -> ResultInfo {
    let info = value.get("result_info").cloned().unwrap_or_default();
    serde_json::from_value(info).unwrap_or_default()
}

/// Returns the codes and messages of an envelope, or those of a gateway's `{code, error}`.
fn errors_of(value: &Value) -> Vec<(u32, String)> {
    let one = |error: &Value| {
        let code = error.get("code")?.as_u64()?.try_into().ok()?;
        let text = error.get("message").or_else(|| error.get("error"));
        Some((
            code,
            shorten(text.and_then(Value::as_str).unwrap_or_default()),
        ))
    };
    match value.get("errors").and_then(Value::as_array) {
        Some(errors) => errors.iter().filter_map(one).collect(),
        None => one(value).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expect_refused(status: StatusCode, body: &str) -> Vec<(u32, String)> {
        match decode(status, body.as_bytes()) {
            Err(EnvelopeError::Refused(errors)) => errors,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn success_field_overrides_the_status() {
        let no =
            r#"{"success":false,"errors":[{"code":7502,"message":"there\nis one"}],"result":null}"#;
        for status in [StatusCode::OK, StatusCode::BAD_REQUEST] {
            assert_eq!(
                expect_refused(status, no),
                [(7502, "there is one".to_owned())]
            );
        }
        let yes =
            br#"{"success":true,"errors":[],"result":{"id":"x"},"result_info":{"cursor":"c"}}"#;
        let content = decode(StatusCode::OK, yes).unwrap();
        assert_eq!(content.result["id"], "x");
        assert_eq!(content.info.cursor.as_deref(), Some("c"));
    }

    #[test]
    fn responses_without_an_envelope_are_decoded() {
        let bare = decode(StatusCode::OK, br#"{"id":"x"}"#).unwrap();
        assert_eq!(bare.result["id"], "x");
        assert_eq!(
            decode(StatusCode::NO_CONTENT, b"").unwrap(),
            Content::default()
        );
        let gateway = r#"{"code":10429,"error":"slow down"}"#;
        let expected = [(10_429, "slow down".to_owned())];
        assert_eq!(expect_refused(StatusCode::BAD_GATEWAY, gateway), expected);
        for (status, body) in [
            (StatusCode::FORBIDDEN, "<html>"),
            (StatusCode::BAD_GATEWAY, ""),
        ] {
            let unreadable = decode(status, body.as_bytes());
            assert!(
                matches!(unreadable, Err(EnvelopeError::Unreadable(_))),
                "{body}"
            );
        }
    }
}
