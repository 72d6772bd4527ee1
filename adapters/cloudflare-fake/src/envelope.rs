//! What is answered: the envelope, and the few answers that have none.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::request::Request;

/// What a handler answers.
pub(crate) type Reply = Result<Answer, Refusal>;

/// An answer to a request that was carried out.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) payload: Payload,
}

/// The body of an answer.
#[derive(Clone)]
pub(crate) enum Payload {
    /// JSON, with or without the envelope.
    Json(Value),
    /// Anything else, with its content type.
    Raw(String, Bytes),
}

/// Why a request is refused.
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

    /// The answer that says so.
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

/// JSON as it is.
pub(crate) const fn bare(body: Value) -> Answer {
    Answer {
        status: 200,
        payload: Payload::Json(body),
    }
}

/// Bytes as they are.
pub(crate) fn raw(content_type: impl Into<String>, bytes: Bytes) -> Answer {
    Answer {
        status: 200,
        payload: Payload::Raw(content_type.into(), bytes),
    }
}

/// How long a numbered page is.
#[derive(Clone, Copy)]
pub(crate) struct PageSize {
    pub(crate) min: usize,
    pub(crate) default: usize,
    pub(crate) max: usize,
}

/// The numbered page a request asks for.
pub(crate) fn page(request: &Request, items: Vec<Value>, size: PageSize) -> Reply {
    let number = |name: &str, default| match request.param(name) {
        None => Ok(default),
        Some(text) => text.parse::<usize>().map_err(|_| INVALID_PAGE),
    };
    let (page, per_page) = (number("page", 1)?, number("per_page", size.default)?);
    if page == 0 || per_page < size.min || per_page > size.max {
        return Err(INVALID_PAGE);
    }
    let total = items.len();
    let first = (page - 1).saturating_mul(per_page);
    let items: Vec<_> = items.into_iter().skip(first).take(per_page).collect();
    let info = json!({
        "page": page,
        "per_page": per_page,
        "count": items.len(),
        "total_count": total,
        "total_pages": total.div_ceil(per_page),
    });
    ok_with_info(Value::Array(items), info)
}

const INVALID_PAGE: Refusal = Refusal::new(400, 10001, "page or per_page is out of range");

/// The page behind a cursor, the name of the last item before it, and the cursor of the next page: empty at the end.
///
/// The items are in the order of their names.
pub(crate) fn after<T>(
    items: Vec<(String, T)>,
    cursor: Option<&str>,
    limit: usize,
) -> (Vec<T>, String) {
    let mut rest = items
        .into_iter()
        .filter(|(name, _)| cursor.is_none_or(|cursor| name.as_str() > cursor));
    let page: Vec<_> = rest.by_ref().take(limit).collect();
    let last = page.last().map(|(name, _)| name.clone());
    let cursor = last.filter(|_| rest.next().is_some()).unwrap_or_default();
    (page.into_iter().map(|(_, item)| item).collect(), cursor)
}
