//! The HTTP client of the Stripe API.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use core_domain::kernel::{Clock, Secret, retry_after};
use core_domain::port::Cause;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Connections;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use crate::breaker::Breaker;
use crate::call::Call;
use crate::error::{ApiError, CallError, Refusal};
use crate::options::{StripeAccount, StripeOptions};
use crate::rate::{Caller, RateLimiter};

/// The version of the API. Its name after the date is the major version.
pub(crate) const API_VERSION: &str = "2026-10-28.endive";

const USER_AGENT_VALUE: &str = concat!("core-stripe/", env!("CARGO_PKG_VERSION"));
const FORM: &str = "application/x-www-form-urlencoded";
const STRIPE_VERSION: HeaderName = HeaderName::from_static("stripe-version");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("stripe-should-retry");
const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// Time after which an idle connection is closed.
const POOL_IDLE: Duration = Duration::from_secs(30);

/// The TLS configuration could not be created.
#[derive(Debug, thiserror::Error)]
#[error("failed to set up TLS")]
pub struct TlsError(#[from] rustls::Error);

/// The API client. Cheap to clone; clones share the connections, the rate limiter and the breaker.
#[derive(Clone)]
pub(crate) struct Client(Arc<ClientInner>);

struct ClientInner {
    connections: Connections<HttpsConnector<HttpConnector>, Full<Bytes>>,
    base_url: String,
    secret_key: Secret,
    is_live: bool,
    limiter: RateLimiter,
    breaker: Breaker,
    options: StripeOptions,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("base_url", &self.0.base_url)
            .field("is_live", &self.0.is_live)
            .finish_non_exhaustive()
    }
}

impl Client {
    pub(crate) fn new(
        account: &StripeAccount,
        options: StripeOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, TlsError> {
        let connector = connector(&account.base_url, options.connect_timeout)?;
        let connections = Connections::builder(TokioExecutor::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self(Arc::new(ClientInner {
            connections,
            base_url: account.base_url.clone(),
            secret_key: account.secret_key.clone(),
            is_live: account.is_live(),
            limiter: RateLimiter::new(&options),
            breaker: Breaker::new(&options),
            options,
            clock,
        })))
    }

    pub(crate) fn options(&self) -> &StripeOptions {
        &self.0.options
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.0.clock.as_ref()
    }

    pub(crate) fn is_live(&self) -> bool {
        self.0.is_live
    }

    /// Sends a call once, before a time.
    pub(crate) async fn send(
        &self,
        call: &Call,
        caller: Caller,
        latest: Instant,
    ) -> Result<Value, CallError> {
        let span = tracing::debug_span!(
            "stripe",
            endpoint = call.endpoint,
            key = call.key,
            status = tracing::field::Empty,
            request_id = tracing::field::Empty,
        );
        let sent = self.send_limited(call, caller, latest);
        sent.instrument(span).await
    }

    async fn send_limited(
        &self,
        call: &Call,
        caller: Caller,
        latest: Instant,
    ) -> Result<Value, CallError> {
        let turn = self.0.limiter.acquire(call.endpoint, caller, latest);
        turn.await.map_err(CallError::Throttled)?;
        if !self.0.breaker.admits() {
            let why = "too many requests to Stripe have failed; none is sent for some time";
            return Err(CallError::Unsent(why.into()));
        }
        let outcome = self.exchange(call, latest).await;
        match &outcome {
            Err(CallError::Unsent(_) | CallError::NoResponse { .. }) => self.0.breaker.fail(),
            _ => self.0.breaker.succeed(),
        }
        outcome
    }

    /// Sends a request and decodes its response.
    async fn exchange(&self, call: &Call, latest: Instant) -> Result<Value, CallError> {
        let reads = call.is_read_only();
        let lost = |is_retryable, cause| CallError::NoResponse {
            reads,
            is_retryable,
            cause,
        };
        let request = self.request(call)?;
        let answered = match timeout_at(latest, self.0.connections.request(request)).await {
            Err(_) => return Err(lost(false, "no response in time".into())),
            Ok(Err(error)) if error.is_connect() => {
                return Err(CallError::Unsent(Cause::new(error)));
            }
            Ok(Err(error)) => return Err(lost(true, Cause::new(error))),
            Ok(Ok(answered)) => answered,
        };
        let (status, headers) = (answered.status(), answered.headers().clone());
        let request_id = text_of(&headers, &REQUEST_ID).unwrap_or("unknown");
        let span = tracing::Span::current();
        span.record("status", status.as_u16())
            .record("request_id", request_id);
        tracing::debug!("received a response");
        if status == StatusCode::TOO_MANY_REQUESTS {
            let asked = self.retry_after_of(&headers);
            return Err(CallError::Throttled(self.0.limiter.pause(asked)));
        }
        let should_retry = text_of(&headers, &SHOULD_RETRY) != Some("false");
        let described = |cause: &dyn fmt::Display| {
            Cause::new(format!("{cause}; status {status}, request {request_id}"))
        };
        let body = match timeout_at(latest, self.read(answered)).await {
            Err(_) => return Err(lost(false, described(&"the response stalled"))),
            Ok(Err(error)) => return Err(lost(should_retry, described(&error))),
            Ok(Ok(body)) => body,
        };
        if status.is_server_error() {
            let cause = described(&"the server failed");
            let is_kept = text_of(&headers, &REPLAYED) == Some("true");
            return Err(match is_kept {
                true => CallError::Kept(cause),
                false => lost(should_retry, cause),
            });
        }
        let Ok(value) = serde_json::from_slice::<Value>(&body) else {
            return Err(lost(should_retry, described(&"the response is not JSON")));
        };
        if status.is_success() {
            return self.check_mode(value);
        }
        if status == StatusCode::CONFLICT {
            return Err(CallError::Conflict);
        }
        if !value["error"].is_object() {
            return Err(lost(should_retry, described(&"the response has no error")));
        }
        let error = serde_json::from_value::<ApiError>(value["error"].clone());
        Err(CallError::Refused(Box::new(Refusal {
            endpoint: call.endpoint,
            status,
            error: error.unwrap_or_default(),
            request_id: request_id.to_owned(),
        })))
    }

    /// Refuses an object of another mode than the key's.
    fn check_mode(&self, value: Value) -> Result<Value, CallError> {
        match value["livemode"].as_bool() {
            Some(is_live) if is_live != self.0.is_live => Err(CallError::OtherMode),
            _ => Ok(value),
        }
    }

    fn request(&self, call: &Call) -> Result<Request<Full<Bytes>>, CallError> {
        let unsent = |error: http::Error| CallError::Unsent(Cause::new(error));
        let bearer = HeaderValue::try_from(format!("Bearer {}", self.0.secret_key.expose()));
        let mut bearer = bearer.map_err(|error| unsent(error.into()))?;
        bearer.set_sensitive(true);
        let is_form = call.method == Method::POST;
        let (base, path, params) = (&self.0.base_url, &call.path, &call.params);
        let uri = match is_form || params.is_empty() {
            true => format!("{base}{path}"),
            false => format!("{base}{path}?{params}"),
        };
        let mut request = Request::builder()
            .method(&call.method)
            .uri(uri)
            .header(AUTHORIZATION, bearer)
            .header(STRIPE_VERSION, API_VERSION)
            .header(USER_AGENT, USER_AGENT_VALUE);
        if let Some(key) = &call.key {
            request = request.header(IDEMPOTENCY_KEY, key);
        }
        let mut body = Bytes::new();
        if is_form {
            request = request.header(CONTENT_TYPE, FORM);
            body = Bytes::copy_from_slice(params.as_bytes());
        }
        request.body(Full::new(body)).map_err(unsent)
    }

    fn retry_after_of(&self, headers: &HeaderMap) -> Option<Duration> {
        let header = text_of(headers, &RETRY_AFTER)?;
        Some(retry_after(header, self.0.clock.now()))
    }

    /// Reads the body. Returns an error if it is too long.
    async fn read(
        &self,
        answered: Response<Incoming>,
    ) -> Result<Vec<u8>, Box<dyn StdError + Send + Sync>> {
        let limit = self.0.options.answer_bytes;
        let mut body = answered.into_body();
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame?;
            let data = frame.data_ref().map_or(&[][..], |data| data);
            if bytes.len() + data.len() > limit {
                return Err(format!("more than {limit} bytes").into());
            }
            bytes.extend_from_slice(data);
        }
        Ok(bytes)
    }
}

fn text_of<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Creates a connector that trusts the root certificates of the operating system.
fn connector(
    base_url: &str,
    connect_timeout: Duration,
) -> Result<HttpsConnector<HttpConnector>, TlsError> {
    let mut roots = RootCertStore::empty();
    if base_url.starts_with("https:") {
        // Certificates that cannot be parsed are skipped.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            tracing::warn!("no root certificates found: connections to Stripe will fail");
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(connect_timeout));
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(tls.with_root_certificates(roots).with_no_client_auth())
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp))
}
