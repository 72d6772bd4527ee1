//! The schemas of a row's input and output, compiled from the types of its handler.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use crate::kernel::answer::reply::{Answer, AnswerKind, SchemaFn};
use crate::kernel::request::check::Checker;
use crate::kernel::request::input::PathParams;
use crate::kernel::request::parse::is_unit;

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
    pub(crate) describe_body: Option<SchemaFn>,
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
            query: compile::<Q>()?,
            body: compile::<B>()?,
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
fn compile<T: JsonSchema + 'static>() -> Result<Option<Checker>, String> {
    if is_unit::<T>() {
        return Ok(None);
    }
    Checker::of::<T>().map(Some)
}
