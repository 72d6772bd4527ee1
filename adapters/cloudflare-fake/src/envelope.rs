//! The envelope of responses, and the few responses without one.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::{Value, json};

/// The result of a handler.
pub(crate) type Reply = Result<Answer, Refusal>;

/// A successful response.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) payload: Payload,
}

/// The body of a response.
#[derive(Clone)]
pub(crate) enum Payload {
    /// JSON, with or without the envelope.
    Json(Value),
    /// Any other content, with its content type.
    Raw(String, Bytes),
}

/// The reason for a refused request.
#[derive(Clone)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) code: u32,
    pub(crate) message: Cow<'static, str>,
}

impl Refusal {
    pub(crate) const fn new(status: u16, code: u32, message: &'static str) -> Self {
        Self {
            status,
            code,
            message: Cow::Borrowed(message),
        }
    }

    pub(crate) const fn with(status: u16, code: u32, message: String) -> Self {
        Self {
            status,
            code,
            message: Cow::Owned(message),
        }
    }

    /// Returns the error response.
    pub(crate) fn answer(&self) -> Answer {
        let errors = json!([{"code": self.code, "message": self.message}]);
        Answer {
            status: self.status,
            payload: Payload::Json(
                json!({"success": false, "errors": errors, "messages": [], "result": null}),
            ),
        }
    }
}

/// A result in its envelope.
#[expect(
    clippy::unnecessary_wraps,
    reason = "it is how every handler ends, and handlers refuse"
)]
pub(crate) fn ok(result: Value) -> Reply {
    Ok(success(result))
}

fn success(result: Value) -> Answer {
    bare(json!({"success": true, "errors": [], "messages": [], "result": result}))
}

/// A result in its envelope with a `result_info`.
#[expect(
    clippy::unnecessary_wraps,
    reason = "it is how every handler ends, and handlers refuse"
)]
pub(crate) fn ok_with_info(result: Value, info: Value) -> Reply {
    let mut answer = success(result);
    if let Payload::Json(Value::Object(envelope)) = &mut answer.payload {
        envelope.insert("result_info".to_owned(), info);
    }
    Ok(answer)
}

/// Returns JSON without an envelope.
pub(crate) const fn bare(body: Value) -> Answer {
    Answer {
        status: 200,
        payload: Payload::Json(body),
    }
}

/// Returns bytes without an envelope.
pub(crate) fn raw(content_type: impl Into<String>, bytes: Bytes) -> Answer {
    Answer {
        status: 200,
        payload: Payload::Raw(content_type.into(), bytes),
    }
}
