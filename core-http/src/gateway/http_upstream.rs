//! An upstream that is called over HTTP, with a pool of connections.

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
use super::vouching::{UpstreamCredential, error};
use crate::kernel::request::header_names;
use crate::kernel::{Body, ClientIp};

/// Maximum time for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long an idle connection stays in the pool. This must be shorter than the keep-alive timeout of the server, and 5
/// seconds is the shortest in wide use. Otherwise requests are sometimes sent on a connection that is being closed.
const POOL_IDLE: Duration = Duration::from_secs(4);

/// A service at its own address, called over HTTP/1.1.
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
}

impl HttpUpstream {
    /// Creates an upstream for an address such as `http://127.0.0.1:8082`. The caller is not sent to the service
    /// without [service tokens](Self::with_service_tokens).
    ///
    /// # Errors
    /// [`ConfigError`] if the address is not an `http` address, or has a path or a query.
    pub fn new(address: &str) -> Result<Self, ConfigError> {
        let uri: Uri = address
            .parse()
            .map_err(|_| error(format!("{address:?} is not a valid address")))?;
        let bare =
            uri.scheme() == Some(&Scheme::HTTP) && uri.path() == "/" && uri.query().is_none();
        let authority = uri
            .authority()
            .filter(|_| bare)
            .cloned()
            .ok_or_else(|| error(format!("{address:?} must have the form http://host:port")))?;
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
