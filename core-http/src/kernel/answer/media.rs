//! Answers that are no JSON. A row that answers one of them says its content types with [`Row::produces`](super::Row::produces),
//! unless the answer always has the same one.

use std::borrow::Cow;
use std::marker::PhantomData;

use bytes::Bytes;
use core_domain::kernel::{Error, Result};
use futures_util::stream::{Stream, StreamExt};
use http::{HeaderName, HeaderValue, StatusCode, header};
use http_body::Frame;
use http_body_util::StreamBody;
use schemars::JsonSchema;
use serde::Serialize;

use super::reply::{Answer, AnswerKind, Content, Output, Reply, reply};
use crate::kernel::request::body::{Body, BoxError};

pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// Bytes of a content type, whole.
#[derive(Clone, Debug)]
pub struct Media {
    /// One of the content types of the row.
    pub content_type: &'static str,
    /// The bytes.
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

/// Bytes of a content type that come while the answer is being sent. What fails in the middle breaks the answer off.
#[derive(Debug)]
pub struct MediaStream {
    /// One of the content types of the row.
    pub content_type: &'static str,
    body: Body,
    file_name: Option<&'static str>,
}

impl MediaStream {
    /// Sends what the stream gives.
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

    /// Wants to be kept as a file of this name, which is letters, digits, `.`, `-` and `_`.
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
                .map_err(|error| Error::Internal(format!("no name of a file: {error}")))?;
            reply
                .headers
                .insert(header::CONTENT_DISPOSITION, disposition);
        }
        Ok(reply)
    }
}

/// An event of a stream of server-sent events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    id: Option<String>,
    name: Option<Cow<'static, str>>,
    /// `None` for a comment.
    data: Option<String>,
}

impl Event {
    /// An event with this as its data.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when it is no JSON.
    pub fn json(data: &impl Serialize) -> Result<Self> {
        let data = serde_json::to_string(data)
            .map_err(|error| Error::Internal(format!("the event is no JSON: {error}")))?;
        Ok(Self {
            data: Some(data),
            ..Self::comment()
        })
    }

    /// Nothing that a client is told of: a sign of life.
    #[must_use]
    pub const fn comment() -> Self {
        Self {
            id: None,
            name: None,
            data: None,
        }
    }

    /// Names it; clients listen for names.
    #[must_use]
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Gives it an id, which a client that lost the connection sends as `Last-Event-ID`.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    fn into_bytes(self) -> Bytes {
        let line = |name: &str, value: &str| {
            // A line break would begin another field.
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

/// Server-sent events whose data is JSON of a type.
#[derive(Debug)]
pub struct EventStream<T> {
    body: Body,
    data: PhantomData<fn() -> T>,
}

impl<T> EventStream<T> {
    /// Sends what the stream gives.
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

/// JSON; server-sent events for a client that asks for them ([`Cx::asks_for_events`](super::Cx::asks_for_events)).
#[derive(Debug)]
pub enum JsonOrEvents<J, E> {
    /// JSON.
    Json(Output<J>),
    /// Events.
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

/// Sends the client elsewhere, with a 3xx status of the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// Where to: a path of ours or an address that was checked.
    pub location: String,
}

impl Answer for Redirect {
    fn kind() -> AnswerKind {
        AnswerKind::other(None)
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        if !default.is_redirection() {
            return Err(Error::Internal(format!("{default} is no redirection")));
        }
        let location = HeaderValue::try_from(self.location)
            .map_err(|error| Error::Internal(format!("no place to redirect to: {error}")))?;
        let mut reply = reply(default, Content::Empty);
        reply.headers.insert(header::LOCATION, location);
        Ok(reply)
    }
}

/// JSON, or a redirection with headers: which one depends on what the request asks for.
#[derive(Debug)]
pub enum RedirectOr<T> {
    /// JSON.
    Json(Output<T>),
    /// A redirection to this place: a path of ours or an address that was checked.
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

/// A page for people: HTML that came from templates which escape what they are given.
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

/// What a page may load, and where scripts may come from.
macro_rules! policy {
    ($scripts:literal) => {
        concat!(
            "default-src 'self'; script-src ",
            $scripts,
            "; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
        )
    };
}

/// The policy of a page that runs a script of ours, in a file of its own; all others run none.
pub(crate) const SCRIPT_POLICY: &str = policy!("'self'");

/// The policy of a page without script whose form may lead on to pages of these origins: browsers hold redirections that follow
/// a form to the policy as well.
pub(crate) fn form_policy(origins: &[String]) -> String {
    format!("{} {}", policy!("'none'"), origins.join(" "))
}

/// What browsers are told of every page.
pub(crate) fn page_headers() -> [(HeaderName, HeaderValue); 3] {
    let set = |name, value| (name, HeaderValue::from_static(value));
    [
        set(header::CONTENT_SECURITY_POLICY, policy!("'none'")),
        set(header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Without any referrer, browsers say `Origin: null` of the forms of a page, and these would be refused.
        set(header::REFERRER_POLICY, "same-origin"),
    ]
}

/// A page with headers, or the way to another one (303): what comes after a form depends on what it said.
#[derive(Debug)]
pub enum PageOr {
    /// A page; in whatever status it says.
    Page(Output<Html>),
    /// To a path of ours.
    To(Output<String>),
}

impl Answer for PageOr {
    fn kind() -> AnswerKind {
        Html::kind()
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        let (mut reply, headers) = match self {
            Self::Page(output) => {
                let status = output.own_status().unwrap_or(default);
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
