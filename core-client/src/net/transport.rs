//! Sends requests: attaches the credential, repeats failed attempts, and reads responses.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as Connections;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{sleep, timeout};

use super::retry::RetryPolicy;
use super::upload::{Upload, UploadMonitor};
use crate::credential::{Credential, TokenSource};
use crate::error::{ApiError, Error, Result, TransportError, TransportStage};

/// Maximum size of a JSON response in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024 * 1024;

/// Maximum size of an error response in bytes.
const MAX_ERROR_BYTES: usize = 1024 * 1024;

/// Time after which an idle connection is closed.
const POOL_IDLE: Duration = Duration::from_secs(30);

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

type OutgoingBody = BoxBody<Bytes, io::Error>;

/// A request without credential.
#[derive(Debug)]
pub(crate) struct OutgoingRequest {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) content: Content,
    /// True if repeated requests have the effect of one.
    pub(crate) is_idempotent: bool,
}

/// The body of a request that can be sent several times.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    None,
    Bytes(&'static str, Bytes),
    Upload(Upload),
}

/// The connections of a client, and the rules by which it uses them.
pub(crate) struct Transport {
    pub(crate) connections: Connections<HttpsConnector<HttpConnector>, OutgoingBody>,
    pub(crate) source: Arc<dyn TokenSource>,
    pub(crate) policy: RetryPolicy,
    pub(crate) user_agent: HeaderValue,
    /// Maximum time between a complete request and the head of its response.
    pub(crate) response_timeout: Duration,
}

/// Creates a pool of connections.
pub(crate) fn connections(
    connector: HttpsConnector<HttpConnector>,
) -> Connections<HttpsConnector<HttpConnector>, OutgoingBody> {
    Connections::builder(TokioExecutor::new())
        .pool_idle_timeout(POOL_IDLE)
        .pool_timer(TokioTimer::new())
        .build(connector)
}

impl Transport {
    /// Sends a request until it succeeds, is refused for good, or has used up its attempts.
    pub(crate) async fn send(&self, request: &OutgoingRequest) -> Result<Response<Incoming>> {
        let mut credential = self.source.credential().await?;
        let (mut attempts, mut has_replaced) = (0, false);
        loop {
            attempts += 1;
            let error = match self.attempt(request, credential.as_ref()).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            if error.status() == Some(401)
                && !has_replaced
                && let Some(refused) = &credential
            {
                has_replaced = true;
                match self.source.replace(refused).await? {
                    Some(other) => credential = Some(other),
                    None => return Err(error),
                }
                continue;
            }
            let pause = self
                .policy
                .pause_before_next(&error, attempts, request.is_idempotent);
            match pause {
                Some(pause) => sleep(pause).await,
                None => return Err(with_attempts(error, attempts)),
            }
        }
    }

    /// Sends a request once. A response with an error status is returned as an error.
    async fn attempt(
        &self,
        request: &OutgoingRequest,
        credential: Option<&Credential>,
    ) -> Result<Response<Incoming>> {
        let (body, monitor) = open_body(&request.content);
        let prepared = self.prepare(request, credential, body)?;
        let response = self
            .wait_for_head(prepared, &request.url, monitor.as_ref())
            .await;
        if let Some(failure) = monitor.as_ref().and_then(UploadMonitor::take_failure) {
            return Err(Error::Upload(failure));
        }
        let response = response?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(read_error(response, &request.url).await)
    }

    fn prepare(
        &self,
        request: &OutgoingRequest,
        credential: Option<&Credential>,
        body: OutgoingBody,
    ) -> Result<Request<OutgoingBody>> {
        let invalid = |error: http::Error| Error::Argument(format!("{}: {error}", request.url));
        let mut prepared = Request::builder()
            .method(request.method.clone())
            .uri(&request.url)
            .body(body)
            .map_err(invalid)?;
        let headers = prepared.headers_mut();
        headers.clone_from(&request.headers);
        headers.insert(USER_AGENT, self.user_agent.clone());
        match &request.content {
            Content::None => {}
            Content::Bytes(kind, _) => {
                drop(headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind)))
            }
            Content::Upload(upload) => {
                headers.insert(
                    CONTENT_TYPE,
                    HeaderValue::from_static(upload.content_type()),
                );
            }
        }
        if let Some(credential) = credential {
            let (name, value) = credential_header(credential)?;
            headers.insert(name, value);
        }
        Ok(prepared)
    }

    /// Waits for the head of the response. An upload may take any time as long as it makes progress.
    async fn wait_for_head(
        &self,
        request: Request<OutgoingBody>,
        url: &str,
        monitor: Option<&UploadMonitor>,
    ) -> Result<Response<Incoming>> {
        let mut response = std::pin::pin!(self.connections.request(request));
        let mut sent = 0;
        loop {
            match timeout(self.response_timeout, &mut response).await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(error)) => {
                    let stage = match error.is_connect() {
                        true => TransportStage::Connect,
                        false => TransportStage::Request,
                    };
                    return Err(TransportError::new(stage, url, error).into());
                }
                Err(elapsed) => {
                    let now = monitor.map_or(0, UploadMonitor::bytes);
                    if now == sent {
                        let stage = TransportStage::Timeout;
                        return Err(TransportError::new(stage, url, elapsed).into());
                    }
                    sent = now;
                }
            }
        }
    }

    /// Reads a complete response of limited size.
    pub(crate) async fn read(&self, response: Response<Incoming>, url: &str) -> Result<Bytes> {
        let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect();
        let incomplete = |source| TransportError::new(TransportStage::Response, url, source);
        match timeout(self.response_timeout, body).await {
            Ok(body) => Ok(body.map_err(incomplete)?.to_bytes()),
            Err(elapsed) => Err(TransportError::new(TransportStage::Timeout, url, elapsed).into()),
        }
    }
}

fn open_body(content: &Content) -> (OutgoingBody, Option<UploadMonitor>) {
    match content {
        Content::None => (Empty::new().map_err(|never| match never {}).boxed(), None),
        Content::Bytes(_, bytes) => {
            let body = Full::new(bytes.clone()).map_err(|never| match never {});
            (body.boxed(), None)
        }
        Content::Upload(upload) => {
            let (body, monitor) = upload.open();
            (body.boxed(), Some(monitor))
        }
    }
}

fn credential_header(credential: &Credential) -> Result<(HeaderName, HeaderValue)> {
    let (name, text) = match credential {
        Credential::Bearer(token) => (AUTHORIZATION, format!("Bearer {}", token.expose())),
        Credential::ApiKey(key) => (API_KEY, key.expose().to_owned()),
    };
    let invalid = |_| Error::Argument("the token contains characters that no token has".to_owned());
    let mut value = HeaderValue::from_str(&text).map_err(invalid)?;
    value.set_sensitive(true);
    Ok((name, value))
}

async fn read_error(response: Response<Incoming>, url: &str) -> Error {
    let status = response.status();
    let retry_after = retry_after(response.headers());
    let body = match Limited::new(response.into_body(), MAX_ERROR_BYTES)
        .collect()
        .await
    {
        Ok(body) => body.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let mut error = ApiError::parse(status.as_u16(), &body, retry_after);
    if status == StatusCode::NOT_FOUND && error.code.starts_with("HTTP_") {
        error.message = format!("{url} does not exist. Is this the address of the gateway?");
    }
    Error::Api(Box::new(error))
}

/// Returns the pause in `Retry-After`. Servers of this API send seconds, never a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}

fn with_attempts(error: Error, attempts: u32) -> Error {
    match error {
        Error::Transport(mut transport) => {
            transport.attempts = attempts;
            Error::Transport(transport)
        }
        other => other,
    }
}
