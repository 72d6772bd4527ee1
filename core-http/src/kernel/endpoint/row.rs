//! The typed row of the endpoint table: everything there is to know about a route, in one place.

use core_domain::gateway::RateClass;
use core_domain::kernel::{Code, Error};
use http::{Method, StatusCode};
use serde_json::Value;

use crate::kernel::answer::envelope::ErrorStyle;
use crate::kernel::answer::envelope::status_of;

/// The content type of bytes nothing is known of.
const ANY_BYTES: &str = "application/octet-stream";

/// Another name of a refusal.
#[derive(Clone, Copy, Debug)]
struct Wording {
    from: Code,
    to: Code,
    /// The message. `None`: that of the refusal if it has one of its own, otherwise the code as a sentence.
    message: Option<&'static str>,
}

/// What a row declares before it has its handler. Start with [`get`], [`post`], [`put`], [`patch`] or [`delete`];
/// end with [`Row::reads`], [`Row::reads_once`], [`Row::writes`], [`Row::waits`], [`Row::plain`], [`Row::scoped`] or
/// [`Row::uploads`]. What
/// the caller must be allowed, and what the row takes and gives, is learned from the handler.
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
    words: Vec<Wording>,
    pub(crate) body_limit: Option<usize>,
    pub(crate) takes_forms: bool,
    pub(crate) takes: Vec<&'static str>,
    pub(crate) produces: Vec<&'static str>,
    pub(crate) headers: Vec<(&'static str, Value)>,
}

macro_rules! methods {
    ($($name:ident $method:ident $text:literal),+) => {$(
        #[doc = concat!("A `", $text, "` row: the documented path, and the operation id of OpenAPI.")]
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
            words: Vec::new(),
            body_limit: None,
            takes_forms: false,
            takes: vec![ANY_BYTES],
            produces: Vec::new(),
            headers: Vec::new(),
        }
    }

    /// Says in a sentence what the route does.
    #[must_use]
    pub const fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    /// Describes the operation in detail, in Markdown: what it does, its side effects, and what a repeated call does.
    ///
    /// OpenAPI adds who may call it, idempotency, preconditions and rate limits, all derived from the row.
    #[must_use]
    pub const fn description(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }

    /// Limits the requests of a client by another class than `Default`.
    #[must_use]
    pub const fn rate(mut self, class: RateClass) -> Self {
        self.rate = class;
        self
    }

    /// Answers another documented path as well.
    #[must_use]
    pub fn alias(mut self, path: &'static str) -> Self {
        self.aliases.push(path);
        self
    }

    /// The statuses of success; the first one unless the handler says otherwise. 200 when not said.
    #[must_use]
    pub fn success(mut self, statuses: &[StatusCode]) -> Self {
        self.success = statuses.to_vec();
        self
    }

    /// The codes it can refuse with, besides those that follow from what it takes and demands.
    #[must_use]
    pub fn refuses(mut self, codes: &[Code]) -> Self {
        self.refuses.extend_from_slice(codes);
        self
    }

    /// Refuses with a code in another status than the code has everywhere else: where clients of a library know it so.
    #[must_use]
    pub fn refuses_as(mut self, code: Code, status: StatusCode) -> Self {
        self.refuses.push(code);
        self.statuses.push((code, status));
        self
    }

    /// The status in which the row refuses with a code.
    pub(crate) fn status_of(&self, code: Code) -> StatusCode {
        let own = self.statuses.iter().find(|(known, _)| *known == code);
        own.map_or_else(|| status_of(code), |(_, status)| *status)
    }

    /// Wraps errors differently.
    #[must_use]
    pub const fn errors(mut self, style: ErrorStyle) -> Self {
        self.style = style;
        self
    }

    /// Obeys `If-Match`: the use case replaces or removes the record only while it has one of these entity tags.
    #[must_use]
    pub const fn if_match(mut self) -> Self {
        self.if_match = true;
        self
    }

    /// Obeys `If-None-Match` as well: with `*` the use case creates the record, and never replaces it.
    #[must_use]
    pub const fn if_none_match(mut self) -> Self {
        self.if_none_match = true;
        self
    }

    /// The answer holds a secret: what is stored of it for an idempotency key is encrypted.
    #[must_use]
    pub const fn secret_answer(mut self) -> Self {
        self.secret_answer = true;
        self
    }

    /// A success of the row can end what it asks of its caller. A repetition with the same `Idempotency-Key` gets the stored
    /// answer, although the handler would refuse the caller now.
    #[must_use]
    pub const fn ends_access(mut self) -> Self {
        self.ends_access = true;
        self
    }

    /// Says with another code and message that nobody is known to call, or nobody who can meet the requirement.
    #[must_use]
    pub fn unauthorized(mut self, code: Code, message: &'static str) -> Self {
        self.words.push(Wording {
            from: Code::Unauthorized,
            to: code,
            message: Some(message),
        });
        self
    }

    /// Refuses with the code `to` where the scope or the use case refuses with `from`: clients of a library know the refusal
    /// by that name.
    #[must_use]
    pub fn rewords(mut self, from: Code, to: Code) -> Self {
        self.refuses.push(to);
        self.words.push(Wording {
            from,
            to,
            message: None,
        });
        self
    }

    /// The code with which the row refuses what others refuse with `code`.
    pub(crate) fn reworded(&self, code: Code) -> Code {
        self.wording(code).map_or(code, |wording| wording.to)
    }

    /// Returns a refusal in the words of the row.
    pub(crate) fn worded(&self, refusal: Error) -> Error {
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

    fn wording(&self, code: Code) -> Option<&Wording> {
        self.words.iter().find(|wording| wording.from == code)
    }

    /// The largest body in bytes, where that is not the limit of the installation.
    #[must_use]
    pub const fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = Some(bytes);
        self
    }

    /// Takes `application/x-www-form-urlencoded` bodies too.
    #[must_use]
    pub const fn takes_forms(mut self) -> Self {
        self.takes_forms = true;
        self
    }

    /// The content types of bodies a row of uploads takes.
    #[must_use]
    pub fn takes(mut self, content_types: &[&'static str]) -> Self {
        self.takes = content_types.to_vec();
        self
    }

    /// The content types of an answer that is no JSON.
    #[must_use]
    pub fn produces(mut self, content_types: &[&'static str]) -> Self {
        self.produces = content_types.to_vec();
        self
    }

    /// Describes a header the handler reads, by its schema.
    #[must_use]
    pub fn header(mut self, name: &'static str, schema: Value) -> Self {
        self.headers.push((name, schema));
        self
    }
}
