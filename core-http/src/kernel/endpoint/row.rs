//! Rows: the declaration of an endpoint, without its handler. Everything about a route is declared in its row.

use core_domain::gateway::RateClass;
use core_domain::kernel::{Code, Error};
use http::{Method, StatusCode};
use serde_json::Value;

use crate::kernel::answer::envelope::ErrorStyle;
use crate::kernel::answer::envelope::status_of;

/// The content type of arbitrary bytes.
const ANY_BYTES: &str = "application/octet-stream";

/// A replacement of an error code in the responses of a row.
#[derive(Clone, Copy, Debug)]
struct CodeReplacement {
    from: Code,
    to: Code,
    /// The new message. `None` keeps the message of the error, or uses the code as a sentence if the error has none.
    message: Option<&'static str>,
}

/// A request header in OpenAPI.
#[derive(Clone, Debug)]
pub(crate) struct HeaderParameter {
    pub(crate) name: &'static str,
    pub(crate) schema: Value,
    pub(crate) is_required: bool,
}

/// The declaration of an endpoint, without its handler.
///
/// Start with [`get`], [`post`], [`put`], [`patch`] or [`delete`]. Complete the row with [`Row::reads`],
/// [`Row::reads_once`], [`Row::writes`], [`Row::writes_then`], [`Row::waits`], [`Row::plain`], [`Row::plain_with_scope`] or [`Row::uploads`].
/// The types of the handler define the requirement on the caller, and the schemas of input and output.
#[derive(Clone, Debug)]
pub struct Row {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) aliases: Vec<&'static str>,
    pub(crate) operation: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) description: &'static str,
    pub(crate) rate: RateClass,
    pub(crate) success: Vec<StatusCode>,
    pub(crate) refuses: Vec<Code>,
    pub(crate) statuses: Vec<(Code, StatusCode)>,
    pub(crate) style: ErrorStyle,
    pub(crate) if_match: bool,
    pub(crate) if_none_match: bool,
    pub(crate) secret_answer: bool,
    pub(crate) ends_access: bool,
    code_replacements: Vec<CodeReplacement>,
    pub(crate) body_limit: Option<usize>,
    pub(crate) takes_forms: bool,
    pub(crate) takes: Vec<&'static str>,
    pub(crate) produces: Vec<&'static str>,
    pub(crate) headers: Vec<HeaderParameter>,
    pub(crate) key_field: Option<&'static str>,
}

macro_rules! methods {
    ($($name:ident $method:ident $text:literal),+) => {$(
        #[doc = concat!("Starts a row of the method `", $text, "` with its documented path and its operation id.")]
        #[must_use]
        pub fn $name(path: &'static str, operation: &'static str) -> Row {
            Row::new(Method::$method, path, operation)
        }
    )+};
}
methods!(get GET "GET", post POST "POST", put PUT "PUT", patch PATCH "PATCH", delete DELETE "DELETE");

impl Row {
    fn new(method: Method, path: &'static str, operation: &'static str) -> Self {
        Self {
            method,
            path,
            aliases: Vec::new(),
            operation,
            tag: "",
            summary: "",
            description: "",
            rate: RateClass::Default,
            success: vec![StatusCode::OK],
            refuses: Vec::new(),
            statuses: Vec::new(),
            style: ErrorStyle::Envelope,
            if_match: false,
            if_none_match: false,
            secret_answer: false,
            ends_access: false,
            code_replacements: Vec::new(),
            body_limit: None,
            takes_forms: false,
            takes: vec![ANY_BYTES],
            produces: Vec::new(),
            headers: Vec::new(),
            key_field: None,
        }
    }

    /// Sets the summary of the operation in OpenAPI: one sentence with a third-person verb.
    #[must_use]
    pub const fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    /// Describes the operation in detail, in Markdown: its effects, its side effects, and those of a repeated call.
    ///
    /// OpenAPI adds who may call it, idempotency, preconditions and rate limits, all derived from the row.
    #[must_use]
    pub const fn description(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }

    /// Sets the rate class, which selects the quota of a client. Default: [`RateClass::Default`].
    #[must_use]
    pub const fn rate(mut self, class: RateClass) -> Self {
        self.rate = class;
        self
    }

    /// Adds another documented path, under which the endpoint is also available.
    #[must_use]
    pub fn alias(mut self, path: &'static str) -> Self {
        self.aliases.push(path);
        self
    }

    /// Sets the success statuses. The first one applies unless the handler chooses another. Default: 200.
    #[must_use]
    pub fn success(mut self, statuses: &[StatusCode]) -> Self {
        self.success = statuses.to_vec();
        self
    }

    /// Adds error codes that the endpoint can return. Codes that follow from its input and its requirement are added
    /// automatically.
    #[must_use]
    pub fn refuses(mut self, codes: &[Code]) -> Self {
        self.refuses.extend_from_slice(codes);
        self
    }

    /// Adds an error code that has an unusual status on this row, for clients of a library that expect that status.
    #[must_use]
    pub fn refuses_as(mut self, code: Code, status: StatusCode) -> Self {
        self.refuses.push(code);
        self.statuses.push((code, status));
        self
    }

    /// Returns the status of an error code on this row.
    pub(crate) fn status_of(&self, code: Code) -> StatusCode {
        let own = self.statuses.iter().find(|(known, _)| *known == code);
        own.map_or_else(|| status_of(code), |(_, status)| *status)
    }

    /// Sets the shape of error responses. Default: [`ErrorStyle::Envelope`].
    #[must_use]
    pub const fn errors(mut self, style: ErrorStyle) -> Self {
        self.style = style;
        self
    }

    /// Honours `If-Match`: the use case changes or deletes the record only if it has one of these entity tags.
    #[must_use]
    pub const fn if_match(mut self) -> Self {
        self.if_match = true;
        self
    }

    /// Honours `If-None-Match` on a write: with `*`, the use case creates the record and never replaces one.
    #[must_use]
    pub const fn if_none_match(mut self) -> Self {
        self.if_none_match = true;
        self
    }

    /// Declares that the response contains a secret. The response stored for an idempotency key is then encrypted.
    #[must_use]
    pub const fn secret_answer(mut self) -> Self {
        self.secret_answer = true;
        self
    }

    /// Declares that a success can take away the access that the row requires, such as leaving an organization. A
    /// repeated request with the same `Idempotency-Key` then gets the stored response, although the handler would now
    /// refuse it.
    #[must_use]
    pub const fn ends_access(mut self) -> Self {
        self.ends_access = true;
        self
    }

    /// Replaces `UNAUTHORIZED` by another code and message. It is the refusal of callers who are anonymous or are not
    /// the required person.
    #[must_use]
    pub fn replaces_unauthorized(mut self, code: Code, message: &'static str) -> Self {
        self.code_replacements.push(CodeReplacement {
            from: Code::Unauthorized,
            to: code,
            message: Some(message),
        });
        self
    }

    /// Replaces the error code `from` of the scope or the use case by `to`, for clients of a library that expect that
    /// code.
    #[must_use]
    pub fn replaces_code(mut self, from: Code, to: Code) -> Self {
        self.refuses.push(to);
        self.code_replacements.push(CodeReplacement {
            from,
            to,
            message: None,
        });
        self
    }

    /// Returns the code that this row uses in place of `code`.
    pub(crate) fn replace_code(&self, code: Code) -> Code {
        self.wording(code).map_or(code, |wording| wording.to)
    }

    /// Returns the error with the code and the message that this row uses.
    pub(crate) fn replace_error(&self, refusal: Error) -> Error {
        let Some(wording) = self.wording(refusal.code()) else {
            return refusal;
        };
        match (wording.message, refusal) {
            (Some(message), _) => Error::refused(wording.to, message),
            (
                None,
                Error::Refused {
                    message, details, ..
                },
            ) => Error::Refused {
                code: wording.to,
                message,
                details,
            },
            (None, _) => Error::of_code(wording.to),
        }
    }

    fn wording(&self, code: Code) -> Option<&CodeReplacement> {
        self.code_replacements
            .iter()
            .find(|wording| wording.from == code)
    }

    /// Sets the maximum size of the body, in bytes. Default: the limit of the installation. Not for uploads.
    #[must_use]
    pub const fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = Some(bytes);
        self
    }

    /// Also accepts bodies of the type `application/x-www-form-urlencoded`.
    #[must_use]
    pub const fn takes_forms(mut self) -> Self {
        self.takes_forms = true;
        self
    }

    /// Sets the content types of uploads for OpenAPI. Default: `application/octet-stream`.
    #[must_use]
    pub fn takes(mut self, content_types: &[&'static str]) -> Self {
        self.takes = content_types.to_vec();
        self
    }

    /// Sets the content types of a response that is not JSON.
    #[must_use]
    pub fn produces(mut self, content_types: &[&'static str]) -> Self {
        self.produces = content_types.to_vec();
        self
    }

    /// Takes the idempotency key from this field of the body, if the request has no `Idempotency-Key`.
    #[must_use]
    pub const fn key_in_body(mut self, field: &'static str) -> Self {
        self.key_field = Some(field);
        self
    }

    /// Adds an optional request header that the handler reads, with its schema, to OpenAPI.
    #[must_use]
    pub fn header(mut self, name: &'static str, schema: Value) -> Self {
        let is_required = false;
        self.headers.push(HeaderParameter {
            name,
            schema,
            is_required,
        });
        self
    }

    /// Like [`Row::header`], for a header without which the handler refuses the request.
    #[must_use]
    pub fn required_header(mut self, name: &'static str, schema: Value) -> Self {
        let is_required = true;
        self.headers.push(HeaderParameter {
            name,
            schema,
            is_required,
        });
        self
    }
}
