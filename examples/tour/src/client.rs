//! A small HTTP client: JSON requests and responses, and an upload that reports its progress.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::{Method, Request, StatusCode, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use crate::failure::Failure;

type Outgoing = http_body_util::combinators::BoxBody<Bytes, std::convert::Infallible>;

/// A client with a connection pool.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pool: Pool<HttpConnector, Outgoing>,
}

/// A complete response.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The status code of the response.
    pub(crate) status: StatusCode,
    /// The headers of the response.
    pub(crate) headers: http::HeaderMap,
    /// The body in bytes, as received.
    pub(crate) bytes: Bytes,
}

impl Answer {
    /// Returns the body as JSON; `null` if it is not JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or(Value::Null)
    }

    /// Returns the response if it has the expected status, or else an error with its body.
    pub(crate) fn expect(self, status: u16, what: &str) -> Result<Self, Failure> {
        if self.status.as_u16() == status {
            return Ok(self);
        }
        let body = String::from_utf8_lossy(&self.bytes).into_owned();
        Err(Failure(format!(
            "{what}: expected status {status}, got {}: {body}",
            self.status
        )))
    }
}

/// A request that is being built.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    client: &'a Client,
    builder: http::request::Builder,
    body: Outgoing,
}

impl Client {
    /// Creates a client with its own connection pool.
    pub(crate) fn new() -> Self {
        Self {
            pool: Pool::builder(TokioExecutor::new()).build_http(),
        }
    }

    /// Starts a request. Hostnames below `.localhost` are sent to this machine without asking the system's resolver.
    pub(crate) fn call(&self, method: Method, url: &str) -> Result<Call<'_>, Failure> {
        let uri: Uri = url.parse().map_err(|e| Failure(format!("{url}: {e}")))?;
        let authority = uri
            .authority()
            .ok_or_else(|| Failure(format!("{url} has no host")))?
            .clone();
        let mut builder = Request::builder().method(method);
        let target = if authority.host().ends_with(".localhost") {
            builder = builder.header(HOST, authority.as_str());
            url.replacen(authority.host(), "127.0.0.1", 1)
        } else {
            url.to_owned()
        };
        Ok(Call {
            client: self,
            builder: builder.uri(target),
            body: Full::default().boxed(),
        })
    }
}

impl Call<'_> {
    /// Adds a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.builder = self.builder.header(name, value);
        self
    }

    /// Adds a bearer token.
    pub(crate) fn bearer(self, token: &str) -> Self {
        let value = format!("Bearer {token}");
        self.header(AUTHORIZATION.as_str(), &value)
    }

    /// Sets a JSON body.
    pub(crate) fn json(mut self, body: &Value) -> Self {
        self.body = Full::from(body.to_string()).boxed();
        self.header(CONTENT_TYPE.as_str(), "application/json")
    }

    /// Sets a body that is sent in pieces. `told` is called after each piece with the number of bytes sent so far.
    pub(crate) fn upload(
        mut self,
        content_type: &str,
        bytes: Bytes,
        on_progress: impl Fn(u64) + Send + Sync + 'static,
    ) -> Self {
        let length = bytes.len().to_string();
        self.body = Upload {
            rest: bytes,
            sent: 0,
            told: Box::new(on_progress),
        }
        .boxed();
        self.header(CONTENT_TYPE.as_str(), content_type)
            .header(CONTENT_LENGTH.as_str(), &length)
    }

    /// Sends the request and reads the complete response.
    pub(crate) async fn send(self) -> Result<Answer, Failure> {
        let request = self
            .builder
            .body(self.body)
            .map_err(|e| Failure(e.to_string()))?;
        let what = format!("{} {}", request.method(), request.uri());
        let response = self
            .client
            .pool
            .request(request)
            .await
            .map_err(|e| Failure(format!("{what}: {e}")))?;
        let (parts, body) = response.into_parts();
        let bytes = body
            .collect()
            .await
            .map_err(|e| Failure(format!("{what}: {e}")))?
            .to_bytes();
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            bytes,
        })
    }
}

/// The size of one piece of an upload, in bytes.
const PIECE: usize = 16 * 1024;

struct Upload {
    rest: Bytes,
    sent: u64,
    told: Box<dyn Fn(u64) + Send + Sync>,
}

impl Body for Upload {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let length = PIECE.min(self.rest.len());
        let piece = self.rest.split_to(length);
        self.sent += length as u64;
        (self.told)(self.sent);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
