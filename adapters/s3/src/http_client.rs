//! The HTTP client of `object_store`, over hyper and rustls.

use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Connections;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use rustls::ClientConfig;
use tokio::time::{Instant, Sleep, sleep, timeout};

use crate::options::S3Options;
use crate::tls;

/// Time after which an idle connection is closed. Servers close them later.
const POOL_IDLE: Duration = Duration::from_secs(15);

/// Creates clients with the same TLS configuration and time limits.
pub(crate) struct Connector {
    tls: ClientConfig,
    connect_timeout: Duration,
    request_timeout: Duration,
    idle_timeout: Duration,
}

impl Connector {
    /// Reads the root certificates.
    ///
    /// # Errors
    /// The problem with the certificates, for an operator.
    pub(crate) fn new(options: &S3Options) -> Result<Self, String> {
        Ok(Self {
            tls: tls::configuration(options.root_certificates.as_deref())?,
            connect_timeout: options.connect_timeout,
            request_timeout: options.request_timeout,
            idle_timeout: options.idle_timeout,
        })
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl HttpConnector for Connector {
    /// Creates a client. Unencrypted connections are possible only if the options allow them, which is the case for plain
    /// endpoints, and for the services that return the credentials of a role.
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allow_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        let mut tcp = TcpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(self.connect_timeout));
        let tls = HttpsConnectorBuilder::new().with_tls_config(self.tls.clone());
        let schemes = if allow_http.as_deref() == Some("true") {
            tls.https_or_http()
        } else {
            tls.https_only()
        };
        let connections = Connections::builder(TokioExecutor::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_timer(TokioTimer::new())
            .build(schemes.enable_http1().wrap_connector(tcp));
        Ok(HttpClient::new(Client {
            connections,
            request_timeout: self.request_timeout,
            idle_timeout: self.idle_timeout,
        }))
    }
}

/// A client with a pool of connections.
struct Client {
    connections: Connections<HttpsConnector<TcpConnector>, HttpRequestBody>,
    request_timeout: Duration,
    idle_timeout: Duration,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

/// The error of a time limit of a request.
#[derive(Debug, thiserror::Error)]
#[error("no response within {0:?}")]
struct NoResponse(Duration);

fn timed_out(limit: Duration) -> HttpError {
    HttpError::new(HttpErrorKind::Timeout, NoResponse(limit))
}

#[async_trait]
impl HttpService for Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let limit = self.request_timeout;
        let response = timeout(limit, self.connections.request(request)).await;
        let response = response.map_err(|_| timed_out(limit))?;
        let response = response.map_err(|error| {
            let kind = if error.is_connect() {
                HttpErrorKind::Connect
            } else {
                kind_of(&error)
            };
            HttpError::new(kind, error)
        })?;
        let idle = self.idle_timeout;
        Ok(response.map(|body| HttpResponseBody::new(TimedBody::new(body, idle))))
    }
}

/// Classifies an error of an open connection. The kind decides whether the request is repeated.
fn kind_of(error: &(dyn StdError + 'static)) -> HttpErrorKind {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<hyper::Error>()
            && (error.is_closed() || error.is_incomplete_message() || error.is_body_write_aborted())
        {
            return HttpErrorKind::Request;
        }
        if error.downcast_ref::<std::io::Error>().is_some() {
            return HttpErrorKind::Interrupted;
        }
        next = error.source();
    }
    HttpErrorKind::Unknown
}

/// A response body that fails if no piece of it arrives for some time.
struct TimedBody {
    body: Incoming,
    limit: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl TimedBody {
    fn new(body: Incoming, limit: Duration) -> Self {
        Self {
            body,
            limit,
            sleep: Box::pin(sleep(limit)),
        }
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let this = &mut *self;
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Pending => {
                ready!(this.sleep.as_mut().poll(cx));
                Poll::Ready(Some(Err(timed_out(this.limit))))
            }
            Poll::Ready(frame) => {
                this.sleep.as_mut().reset(Instant::now() + this.limit);
                let frame = frame
                    .map(|frame| frame.map_err(|error| HttpError::new(kind_of(&error), error)));
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
