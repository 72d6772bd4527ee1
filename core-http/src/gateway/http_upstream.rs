//! A service behind HTTP, over a pool of connections.

use std::error::Error as StdError;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::iam::SuiteService;
use core_domain::kernel::Caller;
use http::header::{AUTHORIZATION, HOST};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri, Version};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::config::ConfigError;
use super::routes::RouteClasses;
use super::service_tokens::{ServiceTokens, TokenFor};
use super::upstream::{Upstream, UpstreamError};
use super::vouching::{Vouching, error};
use crate::kernel::{Body, ClientIp, header_names};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long an idle connection is kept. Below the keep-alive timeout of servers (5 seconds is the shortest in wide use), or
/// now and then a request would be sent on a connection that is just being closed.
const POOL_IDLE: Duration = Duration::from_secs(4);

/// A service at an address of its own, over HTTP/1.1.
///
/// The caller is sent as `X-Core-User-Id` or `X-Core-Api-Key-Id`, the client's address as `X-Core-Client-Ip`, with a service
/// token, without which the service ignores them. The token claims the caller's session. The service reads role and permissions
/// from the store; `X-Core-Role`, `X-Core-Permissions` and `X-Core-Operator` are informational. A request with the client's own
/// session is sent without the caller, which the service resolves itself; the token is then sent in `X-Core-Service-Key`, for
/// the client's address and the prefix.
pub struct HttpUpstream {
    authority: Authority,
    tokens: Option<(Arc<ServiceTokens>, SuiteService)>,
    routes: Option<Arc<dyn RouteClasses>>,
    client: Client<HttpConnector, Body>,
}

impl HttpUpstream {
    /// The service at an address such as `http://127.0.0.1:8082`. It is not told who calls without
    /// [service tokens](Self::with_service_tokens).
    ///
    /// # Errors
    /// [`ConfigError`] when that is no `http` address without a path.
    pub fn new(address: &str) -> Result<Self, ConfigError> {
        let uri: Uri = address
            .parse()
            .map_err(|_| error(format!("{address:?} is not an address")))?;
        let bare =
            uri.scheme() == Some(&Scheme::HTTP) && uri.path() == "/" && uri.query().is_none();
        let authority = uri
            .authority()
            .filter(|_| bare)
            .cloned()
            .ok_or_else(|| error(format!("{address:?} is not of the form http://host:port")))?;
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self {
            authority,
            tokens: None,
            routes: None,
            client,
        })
    }

    /// Vouches for callers with service tokens for this service. The service key stays with the gateway and IAM.
    #[must_use]
    pub fn with_service_tokens(mut self, tokens: Arc<ServiceTokens>, target: SuiteService) -> Self {
        self.tokens = Some((tokens, target));
        self
    }

    /// The token for a request of this caller. A request with the client's own credential needs no session in its token.
    async fn vouching(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
    ) -> Result<Option<Vouching>, UpstreamError> {
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

    /// Sends the identity of the caller, if there is one, with what vouches for it.
    fn set_identity_headers(
        vouching: &Vouching,
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
        let operates = membership.filter(|m| m.operates);
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
            (&header_names::ROLE, membership.map(|m| m.role.as_str())),
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

fn set(headers: &mut HeaderMap, name: &HeaderName, text: &str) -> Result<(), UpstreamError> {
    let value = HeaderValue::from_str(text)
        .map_err(|_| UpstreamError::Broken(format!("{name} is not a header value")))?;
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
        *request.uri_mut() = self.address(&request)?;
        *request.version_mut() = Version::HTTP_11;
        let caller = request.extensions().get::<Arc<Caller>>().cloned();
        let client = request.extensions().get::<ClientIp>().cloned();
        let headers = request.headers_mut();
        headers.remove(HOST);
        let caller = caller.as_deref().unwrap_or(&Caller::Anonymous);
        if let Some(vouching) = self.vouching(caller, headers).await? {
            Self::set_identity_headers(&vouching, caller, client.as_ref(), headers)?;
        }
        let response = self.client.request(request).await.map_err(failure)?;
        Ok(response.map(Body::from_any))
    }

    fn routes(&self) -> Option<&dyn RouteClasses> {
        self.routes.as_deref()
    }
}

fn failure(error: ClientError) -> UpstreamError {
    let mut text = error.to_string();
    let mut timed_out = false;
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        timed_out |= cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|io| io.kind() == ErrorKind::TimedOut);
        source = cause.source();
    }
    if timed_out {
        UpstreamError::Timeout(text)
    } else {
        UpstreamError::Broken(text)
    }
}
