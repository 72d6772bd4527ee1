//! What a row takes and gives, compiled from the types of its handler.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use super::answer::{Answer, AnswerKind, Describe};
use super::check::Checker;
use super::input::PathParams;
use super::parse::is_unit;

/// What is known of a row by the types of its handler.
#[derive(Debug)]
pub(super) struct Shapes {
    pub(super) params: usize,
    pub(super) describe_params: fn(&mut SchemaGenerator) -> Vec<Schema>,
    pub(super) query: Option<Checker>,
    pub(super) body: Option<Checker>,
    pub(super) describe_body: Option<Describe>,
    pub(super) answer: AnswerKind,
}

impl Shapes {
    /// Of a handler that takes these, or why a schema could not be compiled.
    pub(super) fn of<P, Q, B, A>() -> Result<Self, String>
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
    pub(super) fn requires_body(&self) -> bool {
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
