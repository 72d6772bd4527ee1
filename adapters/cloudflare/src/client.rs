//! The HTTP client of the Cloudflare API.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use core_domain::kernel::{Clock, Secret, retry_after};
use core_domain::port::Cause;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_TYPE, RETRY_AFTER, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE, USER_AGENT,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Connections;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tracing::Instrument;

use crate::call::Call;
use crate::envelope::{Content, EnvelopeError, ResultInfo, decode};
use crate::error::{CallError, Refusal};
use crate::options::{CloudflareAccount, CloudflareOptions};
use crate::rate::RateLimiter;

const USER_AGENT_VALUE: &str = concat!("core-cloudflare/", env!("CARGO_PKG_VERSION"));

/// Maximum number of attempts of a call that can be repeated.
const MAX_ATTEMPTS: u32 = 5;

/// Time after which an idle connection is closed.
const POOL_IDLE: Duration = Duration::from_secs(30);

/// The TLS configuration could not be created.
#[derive(Debug, thiserror::Error)]
#[error("failed to set up TLS")]
pub struct TlsError(#[from] rustls::Error);

/// The result of a successful call.
#[derive(Clone, Debug)]
pub(crate) struct ApiResponse<T> {
    pub(crate) result: T,
    pub(crate) info: ResultInfo,
}

/// The API client. Cheap to clone; clones share the connections and the rate limiter.
#[derive(Clone)]
pub(crate) struct Client(Arc<ClientInner>);

struct ClientInner {
    connections: Connections<HttpsConnector<HttpConnector>, Full<Bytes>>,
    base_url: String,
    account_id: String,
    token: Secret,
    limiter: RateLimiter,
    options: CloudflareOptions,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("base_url", &self.0.base_url)
            .field("account_id", &self.0.account_id)
            .finish_non_exhaustive()
    }
}

impl Client {
    pub(crate) fn new(
        account: CloudflareAccount,
        options: CloudflareOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, TlsError> {
        let connector = connector(&account.base_url, options.connect_timeout)?;
        let connections = Connections::builder(TokioExecutor::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self(Arc::new(ClientInner {
            connections,
            base_url: account.base_url,
            account_id: account.account_id,
            token: account.token,
            limiter: RateLimiter::new(&options),
            options,
            clock,
        })))
    }

    pub(crate) fn options(&self) -> &CloudflareOptions {
        &self.0.options
    }

    pub(crate) fn account_id(&self) -> &str {
        &self.0.account_id
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.0.clock.as_ref()
    }

    /// Creates a call of a path below the account.
    pub(crate) fn call(&self, method: Method, operation: &'static str, path: &[&str]) -> Call {
        let segments = [&["accounts", self.account_id()], path].concat();
        Call::new(method, operation, &segments)
    }

    /// Sends a call and decodes its result.
    pub(crate) async fn fetch<T: DeserializeOwned>(
        &self,
        call: Call,
    ) -> Result<ApiResponse<T>, CallError> {
        let (operation, reads) = (call.operation, call.is_read_only());
        let content = self.send(call).await?;
        let result = serde_json::from_value(content.result).map_err(|error| {
            CallError::NoResponse {
                reads,
                // The text of the error could repeat confidential values.
                cause: Cause::new(format!(
                    "{operation}: the result differs at {}",
                    error.column()
                )),
            }
        })?;
        Ok(ApiResponse {
            result,
            info: content.info,
        })
    }

    /// Sends a call and decodes its result. Returns `None` if the API responds that the object does not exist, with the
    /// code `missing`.
    pub(crate) async fn find<T: DeserializeOwned>(
        &self,
        call: Call,
        missing: u32,
    ) -> Result<Option<T>, CallError> {
        match self.fetch(call).await {
            Ok(answer) => Ok(Some(answer.result)),
            Err(error) if error.is_missing(missing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a call and ignores its result.
    pub(crate) async fn run(&self, call: Call) -> Result<(), CallError> {
        self.send(call).await.map(drop)
    }

    /// Sends a call that deletes an object. Succeeds if the API responds that the object does not exist, with the code
    /// `missing`.
    pub(crate) async fn remove(&self, call: Call, missing: u32) -> Result<(), CallError> {
        match self.run(call).await {
            Err(error) if error.is_missing(missing) => Ok(()),
            outcome => outcome,
        }
    }

    /// Sends a call that can be repeated. Retries it after errors that `passes` accepts as temporary.
    pub(crate) async fn fetch_with_retries<T: DeserializeOwned>(
        &self,
        call: &Call,
        passes: impl Fn(&CallError) -> bool,
    ) -> Result<T, CallError> {
        for attempt in 1..MAX_ATTEMPTS {
            match self.fetch(call.clone()).await {
                Ok(answer) => return Ok(answer.result),
                Err(error) if !passes(&error) => return Err(error),
                Err(error) => {
                    tracing::debug!(operation = call.operation, attempt, %error, "retrying the call");
                    self.back_off(attempt).await;
                }
            }
        }
        Ok(self.fetch(call.clone()).await?.result)
    }

    /// Waits before the next attempt. The pause doubles with each attempt, starting at attempt 1.
    pub(crate) async fn back_off(&self, attempt: u32) {
        let delay = self.0.options.retry_delay;
        tokio::time::sleep(delay * 2_u32.saturating_pow(attempt - 1)).await;
    }

    async fn send(&self, call: Call) -> Result<Content, CallError> {
        let span = tracing::debug_span!(
            "cloudflare",
            operation = call.operation,
            method = %call.method,
            status = tracing::field::Empty,
            cf_ray = tracing::field::Empty,
        );
        self.exchange(call).instrument(span).await
    }

    async fn exchange(&self, call: Call) -> Result<Content, CallError> {
        self.0
            .limiter
            .acquire()
            .await
            .map_err(CallError::Throttled)?;
        let request = self.request(&call)?;
        let reads = call.is_read_only();
        let unanswered = |cause| CallError::NoResponse { reads, cause };
        let limit = self.timeout_for(&call);
        let answered = timeout(limit, self.0.connections.request(request)).await;
        let answered = match answered {
            Err(_) => return Err(unanswered(format!("no response within {limit:?}").into())),
            Ok(Err(error)) if error.is_connect() => {
                return Err(CallError::Unsent(Cause::new(error)));
            }
            Ok(Err(error)) => return Err(unanswered(Cause::new(error))),
            Ok(Ok(answered)) => answered,
        };
        let (status, ray) = (answered.status(), ray_of(answered.headers()));
        let span = tracing::Span::current();
        span.record("status", status.as_u16())
            .record("cf_ray", &ray);
        tracing::debug!("received a response");
        if status == StatusCode::TOO_MANY_REQUESTS {
            let asked = self.retry_after_of(answered.headers());
            return Err(CallError::Throttled(self.0.limiter.pause(asked)));
        }
        let body = self.read(answered).await;
        let body = body.map_err(|error| {
            unanswered(Cause::new(format!("{error}; status {status}, ray {ray}")))
        })?;
        decode(status, &body).map_err(|outcome| match outcome {
            EnvelopeError::Unreadable(cause) => {
                unanswered(Cause::new(format!("{cause}, ray {ray}")))
            }
            EnvelopeError::Refused(errors) => CallError::Refused(Box::new(Refusal {
                operation: call.operation,
                status,
                errors,
                ray,
                reads,
                is_confidential: call.is_confidential,
            })),
        })
    }

    /// Opens a WebSocket at a URL that the API returned. The token is not sent there.
    pub(crate) async fn open_socket(
        &self,
        url: &str,
        protocol: &'static str,
    ) -> Result<Upgraded, CallError> {
        let unsent = |cause: Cause| CallError::Unsent(cause);
        // Plain connections are possible only to this machine, as those to the API.
        let is_plain = self.0.base_url.starts_with("http:");
        let url = match (url.strip_prefix("wss:"), url.strip_prefix("ws:")) {
            (Some(rest), _) => format!("https:{rest}"),
            (None, Some(rest)) if is_plain => format!("http:{rest}"),
            _ => return Err(unsent("the URL of a tail is no WebSocket".into())),
        };
        let key = generate_key();
        let request = Request::get(url)
            .header(USER_AGENT, USER_AGENT_VALUE)
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, &key)
            .header(SEC_WEBSOCKET_PROTOCOL, protocol)
            .body(Full::default())
            .map_err(|error| unsent(Cause::new(error)))?;
        let limit = self.0.options.request_timeout;
        let answered = timeout(limit, self.0.connections.request(request)).await;
        let answered = answered
            .map_err(|_| unsent(format!("no response within {limit:?}").into()))?
            .map_err(|error| unsent(Cause::new(error)))?;
        let accepted = answered.headers().get(SEC_WEBSOCKET_ACCEPT);
        let is_accepted =
            accepted.is_some_and(|accepted| *accepted == *derive_accept_key(key.as_bytes()));
        if answered.status() != StatusCode::SWITCHING_PROTOCOLS || !is_accepted {
            let status = answered.status();
            return Err(unsent(
                format!("the WebSocket was refused: {status}").into(),
            ));
        }
        hyper::upgrade::on(answered)
            .await
            .map_err(|error| unsent(Cause::new(error)))
    }

    fn timeout_for(&self, call: &Call) -> Duration {
        if call.is_upload {
            self.0.options.upload_timeout
        } else {
            self.0.options.request_timeout
        }
    }

    fn request(&self, call: &Call) -> Result<Request<Full<Bytes>>, CallError> {
        let unsent = |error: http::Error| CallError::Unsent(Cause::new(error));
        let token = call.upload_token.as_ref().unwrap_or(&self.0.token);
        let bearer = HeaderValue::try_from(format!("Bearer {}", token.expose()));
        let mut bearer = bearer.map_err(|error| unsent(error.into()))?;
        bearer.set_sensitive(true);
        let mut request = Request::builder()
            .method(&call.method)
            .uri(format!("{}{}", self.0.base_url, call.path))
            .header(AUTHORIZATION, bearer)
            .header(USER_AGENT, USER_AGENT_VALUE);
        let body = match &call.body {
            Some((content_type, body)) => {
                request = request.header(CONTENT_TYPE, content_type);
                body.clone()
            }
            None => Bytes::new(),
        };
        request.body(Full::new(body)).map_err(unsent)
    }

    fn retry_after_of(&self, headers: &HeaderMap) -> Option<Duration> {
        let header = headers.get(RETRY_AFTER)?.to_str().ok()?;
        Some(retry_after(header, self.0.clock.now()))
    }

    /// Reads the body. Returns an error if it is too long or if it stalls for too long.
    async fn read(
        &self,
        answered: Response<Incoming>,
    ) -> Result<Vec<u8>, Box<dyn StdError + Send + Sync>> {
        let options = &self.0.options;
        let mut body = answered.into_body();
        let mut bytes = Vec::new();
        while let Some(frame) = timeout(options.idle_timeout, body.frame()).await? {
            let frame = frame?;
            let data = frame.data_ref().map_or(&[][..], |data| data);
            if bytes.len() + data.len() > options.answer_bytes {
                return Err(format!("more than {} bytes", options.answer_bytes).into());
            }
            bytes.extend_from_slice(data);
        }
        Ok(bytes)
    }
}

fn ray_of(headers: &HeaderMap) -> String {
    let ray = headers.get("cf-ray").and_then(|ray| ray.to_str().ok());
    ray.unwrap_or("unknown").to_owned()
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
            tracing::warn!("no root certificates found: connections to Cloudflare will fail");
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
