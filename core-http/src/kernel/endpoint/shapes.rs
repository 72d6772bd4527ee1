//! What a row takes and gives, compiled from the types of its handler.

use core_domain::kernel::{Email, Timestamp};
use core_domain::registry::Hostname;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use crate::kernel::answer::reply::{Answer, AnswerKind, Describe};
use crate::kernel::request::check::Checker;
use crate::kernel::request::input::PathParams;
use crate::kernel::request::parse::is_unit;
pub(crate) use core_domain::kernel::is_plain_name as plain_name;

/// What is known of a row by the types of its handler.
#[derive(Debug)]
pub(crate) struct Shapes {
    pub(crate) params: usize,
    pub(crate) describe_params: fn(&mut SchemaGenerator) -> Vec<Schema>,
    pub(crate) query: Option<Checker>,
    pub(crate) body: Option<Checker>,
    pub(crate) describe_body: Option<Describe>,
    pub(crate) answer: AnswerKind,
}

impl Shapes {
    /// Of a handler that takes these, or why a schema could not be compiled.
    pub(crate) fn of<P, Q, B, A>() -> Result<Self, String>
    where
        P: PathParams,
        Q: JsonSchema + 'static,
        B: JsonSchema + 'static,
        A: Answer,
    {
        Ok(Self {
            params: P::COUNT,
            describe_params: P::schemas,
            query: compiled::<Q>()?,
            body: compiled::<B>()?,
            describe_body: (!is_unit::<B>()).then_some(SchemaGenerator::subschema_for::<B>),
            answer: A::kind(),
        })
    }

    /// Whether a request without a body is refused.
    pub(crate) fn requires_body(&self) -> bool {
        let empty = Value::Object(serde_json::Map::new());
        let body = self.body.as_ref();
        body.is_some_and(|checker| !checker.issues(&empty).is_empty())
    }
}

fn compiled<T: JsonSchema + 'static>() -> Result<Option<Checker>, String> {
    if is_unit::<T>() {
        return Ok(None);
    }
    Checker::of::<T>().map(Some)
}

pub(crate) fn email(text: &str) -> bool {
    Email::parse(text).is_ok()
}

pub(crate) fn hostname(text: &str) -> bool {
    Hostname::parse(text).is_ok()
}

pub(crate) fn date_time(text: &str) -> bool {
    Timestamp::parse_rfc3339(text).is_some()
}

pub(crate) fn uri(text: &str) -> bool {
    text.parse::<http::Uri>()
        .is_ok_and(|uri| uri.scheme().is_some() && uri.host().is_some_and(|h| !h.is_empty()))
}

pub(crate) fn uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}
