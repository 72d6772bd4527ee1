//! The response types of handlers ([`Answer`]), and the type-erased response ([`Reply`]).
//!
//! Records and pages of records are responses themselves. [`Output`] is any other JSON, [`Versioned`] JSON with an
//! entity tag, and `()` an empty response. Responses that are not JSON are in `super::media`.

use bytes::Bytes;
use core_domain::access::AuditEvent;
use core_domain::kernel::{Bounded, Error, Page, Record, Result, Stored};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::lists::{BoundedData, Data, ListP1};
use crate::kernel::request::body::{Body, bytes_body, empty_body};
use crate::kernel::request::media_types::JSON;

/// A function that adds the schema of a type to a generator and returns it, or a reference to it.
pub(crate) type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

/// The properties of a response type, for OpenAPI.
#[derive(Clone, Copy, Debug)]
pub struct AnswerKind {
    /// The schema of the JSON, or of the JSON in each event. `None` if the response has no JSON.
    pub(crate) schema: Option<SchemaFn>,
    /// The schema of the JSON in each event, if the response is either JSON or server-sent events.
    pub(crate) events: Option<SchemaFn>,
    /// Whether the response has an entity tag.
    pub(crate) etag: bool,
    /// The content type, if it is always the same.
    pub(crate) content_type: Option<&'static str>,
}

impl AnswerKind {
    /// Describes JSON of a type, with an entity tag or without.
    #[must_use]
    pub fn json<T: JsonSchema>(etag: bool) -> Self {
        Self {
            schema: Some(SchemaGenerator::subschema_for::<T>),
            events: None,
            etag,
            content_type: Some(JSON),
        }
    }

    /// Describes a response that is not JSON. `content_type` is `None` if it is not always the same.
    #[must_use]
    pub const fn other(content_type: Option<&'static str>) -> Self {
        Self {
            schema: None,
            events: None,
            etag: false,
            content_type,
        }
    }

    /// Adds an entity tag.
    #[must_use]
    pub const fn with_etag(mut self) -> Self {
        self.etag = true;
        self
    }
}

/// A response type of handlers.
pub trait Answer: Sized + Send + 'static {
    /// Returns the properties of the type.
    fn kind() -> AnswerKind;

    /// Returns the audit event of a dry run; `None` if the handler executed the request, which is the default.
    ///
    /// For a dry run, the unit of work of a handler that writes is rolled back, and the event is recorded in another
    /// one.
    fn dry_run(&self) -> Option<AuditEvent> {
        None
    }

    /// Converts the value into a type-erased response, with the status `default` unless it has another one.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if the value cannot be written, for example as JSON.
    fn reply(self, default: StatusCode) -> Result<Reply>;
}

/// A JSON response, with optional status and headers.
#[derive(Clone, Debug)]
pub struct Output<T> {
    body: T,
    status: Option<StatusCode>,
    headers: HeaderMap,
}

impl<T> Output<T> {
    /// Creates a response with this body and the first success status of the row.
    pub fn new(body: T) -> Self {
        Self {
            body,
            status: None,
            headers: HeaderMap::new(),
        }
    }

    /// Sets another success status of the row.
    #[must_use]
    pub const fn status(mut self, status: StatusCode) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds a header, in addition to others with the same name.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// Returns the status, if one was set.
    pub(crate) const fn explicit_status(&self) -> Option<StatusCode> {
        self.status
    }

    /// Returns the body and the headers.
    pub(crate) fn into_parts(self) -> (T, HeaderMap) {
        (self.body, self.headers)
    }

    /// Adds an entity tag, which is given without quotes.
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

/// A JSON response with an entity tag.
#[derive(Clone, Debug)]
pub struct Versioned<T> {
    output: Output<T>,
    etag: String,
}

impl<T> Versioned<T> {
    /// Creates the response for a record that is represented by another type, with the record's entity tag.
    pub fn of<R: Record>(stored: &Stored<R>, shown: T) -> Self {
        Output::new(shown).etag(stored.etag())
    }

    /// Returns the body.
    pub const fn body(&self) -> &T {
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

/// An empty response with status 204, whatever the success status of the row.
impl Answer for () {
    fn kind() -> AnswerKind {
        AnswerKind::other(None)
    }

    fn reply(self, _: StatusCode) -> Result<Reply> {
        Ok(reply(StatusCode::NO_CONTENT, Content::Empty))
    }
}

fn json_text(body: &impl Serialize) -> Result<String> {
    serde_json::to_string(body).map_err(|error| {
        Error::Internal(format!("the response cannot be written as JSON: {error}"))
    })
}

/// Creates a response without headers and entity tag.
pub(crate) fn reply(status: StatusCode, content: Content) -> Reply {
    Reply {
        status,
        content,
        headers: HeaderMap::new(),
        etag: None,
    }
}

/// The content of a response.
#[derive(Debug, Default)]
pub enum Content {
    /// No body, and no content type.
    #[default]
    Empty,
    /// JSON, as text.
    Json(String),
    /// A content type and the bytes.
    Bytes(&'static str, Bytes),
    /// A content type and a body that is produced while it is sent.
    Stream(&'static str, Body),
}

impl Content {
    /// Returns the content type; `None` without content.
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

/// The number of headers that a service and its gateway usually add to a response, for the capacity of the header map.
const TYPICAL_ADDED_HEADERS: usize = 12;

/// A type-erased response.
#[derive(Debug)]
pub struct Reply {
    /// The status of the response.
    pub status: StatusCode,
    /// The content of the response.
    pub content: Content,
    /// The headers. A `Content-Type` or `ETag` among them takes precedence over those of the other fields.
    pub headers: HeaderMap,
    /// The entity tag without quotes; `None` for none.
    pub etag: Option<String>,
}

impl Reply {
    /// Converts the reply into an HTTP response.
    pub(crate) fn into_response(self) -> Response<Body> {
        let mut headers = self.headers;
        headers.reserve(TYPICAL_ADDED_HEADERS);
        // Headers that the handler has set take precedence.
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
