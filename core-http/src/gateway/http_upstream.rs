//! An upstream that is called over HTTP, with a pool of connections.

use std::error::Error as StdError;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{Caller, Notice, NoticeSet, SuiteService};
use http::header::{AUTHORIZATION, HOST};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, Version};
use http_body::Body as _;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::breaker::{Attempt, Breaker, RetryBudget};
use super::config::ConfigError;
use super::guarded_body::GuardedBody;
use super::routes::RouteClasses;
use super::service_tokens::{ServiceTokens, TokenFor};
use super::upstream::{Upstream, UpstreamError};
use super::upstream_metrics::{InFlightRequest, UpstreamMetrics};
use super::vouching::{UpstreamCredential, error};
use crate::kernel::metrics::Metrics;
use crate::kernel::request::header_names;
use crate::kernel::{
    Body, ClientIp, OpenSpan, empty_body, own_value, shown_method, start_client_span,
};

/// Maximum time for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long an idle connection stays in the pool. This must be shorter than the keep-alive timeout of the server, and 5
/// seconds is the shortest in wide use. Otherwise requests are sometimes sent on a connection that is being closed.
const POOL_IDLE: Duration = Duration::from_secs(4);

/// Maximum number of idle connections in the pool.
const MAX_IDLE_CONNECTIONS: usize = 128;

/// The port of an `http` address that names none.
const DEFAULT_PORT: u16 = 80;

/// Default of [`HttpUpstream::with_max_in_flight`].
const DEFAULT_MAX_IN_FLIGHT: usize = 1_024;

/// A service at its own address, called over HTTP/1.1.
///
/// A request that gets no response is sent once more if that is safe: it has no body, and either the connection could
/// not be opened, or the method is idempotent and the connection was closed before a response. Retries are at most a
/// fifth of the requests. After five consecutive failures to get a response, requests are refused with 503 at once,
/// except one per second that probes the service. Responses of any status are successes.
///
/// The caller is sent as `X-Core-User-Id` or `X-Core-Api-Key-Id`, and the address of the client as `X-Core-Client-Ip`.
/// A service token is sent with them, because the service ignores these headers without one. The token names the
/// session of the caller. The service reads the role and the permissions from the store; `X-Core-Role`,
/// `X-Core-Permissions` and `X-Core-Operator` are informational.
///
/// A request with the session token of the client is sent without the headers of the caller, because the service
/// resolves the session itself. The service token is then sent in `X-Core-Service-Key`, so that the service trusts the
/// address of the client and the prefix.
pub struct HttpUpstream {
    authority: Authority,
    tokens: Option<(Arc<ServiceTokens>, SuiteService)>,
    routes: Option<Arc<dyn RouteClasses>>,
    client: Client<HttpConnector, Body>,
    breaker: Breaker,
    retries: RetryBudget,
    /// A permit for each request that may be in flight. A request holds its permit until its response has ended.
    in_flight: Arc<Semaphore>,
    metrics: UpstreamMetrics,
    on_notice: Option<OnNotice>,
}

/// Receives the notices in responses.
type OnNotice = Arc<dyn Fn(&Notice) + Send + Sync>;

impl HttpUpstream {
    /// Creates an upstream for an address such as `http://127.0.0.1:8082`. The caller is not sent to the service
    /// without [service tokens](Self::with_service_tokens).
    ///
    /// # Errors
    /// [`ConfigError`] if the address is not an `http` address, or has a path or a query.
    pub fn new(address: &str) -> Result<Self, ConfigError> {
        let uri: Uri = address
            .parse()
            // Without the address, which may have a password.
            .map_err(|_| error("the address is not a valid URL"))?;
        let bare =
            uri.scheme() == Some(&Scheme::HTTP) && uri.path() == "/" && uri.query().is_none();
        let authority = uri
            .authority()
            .filter(|authority| bare && !authority.as_str().contains('@'))
            .cloned()
            .ok_or_else(|| error("the address must have the form http://host:port"))?;
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self {
            authority,
            tokens: None,
            routes: None,
            client,
            breaker: Breaker::default(),
            retries: RetryBudget::default(),
            in_flight: Arc::new(Semaphore::new(DEFAULT_MAX_IN_FLIGHT)),
            metrics: UpstreamMetrics::default(),
            on_notice: None,
        })
    }

    /// Measures the requests as those of a client, such as `proxy`, to this service. A process has at most one upstream for
    /// each service and client. Default: they are not measured.
    #[must_use]
    pub fn with_metrics(
        mut self,
        metrics: &Metrics,
        service: SuiteService,
        client: &'static str,
    ) -> Self {
        self.metrics = UpstreamMetrics::new(metrics, service, client);
        self
    }

    /// Sets a function that is called with what a request has changed at the service, before the client gets the
    /// response. It should invalidate what this process has cached, see [`Invalidate`](super::Invalidate). Services
    /// report their changes only to a gateway with [service tokens](Self::with_service_tokens). Default: none.
    #[must_use]
    pub fn with_notices(mut self, on_notice: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        self.on_notice = Some(Arc::new(on_notice));
        self
    }

    /// Sets the maximum number of requests whose responses have not ended. Further requests are refused with 503.
    /// Default: 1,024.
    #[must_use]
    pub fn with_max_in_flight(mut self, requests: usize) -> Self {
        self.in_flight = Arc::new(Semaphore::new(requests.min(Semaphore::MAX_PERMITS)));
        self
    }

    /// Sends the identity of callers with service tokens for this service. The service key itself is only shared
    /// between the gateway and IAM.
    #[must_use]
    pub fn with_service_tokens(mut self, tokens: Arc<ServiceTokens>, target: SuiteService) -> Self {
        self.tokens = Some((tokens, target));
        self
    }

    /// Returns the token for a request of this caller; `None` without service tokens. The token names no session if the
    /// request has the credential of the client.
    async fn vouching(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
    ) -> Result<Option<UpstreamCredential>, UpstreamError> {
        let Some((tokens, target)) = &self.tokens else {
            return Ok(None);
        };
        let is_named = !headers.contains_key(AUTHORIZATION);
        let wanted = TokenFor {
            target: *target,
            session: caller.session_id().filter(|_| is_named),
        };
        tokens.get(wanted).await.map(Some)
    }

    /// Sends a request of the gateway itself, with a service token.
    ///
    /// # Errors
    /// [`UpstreamError`] if there is no response, or no [service token](Self::with_service_tokens).
    pub async fn send_as_gateway(
        &self,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, UpstreamError> {
        let vouching = self.vouching(&Caller::Anonymous, &HeaderMap::new()).await?;
        let vouching = vouching.ok_or_else(|| {
            UpstreamError::Unavailable("the upstream has no service tokens".to_owned())
        })?;
        let authorization = vouching.authorization;
        request.headers_mut().insert(AUTHORIZATION, authorization);
        self.send_prepared(request).await
    }

    /// Sends a request whose headers are complete, apart from the trace: the upstream continues a span of this request.
    async fn send_prepared(
        &self,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, UpstreamError> {
        let mut span = self.start_span(&mut request);
        let permit = self.admit()?;
        *request.uri_mut() = self.address(&request)?;
        *request.version_mut() = Version::HTTP_11;
        let outcome = self.exchange(request).await;
        end_span(span.take(), &outcome);
        let mut response = outcome?;
        self.take_notices(response.headers_mut());
        Ok(response.map(|body| Body::new(GuardedBody::new(body, permit))))
    }

    /// Starts the span of a request, and makes it the parent of the spans of the upstream. Returns `None` if the trace is
    /// not sampled. Without a trace the headers stay unchanged.
    fn start_span(&self, request: &mut Request<Body>) -> Option<OpenSpan> {
        let method = shown_method(request.method()).to_owned();
        let (context, span) = start_client_span(&method)?;
        let lines = [
            (&header_names::TRACE_ID, context.trace_id()),
            (&header_names::TRACEPARENT, context.traceparent()),
        ];
        for (name, text) in lines {
            let value = own_value(text.to_owned());
            request.headers_mut().insert(name.clone(), value);
        }
        let mut span = span?;
        span.add("http.request.method", method);
        span.add("server.address", self.authority.host());
        let port = self.authority.port_u16().unwrap_or(DEFAULT_PORT);
        span.add("server.port", i64::from(port));
        Some(span)
    }

    /// Removes the notices from the headers of a response, and passes them on.
    fn take_notices(&self, headers: &mut HeaderMap) {
        let Some(value) = headers.remove(&header_names::NOTICES) else {
            return;
        };
        let Some(on_notice) = &self.on_notice else {
            return;
        };
        let mut notices = NoticeSet::default();
        // A value that is no text is one notice that cannot be read.
        notices.insert_text(value.to_str().unwrap_or(""));
        while let Some(notice) = notices.pop() {
            on_notice(&notice);
        }
    }

    /// Sets the routes of the service: a [`RouteTable`](super::RouteTable), or the same service as it would run in this
    /// process.
    #[must_use]
    pub fn with_routes(mut self, routes: Arc<dyn RouteClasses>) -> Self {
        self.routes = Some(routes);
        self
    }

    fn address(&self, request: &Request<Body>) -> Result<Uri, UpstreamError> {
        let target = request
            .uri()
            .path_and_query()
            .cloned()
            .unwrap_or_else(|| PathAndQuery::from_static("/"));
        Uri::builder()
            .scheme(Scheme::HTTP)
            .authority(self.authority.clone())
            .path_and_query(target)
            .build()
            .map_err(|error| UpstreamError::Broken(error.to_string()))
    }

    /// Sets the headers that identify the caller and the client, together with the service token.
    fn set_identity_headers(
        vouching: &UpstreamCredential,
        caller: &Caller,
        client: Option<&ClientIp>,
        headers: &mut HeaderMap,
    ) -> Result<(), UpstreamError> {
        if let Some(ClientIp(address)) = client {
            set(headers, &header_names::CLIENT_IP, address)?;
        }
        if matches!(caller, Caller::Anonymous) || headers.contains_key(AUTHORIZATION) {
            headers.insert(header_names::SERVICE_KEY.clone(), vouching.plain.clone());
            return Ok(());
        }
        headers.insert(AUTHORIZATION, vouching.authorization.clone());
        let membership = caller.membership();
        let operates = membership.filter(|m| m.is_operator);
        let permissions = membership.map(|m| m.permissions.patterns().join(","));
        let lines = [
            (
                &header_names::USER_ID,
                caller.user_id().map(|id| id.as_str()),
            ),
            (
                &header_names::API_KEY_ID,
                caller.api_key_id().map(|id| id.as_str()),
            ),
            (&header_names::ROLE, membership.map(|m| m.roles.as_str())),
            (
                &header_names::PLATFORM_ID,
                caller.platform_id().map(|id| id.as_str()),
            ),
            (
                &header_names::ORGANIZATION_ID,
                membership.map(|m| m.organization_id.as_str()),
            ),
            (&header_names::OPERATOR, operates.map(|_| "true")),
            (&header_names::PERMISSIONS, permissions.as_deref()),
        ];
        for (name, text) in lines {
            if let Some(text) = text {
                set(headers, name, text)?;
            }
        }
        Ok(())
    }
}

impl HttpUpstream {
    /// Returns the permit for a request.
    ///
    /// # Errors
    /// [`UpstreamError::Unavailable`] if the breaker is open, or too many requests are in flight.
    fn admit(&self) -> Result<InFlightRequest, UpstreamError> {
        let permit = Arc::clone(&self.in_flight).try_acquire_owned();
        let permit = permit.map_err(|_| {
            self.metrics.refused_in_flight.increment();
            UpstreamError::Unavailable(format!(
                "{} has too many requests in flight",
                self.authority
            ))
        })?;
        if self.breaker.admits(Instant::now()) {
            return Ok(self.metrics.count_in_flight(permit));
        }
        self.metrics.refused_by_breaker.increment();
        let refused = format!("the last requests to {} failed", self.authority);
        Err(UpstreamError::Unavailable(refused))
    }

    /// Sends a request, and once more if that is safe and the first attempt failed.
    async fn exchange(&self, request: Request<Body>) -> Result<Response<Body>, UpstreamError> {
        self.retries.earn();
        let repeatable = repeatable(&request);
        let failed = match self.attempt(request).await {
            Ok(response) => return Ok(response),
            Err(failed) => failed,
        };
        let again = repeatable.filter(|again| failed.may_be_repeated(again.method()));
        let Some(again) = again.filter(|_| self.retries.spend()) else {
            return Err(failed.error);
        };
        self.metrics.retries.increment();
        tracing::debug!(error = %failed.error, upstream = %self.authority, "a request is sent again");
        self.attempt(again).await.map_err(|failed| failed.error)
    }

    async fn attempt(&self, request: Request<Body>) -> Result<Response<Body>, FailedAttempt> {
        match self.client.request(request).await {
            Ok(response) => {
                self.record(Attempt::Answered);
                Ok(response.map(Body::from_any))
            }
            Err(error) => {
                let failed = FailedAttempt::new(&error);
                if failed.is_of_upstream {
                    self.record(Attempt::Failed);
                }
                Err(failed)
            }
        }
    }

    fn record(&self, attempt: Attempt) {
        if !self.breaker.record(attempt, Instant::now()) {
            return;
        }
        let (upstream, is_open) = (&self.authority, self.breaker.is_open());
        self.metrics.breaker_open.set(i64::from(is_open));
        if is_open {
            tracing::warn!(%upstream, "the service cannot be reached; requests to it are refused");
        } else {
            tracing::info!(%upstream, "the service can be reached again");
        }
    }
}

/// Ends the span of a request that was sent.
fn end_span(span: Option<OpenSpan>, outcome: &Result<Response<Body>, UpstreamError>) {
    let Some(mut span) = span else {
        return;
    };
    span.finish();
    match outcome {
        Ok(response) => {
            let status = response.status();
            span.add("http.response.status_code", i64::from(status.as_u16()));
            if status.is_server_error() {
                span.set_error(status.as_str());
            }
        }
        Err(UpstreamError::Broken(_)) => span.set_error("broken"),
        Err(UpstreamError::Timeout(_)) => span.set_error("timeout"),
        Err(UpstreamError::Unavailable(_)) => span.set_error("unavailable"),
    }
}

/// Returns a copy of a request without a body; `None` if it has one.
fn repeatable(request: &Request<Body>) -> Option<Request<Body>> {
    if !request.body().is_end_stream() {
        return None;
    }
    let mut copy = Request::new(empty_body());
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    *copy.version_mut() = request.version();
    copy.headers_mut().clone_from(request.headers());
    Some(copy)
}

/// A request without a response.
struct FailedAttempt {
    error: UpstreamError,
    /// `true` if nothing was sent: no connection could be opened.
    is_connect: bool,
    /// `true` if the connection was closed before a complete response head arrived.
    is_closed: bool,
    /// `true` if the upstream is the cause, `false` if it is the body of the client.
    is_of_upstream: bool,
}

impl FailedAttempt {
    fn new(error: &ClientError) -> Self {
        let (mut text, mut failed) = (error.to_string(), Causes::default());
        let mut source = error.source();
        while let Some(cause) = source {
            text.push_str(&format!(": {cause}"));
            failed.add(cause);
            source = cause.source();
        }
        Self {
            error: if failed.timed_out {
                UpstreamError::Timeout(text)
            } else {
                UpstreamError::Broken(text)
            },
            is_connect: error.is_connect(),
            is_closed: failed.closed,
            is_of_upstream: !failed.by_client,
        }
    }

    /// Returns whether a request without a body may be sent again.
    fn may_be_repeated(&self, method: &Method) -> bool {
        self.is_connect || (self.is_closed && method.is_idempotent())
    }
}

fn set(headers: &mut HeaderMap, name: &HeaderName, text: &str) -> Result<(), UpstreamError> {
    let value = HeaderValue::from_str(text)
        .map_err(|_| UpstreamError::Broken(format!("{name} has an invalid value")))?;
    headers.insert(name.clone(), value);
    Ok(())
}

impl std::fmt::Debug for HttpUpstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpUpstream")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Upstream for HttpUpstream {
    async fn send(&self, mut request: Request<Body>) -> Result<Response<Body>, UpstreamError> {
        let caller = request.extensions().get::<Arc<Caller>>().cloned();
        let client = request.extensions().get::<ClientIp>().cloned();
        let headers = request.headers_mut();
        headers.remove(HOST);
        let caller = caller.as_deref().unwrap_or(&Caller::Anonymous);
        if let Some(vouching) = self.vouching(caller, headers).await? {
            Self::set_identity_headers(&vouching, caller, client.as_ref(), headers)?;
        }
        self.send_prepared(request).await
    }

    fn report_timeout(&self) {
        self.record(Attempt::Failed);
    }

    fn routes(&self) -> Option<&dyn RouteClasses> {
        self.routes.as_deref()
    }
}

/// The kinds of the causes of an error.
#[derive(Default)]
struct Causes {
    timed_out: bool,
    closed: bool,
    by_client: bool,
}

impl Causes {
    fn add(&mut self, cause: &(dyn StdError + 'static)) {
        if let Some(io) = cause.downcast_ref::<std::io::Error>() {
            self.timed_out |= io.kind() == ErrorKind::TimedOut;
            self.closed |= matches!(
                io.kind(),
                ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe
            );
        }
        if let Some(hyper) = cause.downcast_ref::<hyper::Error>() {
            self.closed |= hyper.is_incomplete_message();
            self.by_client |= hyper.is_user() || hyper.is_body_write_aborted();
        }
    }
}
