//! The bodies of responses: an object, or an error.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// The result of a handler: an object, or the reason for a refused request.
pub(crate) type Reply = Result<Value, Refusal>;

/// The reason for a refused request.
#[derive(Clone)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// Whether the response is stored under the idempotency key. It is not if the parameters are invalid.
    pub(crate) is_kept: bool,
    kind: &'static str,
    message: Cow<'static, str>,
    /// Further members of the error.
    members: Map<String, Value>,
}

impl Refusal {
    pub(crate) fn new(
        status: u16,
        kind: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            status,
            is_kept: true,
            kind,
            message: message.into(),
            members: Map::new(),
        }
    }

    /// Creates a refusal because of the state of an object.
    pub(crate) fn state(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(400, "invalid_request_error", message)
    }

    /// Creates a refusal because of a parameter.
    pub(crate) fn parameter(param: &str, message: impl Into<Cow<'static, str>>) -> Self {
        let refusal = Self::state(message).member("param", param);
        Self {
            is_kept: false,
            ..refusal
        }
    }

    /// Creates a refusal because an object does not exist.
    pub(crate) fn missing(kind: &str, id: &str, param: &str) -> Self {
        let message = format!("No such {kind}: '{id}'");
        Self::new(404, "invalid_request_error", message)
            .member("code", "resource_missing")
            .member("param", param)
    }

    /// Creates a refusal by the issuer of a card.
    pub(crate) fn card(code: &str, decline_code: Option<&str>) -> Self {
        let refusal = Self::new(402, "card_error", "Your card was declined.");
        let refusal = refusal.member("code", code);
        match decline_code {
            Some(decline_code) => refusal.member("decline_code", decline_code),
            None => refusal,
        }
    }

    pub(crate) fn member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn code(self, code: &str) -> Self {
        self.member("code", code)
    }

    /// Returns a refusal whose response is not stored.
    pub(crate) const fn not_kept(mut self) -> Self {
        self.is_kept = false;
        self
    }

    /// Returns the member `error`, as objects embed it.
    pub(crate) fn error(&self) -> Value {
        let mut error = self.members.clone();
        error.insert("type".to_owned(), self.kind.into());
        error.insert("message".to_owned(), self.message.as_ref().into());
        Value::Object(error)
    }

    pub(crate) fn body(&self) -> Value {
        json!({"error": self.error()})
    }
}
