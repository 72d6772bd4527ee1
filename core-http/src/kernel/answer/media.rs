//! Responses that are not JSON: files, event streams, redirects and HTML pages.
//!
//! A row that returns [`Media`] or [`MediaStream`] declares the content types with
//! [`Row::produces`](crate::kernel::Row::produces). The other types always have the same content type.

use std::borrow::Cow;
use std::marker::PhantomData;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use core_domain::kernel::{Error, Result};
use futures_util::stream::{Stream, StreamExt};
use http::{HeaderName, HeaderValue, StatusCode, header};
use http_body::Frame;
use http_body_util::StreamBody;
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::reply::{Answer, AnswerKind, Content, Output, Reply, Versioned, reply};
use crate::kernel::request::body::{Body, BoxError};
use crate::kernel::request::media_types::{EVENT_STREAM, HTML};

/// A body in memory, with a content type.
#[derive(Clone, Debug)]
pub struct Media {
    /// One of the content types that the row declares.
    pub content_type: &'static str,
    /// The bytes of the body.
    pub bytes: Bytes,
}

impl Answer for Media {
    fn kind() -> AnswerKind {
        AnswerKind::other(None)
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        Ok(reply(
            default,
            Content::Bytes(self.content_type, self.bytes),
        ))
    }
}

/// A body that is produced while it is sent, with a content type. An error of the stream aborts the response.
#[derive(Debug)]
pub struct MediaStream {
    /// One of the content types that the row declares.
    pub content_type: &'static str,
    body: Body,
    file_name: Option<&'static str>,
}

impl MediaStream {
    /// Creates a response that sends the chunks of a stream.
    pub fn new<S, E>(content_type: &'static str, stream: S) -> Self
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let frames = stream.map(|piece| piece.map(Frame::data).map_err(Into::into));
        Self {
            content_type,
            body: Body::new(StreamBody::new(frames)),
            file_name: None,
        }
    }

    /// Makes browsers save the response as a file. The name consists of letters, digits, `.`, `-` and `_`.
    #[must_use]
    pub const fn attachment(mut self, file_name: &'static str) -> Self {
        self.file_name = Some(file_name);
        self
    }
}

impl Answer for MediaStream {
    fn kind() -> AnswerKind {
        AnswerKind::other(None)
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        let mut reply = reply(default, Content::Stream(self.content_type, self.body));
        if let Some(name) = self.file_name {
            let disposition = format!("attachment; filename=\"{name}\"");
            let disposition = HeaderValue::try_from(disposition)
                .map_err(|error| Error::Internal(format!("invalid file name: {error}")))?;
            reply
                .headers
                .insert(header::CONTENT_DISPOSITION, disposition);
        }
        Ok(reply)
    }
}

/// A server-sent event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    id: Option<String>,
    name: Option<Cow<'static, str>>,
    /// The JSON text; `None` for a comment.
    data: Option<String>,
}

impl Event {
    /// Creates an event with this data as JSON.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if the data cannot be written as JSON.
    pub fn json(data: &impl Serialize) -> Result<Self> {
        let data = serde_json::to_string(data).map_err(|error| {
            Error::Internal(format!("an event cannot be written as JSON: {error}"))
        })?;
        Ok(Self {
            data: Some(data),
            ..Self::comment()
        })
    }

    /// Creates a comment, which clients ignore. It serves as a heartbeat.
    #[must_use]
    pub const fn comment() -> Self {
        Self {
            id: None,
            name: None,
            data: None,
        }
    }

    /// Sets the name of the event, by which clients select events.
    #[must_use]
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the id of the event, which a client sends as `Last-Event-ID` when it reconnects.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Returns the event in the format `text/event-stream`.
    fn into_bytes(self) -> Bytes {
        let line = |name: &str, value: &str| {
            // A line break would start another field.
            format!("{name}: {}\n", value.replace(['\r', '\n', '\0'], " "))
        };
        let Some(data) = &self.data else {
            return Bytes::from_static(b":\n\n");
        };
        let mut text = String::new();
        if let Some(id) = &self.id {
            text.push_str(&line("id", id));
        }
        if let Some(name) = &self.name {
            text.push_str(&line("event", name));
        }
        text.push_str(&line("data", data));
        text.push('\n');
        Bytes::from(text)
    }
}

/// A stream of server-sent events whose data is JSON of the type `T`.
#[derive(Debug)]
pub struct EventStream<T> {
    body: Body,
    data: PhantomData<fn() -> T>,
}

impl<T> EventStream<T> {
    /// Creates a response that sends the events of a stream.
    pub fn new<S, E>(events: S) -> Self
    where
        S: Stream<Item = Result<Event, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let bytes = events.map(|event| event.map(Event::into_bytes));
        Self {
            body: MediaStream::new(EVENT_STREAM, bytes).body,
            data: PhantomData,
        }
    }
}

impl<T: JsonSchema + 'static> Answer for EventStream<T> {
    fn kind() -> AnswerKind {
        AnswerKind {
            content_type: Some(EVENT_STREAM),
            ..AnswerKind::json::<T>(false)
        }
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        let mut reply = reply(default, Content::Stream(EVENT_STREAM, self.body));
        let no_cache = HeaderValue::from_static("no-cache");
        reply.headers.insert(header::CACHE_CONTROL, no_cache);
        Ok(reply)
    }
}

/// JSON, or server-sent events for clients that accept them
/// ([`Cx::asks_for_events`](crate::kernel::Cx::asks_for_events)).
#[derive(Debug)]
pub enum JsonOrEvents<J, E> {
    /// A JSON response.
    Json(Output<J>),
    /// A stream of server-sent events.
    Events(EventStream<E>),
}

impl<J, E> Answer for JsonOrEvents<J, E>
where
    J: Serialize + JsonSchema + Send + 'static,
    E: JsonSchema + 'static,
{
    fn kind() -> AnswerKind {
        AnswerKind {
            events: EventStream::<E>::kind().schema,
            ..Output::<J>::kind()
        }
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        match self {
            Self::Json(output) => output.reply(default),
            Self::Events(events) => events.reply(default),
        }
    }
}

/// JSON with an entity tag, or an HTML page for clients that accept one
/// ([`Cx::asks_for_page`](crate::kernel::Cx::asks_for_page)). The row declares the page with
/// [`Row::produces`](crate::kernel::Row::produces).
#[derive(Debug)]
pub enum JsonOrPage<T> {
    /// A JSON response.
    Json(Versioned<T>),
    /// A page.
    Page(StandalonePage),
}

impl<T: Serialize + JsonSchema + Send + 'static> Answer for JsonOrPage<T> {
    fn kind() -> AnswerKind {
        Versioned::<T>::kind()
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        match self {
            Self::Json(json) => json.reply(default),
            Self::Page(page) => page.reply(default),
        }
    }
}

/// A redirect with the 3xx status that the row declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The target: a path of this service, or a URL that was validated.
    pub location: String,
}

impl Answer for Redirect {
    fn kind() -> AnswerKind {
        AnswerKind::other(None)
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        if !default.is_redirection() {
            return Err(Error::Internal(format!("{default} is not a redirect")));
        }
        let location = HeaderValue::try_from(self.location)
            .map_err(|error| Error::Internal(format!("invalid redirect target: {error}")))?;
        let mut reply = reply(default, Content::Empty);
        reply.headers.insert(header::LOCATION, location);
        Ok(reply)
    }
}

/// JSON, or a redirect with headers (302), as the request asks for.
#[derive(Debug)]
pub enum RedirectOr<T> {
    /// A JSON response.
    Json(Output<T>),
    /// A redirect to this target: a path of this service, or a URL that was validated.
    To(Output<String>),
}

impl<T: Serialize + JsonSchema + Send + 'static> Answer for RedirectOr<T> {
    fn kind() -> AnswerKind {
        Output::<T>::kind()
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        let (location, headers) = match self {
            Self::Json(output) => return output.reply(default),
            Self::To(output) => output.into_parts(),
        };
        let redirect = Redirect { location };
        let mut reply = redirect.reply(StatusCode::FOUND)?;
        reply.headers.extend(headers);
        Ok(reply)
    }
}

/// An HTML page. Create it only with templates that escape their values.
#[derive(Clone, Debug)]
pub struct Html(pub String);

impl Answer for Html {
    fn kind() -> AnswerKind {
        AnswerKind::other(Some(HTML))
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        let mut reply = reply(default, Content::Bytes(HTML, self.0.into()));
        reply.headers.extend(page_headers());
        Ok(reply)
    }
}

// The `Content-Security-Policy` of pages with these script sources.
macro_rules! policy {
    ($scripts:literal) => {
        concat!(
            "default-src 'self'; script-src ",
            $scripts,
            "; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
        )
    };
}

/// An HTML page that contains its stylesheet in one `style` element. It is complete wherever it is shown or stored.
#[derive(Clone, Debug)]
pub struct StandalonePage {
    /// The page. Create it only with templates that escape their values.
    pub html: String,
    /// The exact text of the `style` element.
    pub style: &'static str,
}

impl Answer for StandalonePage {
    fn kind() -> AnswerKind {
        Html::kind()
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        let digest = STANDARD.encode(Sha256::digest(self.style));
        let policy = format!("{}; style-src 'sha256-{digest}'", policy!("'none'"));
        let policy = HeaderValue::try_from(policy)
            .map_err(|error| Error::Internal(format!("invalid policy: {error}")))?;
        let mut reply = Html(self.html).reply(default)?;
        reply
            .headers
            .insert(header::CONTENT_SECURITY_POLICY, policy);
        Ok(reply)
    }
}

/// The `Content-Security-Policy` of a page that loads a script file of this service. All other pages run no scripts.
pub(crate) const SCRIPT_POLICY: &str = policy!("'self'");

/// Returns the `Content-Security-Policy` of a page without scripts whose form can redirect to pages of these origins.
/// Browsers apply `form-action` also to redirects after a form was sent.
pub(crate) fn form_policy(origins: &[String]) -> String {
    format!("{} {}", policy!("'none'"), origins.join(" "))
}

/// Returns the security headers of every HTML page.
pub(crate) fn page_headers() -> [(HeaderName, HeaderValue); 3] {
    let set = |name, value| (name, HeaderValue::from_static(value));
    [
        set(header::CONTENT_SECURITY_POLICY, policy!("'none'")),
        set(header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With `no-referrer`, browsers send `Origin: null` with the forms of a page, and these would be refused.
        set(header::REFERRER_POLICY, "same-origin"),
    ]
}

/// An HTML page with headers, or a redirect to another page (303). The response to a form, never cached.
#[derive(Debug)]
pub enum PageOr {
    /// A page, with the status of the output if it has one.
    Page(Output<Html>),
    /// A redirect to a path of this service.
    To(Output<String>),
}

impl Answer for PageOr {
    fn kind() -> AnswerKind {
        Html::kind()
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        let (mut reply, headers) = match self {
            Self::Page(output) => {
                let status = output.explicit_status().unwrap_or(default);
                let (page, headers) = output.into_parts();
                (page.reply(status)?, headers)
            }
            Self::To(output) => {
                let (location, headers) = output.into_parts();
                let redirect = Redirect { location };
                (redirect.reply(StatusCode::SEE_OTHER)?, headers)
            }
        };
        reply.headers.extend(headers);
        let no_store = HeaderValue::from_static("no-store");
        reply.headers.insert(header::CACHE_CONTROL, no_store);
        Ok(reply)
    }
}
