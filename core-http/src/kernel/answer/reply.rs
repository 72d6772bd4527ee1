//! What handlers answer: records and pages as they are, other JSON, bytes, streams, events, redirects, pages of HTML.

use bytes::Bytes;
use core_domain::access::AuditEvent;
use core_domain::kernel::{Bounded, Error, Page, Record, Result, Stored};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::lists::{BoundedData, Data, ListP1};
use crate::kernel::request::body::{Body, bytes_body, empty_body};

/// Writes the schema of a type into a generator.
pub(crate) type Describe = fn(&mut SchemaGenerator) -> Schema;

/// What is known of an answer before it is given.
#[derive(Clone, Copy, Debug)]
pub struct AnswerKind {
    /// The schema of its JSON, or of the JSON in each of its events; `None` when it is not JSON.
    pub(crate) schema: Option<Describe>,
    /// The schema of the JSON in each event, where it is JSON or server-sent events.
    pub(crate) events: Option<Describe>,
    /// Whether it has an entity tag.
    pub(crate) etag: bool,
    /// Its content type, when that is always the same.
    pub(crate) content_type: Option<&'static str>,
}

impl AnswerKind {
    /// Of JSON of a type; with an entity tag or without.
    #[must_use]
    pub fn json<T: JsonSchema>(etag: bool) -> Self {
        Self {
            schema: Some(SchemaGenerator::subschema_for::<T>),
            events: None,
            etag,
            content_type: Some(JSON),
        }
    }

    /// Of an answer that is no JSON.
    #[must_use]
    pub const fn other(content_type: Option<&'static str>) -> Self {
        Self {
            schema: None,
            events: None,
            etag: false,
            content_type,
        }
    }

    /// Of one with an entity tag.
    #[must_use]
    pub const fn with_etag(mut self) -> Self {
        self.etag = true;
        self
    }
}

/// What a handler may answer.
pub trait Answer: Sized + Send + 'static {
    /// What is known of it before it is given.
    fn kind() -> AnswerKind;

    /// The entry in the audit of an answer that only tells what would happen: the unit of a handler that writes is undone,
    /// and this entry is written in another one. `None` of all others.
    fn dry_run(&self) -> Option<AuditEvent> {
        None
    }

    /// Writes it down; with this status unless it says another one.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when it cannot be written.
    fn reply(self, default: StatusCode) -> Result<Reply>;
}

/// JSON of a type, and what surrounds it.
#[derive(Clone, Debug)]
pub struct Output<T> {
    body: T,
    status: Option<StatusCode>,
    headers: HeaderMap,
}

impl<T> Output<T> {
    /// Answers the body with the first success status of the row.
    pub fn new(body: T) -> Self {
        Self {
            body,
            status: None,
            headers: HeaderMap::new(),
        }
    }

    /// Answers another success status of the row.
    #[must_use]
    pub const fn status(mut self, status: StatusCode) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// The status, when it is not the first of the row.
    pub(crate) const fn own_status(&self) -> Option<StatusCode> {
        self.status
    }

    /// What is answered, and the headers.
    pub(crate) fn into_parts(self) -> (T, HeaderMap) {
        (self.body, self.headers)
    }

    /// Adds the entity tag, without quotes.
    #[must_use]
    pub fn etag(self, etag: impl Into<String>) -> Versioned<T> {
        Versioned {
            output: self,
            etag: etag.into(),
        }
    }
}

impl<T: Serialize + JsonSchema + Send + 'static> Answer for Output<T> {
    fn kind() -> AnswerKind {
        AnswerKind::json::<T>(false)
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        Ok(Reply {
            status: self.status.unwrap_or(default),
            content: Content::Json(json_text(&self.body)?),
            headers: self.headers,
            etag: None,
        })
    }
}

/// JSON of a type, with an entity tag.
#[derive(Clone, Debug)]
pub struct Versioned<T> {
    output: Output<T>,
    etag: String,
}

impl<T> Versioned<T> {
    /// What the interface shows of a record where that is not the record itself, with the record's entity tag.
    pub fn of<R: Record>(stored: &Stored<R>, shown: T) -> Self {
        Output::new(shown).etag(stored.etag())
    }

    /// What is shown.
    pub const fn shown(&self) -> &T {
        &self.output.body
    }
}

impl<T: Serialize + JsonSchema + Send + 'static> Answer for Versioned<T> {
    fn kind() -> AnswerKind {
        AnswerKind::json::<T>(true)
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        Ok(Reply {
            etag: Some(self.etag),
            ..self.output.reply(default)?
        })
    }
}

impl<R: Record + Serialize + JsonSchema> Answer for Stored<R> {
    fn kind() -> AnswerKind {
        AnswerKind::json::<R>(true)
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        Ok(Reply {
            status: default,
            content: Content::Json(json_text(&*self)?),
            headers: HeaderMap::new(),
            etag: Some(self.etag()),
        })
    }
}

impl<R: Record + Serialize + JsonSchema> Answer for Page<Stored<R>> {
    fn kind() -> AnswerKind {
        Output::<ListP1<R>>::kind()
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        let page = self.map(Stored::into_inner);
        Output::new(ListP1::from(page)).reply(default)
    }
}

impl<R: Record + Serialize + JsonSchema> Answer for Vec<Stored<R>> {
    fn kind() -> AnswerKind {
        Output::<Data<R>>::kind()
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        let data = self.into_iter().map(Stored::into_inner).collect();
        Output::new(Data { data }).reply(default)
    }
}

impl<R: Record + Serialize + JsonSchema> Answer for Bounded<Stored<R>> {
    fn kind() -> AnswerKind {
        Output::<BoundedData<R>>::kind()
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        let data = self.items.into_iter().map(Stored::into_inner).collect();
        let has_more = self.has_more;
        Output::new(BoundedData { data, has_more }).reply(default)
    }
}

/// No content.
impl Answer for () {
    fn kind() -> AnswerKind {
        AnswerKind::other(None)
    }

    fn reply(self, _: StatusCode) -> Result<Reply> {
        Ok(reply(StatusCode::NO_CONTENT, Content::Empty))
    }
}

fn json_text(body: &impl Serialize) -> Result<String> {
    serde_json::to_string(body)
        .map_err(|error| Error::Internal(format!("the answer is no JSON: {error}")))
}

pub(crate) fn reply(status: StatusCode, content: Content) -> Reply {
    Reply {
        status,
        content,
        headers: HeaderMap::new(),
        etag: None,
    }
}

/// The content type of JSON.
pub(crate) const JSON: &str = "application/json";

/// What an answer is made of.
#[derive(Debug, Default)]
pub enum Content {
    /// Nothing.
    #[default]
    Empty,
    /// JSON, as text.
    Json(String),
    /// Bytes of a content type.
    Bytes(&'static str, Bytes),
    /// Bytes of a content type that come while the answer is being sent.
    Stream(&'static str, Body),
}

impl Content {
    /// The content type, if there is content.
    pub(crate) const fn content_type(&self) -> Option<&'static str> {
        match self {
            Self::Empty => None,
            Self::Json(_) => Some(JSON),
            Self::Bytes(content_type, _) | Self::Stream(content_type, _) => Some(content_type),
        }
    }

    fn into_body(self) -> Body {
        match self {
            Self::Empty => empty_body(),
            Self::Json(text) => bytes_body(text),
            Self::Bytes(_, bytes) => bytes_body(bytes),
            Self::Stream(_, body) => body,
        }
    }
}

/// How many headers are added to an answer by a service and its gateway, as a rule.
const ADDED: usize = 12;

/// An answer whose type is forgotten.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The content.
    pub content: Content,
    /// Headers besides `Content-Type` and `ETag`.
    pub headers: HeaderMap,
    /// The entity tag, without quotes.
    pub etag: Option<String>,
}

impl Reply {
    pub(crate) fn into_response(self) -> Response<Body> {
        let mut headers = self.headers;
        headers.reserve(ADDED);
        // What the handler says itself holds.
        if let Some(content_type) = self.content.content_type() {
            let value = HeaderValue::from_static(content_type);
            headers.entry(header::CONTENT_TYPE).or_insert(value);
        }
        if let Some(etag) = self.etag
            && let Ok(value) = HeaderValue::try_from(format!("\"{etag}\""))
        {
            headers.entry(header::ETAG).or_insert(value);
        }
        let mut response = Response::new(self.content.into_body());
        *response.status_mut() = self.status;
        *response.headers_mut() = headers;
        response
    }
}
