//! The schemas of a row's input and output, compiled from the types of its handler, and the text formats that schemas
//! can name.

use core_domain::kernel::{Email, Timestamp};
use core_domain::registry::Hostname;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use crate::kernel::answer::reply::{Answer, AnswerKind, Describe};
use crate::kernel::request::check::Checker;
use crate::kernel::request::input::PathParams;
use crate::kernel::request::parse::is_unit;
pub(crate) use core_domain::kernel::is_plain_name as plain_name;

/// The input and output of a row, according to the types of its handler.
#[derive(Debug)]
pub(crate) struct Shapes {
    /// The number of path parameters.
    pub(crate) params: usize,
    /// Returns the schemas of the path parameters, in their order.
    pub(crate) describe_params: fn(&mut SchemaGenerator) -> Vec<Schema>,
    /// Validates the query; `None` if the handler takes none.
    pub(crate) query: Option<Checker>,
    /// Validates the body; `None` if the handler takes none.
    pub(crate) body: Option<Checker>,
    /// Returns the schema of the body; `None` if the handler takes none.
    pub(crate) describe_body: Option<Describe>,
    /// The schema and the other properties of the response.
    pub(crate) answer: AnswerKind,
}

impl Shapes {
    /// Compiles the schemas of a handler with these types.
    ///
    /// # Errors
    /// The reason why a schema cannot be compiled, as text.
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

    /// Returns whether a request without a body is invalid.
    pub(crate) fn requires_body(&self) -> bool {
        let empty = Value::Object(serde_json::Map::new());
        let body = self.body.as_ref();
        body.is_some_and(|checker| !checker.issues(&empty).is_empty())
    }
}

/// Compiles the schema of a type; `None` for `()`.
fn compiled<T: JsonSchema + 'static>() -> Result<Option<Checker>, String> {
    if is_unit::<T>() {
        return Ok(None);
    }
    Checker::of::<T>().map(Some)
}

/// Returns whether the text has the format `email`.
pub(crate) fn email(text: &str) -> bool {
    Email::parse(text).is_ok()
}

/// Returns whether the text has the format `idn-hostname`.
pub(crate) fn hostname(text: &str) -> bool {
    Hostname::parse(text).is_ok()
}

/// Returns whether the text has the format `date-time` (RFC 3339).
pub(crate) fn date_time(text: &str) -> bool {
    Timestamp::parse_rfc3339(text).is_some()
}

/// Returns whether the text has the format `uri`: an absolute URI with a host.
pub(crate) fn uri(text: &str) -> bool {
    text.parse::<http::Uri>()
        .is_ok_and(|uri| uri.scheme().is_some() && uri.host().is_some_and(|h| !h.is_empty()))
}

/// Returns whether the text has the format `uuid`, in the form with hyphens.
pub(crate) fn uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}
