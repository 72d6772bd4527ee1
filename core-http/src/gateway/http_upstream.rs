//! A service behind HTTP, over a pool of connections.

use std::error::Error as StdError;
use std::io::ErrorKind;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::gateway::Secret;
use core_domain::kernel::Caller;
use http::header::{AUTHORIZATION, HOST};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Request, Response, Uri, Version};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::config::ConfigError;
use super::exchange::boxed;
use super::upstream::{Upstream, UpstreamError};
use crate::kernel::{Body, ClientIp, header_names};

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a connection is kept without use. Below what servers keep theirs (5 seconds is the shortest in wide use), or
/// now and then a request would meet a connection that is just being closed.
const POOL_IDLE: Duration = Duration::from_secs(4);

/// A service at an address of its own, over HTTP/1.1.
///
/// The caller goes along as `X-Core-User-Id`, `X-Core-Role`, `X-Core-Platform-Id`, `X-Core-Organization-Id` and
/// `X-Core-Operator`, the client's address as `X-Core-Client-Ip`, with the service key, which is what makes the service
/// believe them. A request that still carries the client's own session goes without: the service asks
/// IAM itself.
pub struct HttpUpstream {
    authority: Authority,
    service_key: Option<HeaderValue>,
    client: Client<HttpConnector, Body>,
}

fn error(problem: impl Into<String>) -> ConfigError {
    ConfigError {
        setting: "upstream",
        problem: problem.into(),
    }
}

impl HttpUpstream {
    /// The service at an address such as `http://127.0.0.1:8082`.
    ///
    /// # Errors
    /// [`ConfigError`] when that is no `http` address without a path, or the key is no header value.
    pub fn new(address: &str, service_key: Option<&Secret>) -> Result<Self, ConfigError> {
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
        let service_key = service_key.map(bearer).transpose()?;
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self {
            authority,
            service_key,
            client,
        })
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

    /// Says who calls, when somebody does and the service will believe it.
    fn introduce(
        &self,
        caller: &Caller,
        client: Option<&ClientIp>,
        headers: &mut HeaderMap,
    ) -> Result<(), UpstreamError> {
        let Some(key) = &self.service_key else {
            return Ok(());
        };
        if matches!(caller, Caller::Anonymous) || headers.contains_key(AUTHORIZATION) {
            return Ok(());
        }
        headers.insert(AUTHORIZATION, key.clone());
        let membership = caller.membership();
        let operates = membership.filter(|m| m.operates);
        let lines = [
            (
                header_names::USER_ID,
                caller.user_id().map(|id| id.as_str()),
            ),
            (header_names::ROLE, membership.map(|m| m.role.as_str())),
            (
                header_names::PLATFORM_ID,
                caller.platform_id().map(|id| id.as_str()),
            ),
            (
                header_names::ORGANIZATION_ID,
                membership.map(|m| m.organization_id.as_str()),
            ),
            (header_names::OPERATOR, operates.map(|_| "true")),
            (
                header_names::CLIENT_IP,
                client.map(|client| client.0.as_str()),
            ),
        ];
        for (name, text) in lines {
            if let Some(text) = text {
                let value = HeaderValue::from_str(text)
                    .map_err(|_| UpstreamError::Broken(format!("{name} is not a header value")))?;
                headers.insert(name, value);
            }
        }
        Ok(())
    }
}

fn bearer(key: &Secret) -> Result<HeaderValue, ConfigError> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))
        .map_err(|_| error("the service key is not a header value"))?;
    value.set_sensitive(true);
    Ok(value)
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
        let caller = request.extensions().get::<Caller>().cloned();
        let client = request.extensions().get::<ClientIp>().cloned();
        let headers = request.headers_mut();
        headers.remove(HOST);
        let caller = caller.unwrap_or(Caller::Anonymous);
        self.introduce(&caller, client.as_ref(), headers)?;
        let response = self.client.request(request).await.map_err(failure)?;
        Ok(response.map(boxed))
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
