//! Sends webhooks over HTTP.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use core_domain::port::{Cause, WebhookRequest, WebhookResponse, WebhookSendError, WebhookSender};
use core_domain::shared::WebhookTargets;
use http::header::{CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::CertificateDer;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use crate::connect::{Connection, Connector, TlsError};

/// Maximum time to open a connection, including TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of bytes that are read of a response body.
const MAX_BODY_BYTES: usize = 1024;

/// Maximum size of a response head, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

const USER_AGENT_VALUE: &str = concat!("core-webhooks/", env!("CARGO_PKG_VERSION"));

/// Sends webhooks over HTTP/1.1.
#[derive(Clone)]
pub struct HttpSender {
    connector: Connector,
    timeout: Duration,
}

impl fmt::Debug for HttpSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSender")
            .field("targets", &self.connector.targets)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl HttpSender {
    /// Creates a sender for these receivers. `timeout` is the maximum duration of a delivery, from the connection to
    /// the response. Trusts the certificates of the operating system.
    ///
    /// # Errors
    /// [`TlsError`] if TLS cannot be set up.
    pub fn new(targets: WebhookTargets, timeout: Duration) -> Result<Self, TlsError> {
        let connector = Connector::new(targets, None)?;
        Ok(Self { connector, timeout })
    }

    /// Trusts these certificates (DER) instead of those of the operating system.
    ///
    /// # Errors
    /// [`TlsError`] if TLS cannot be set up.
    pub fn with_certificates(
        self,
        certificates: Vec<CertificateDer<'static>>,
    ) -> Result<Self, TlsError> {
        let connector = Connector::new(self.connector.targets, Some(certificates))?;
        Ok(Self { connector, ..self })
    }

    async fn connect(
        &self,
        request: &WebhookRequest,
    ) -> Result<Box<dyn Connection>, WebhookSendError> {
        let connecting = self.connector.connect(request.url.target());
        let connected = timeout(CONNECT_TIMEOUT.min(self.timeout), connecting).await;
        connected.unwrap_or(Err(WebhookSendError::TimedOut))
    }
}

#[async_trait]
impl WebhookSender for HttpSender {
    async fn send(&self, request: &WebhookRequest) -> Result<WebhookResponse, WebhookSendError> {
        let until = Instant::now() + self.timeout;
        let connection = TokioIo::new(self.connect(request).await?);
        // Dropping this stops the driver and closes the connection.
        let mut driver = JoinSet::new();
        let exchange = async {
            let mut builder = http1::Builder::new();
            builder.max_buf_size(MAX_HEAD_BYTES);
            let (mut client, connection) = builder
                .handshake(connection)
                .await
                .map_err(no_response_error)?;
            driver.spawn(connection);
            client
                .send_request(post(request)?)
                .await
                .map_err(no_response_error)
        };
        let answered = timeout_at(until, exchange).await;
        let answered = answered.unwrap_or(Err(WebhookSendError::TimedOut))?;
        Ok(read(answered, until).await)
    }
}

fn no_response_error(error: impl std::error::Error + Send + Sync + 'static) -> WebhookSendError {
    WebhookSendError::NoResponse(Cause::new(error))
}

fn post(request: &WebhookRequest) -> Result<Request<Full<Bytes>>, WebhookSendError> {
    let target = request.url.target();
    Request::post(target.path)
        .header(HOST, target.authority)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, USER_AGENT_VALUE)
        .header("webhook-id", &request.id)
        .header("webhook-timestamp", &request.timestamp)
        .header("webhook-signature", &request.signature)
        .body(Full::from(request.body.clone()))
        .map_err(no_response_error)
}

/// Returns the response with the part of its body that arrived in time. The status alone decides whether the receiver
/// accepted the webhook.
async fn read(answered: Response<Incoming>, until: Instant) -> WebhookResponse {
    let (head, mut body) = answered.into_parts();
    let mut start = Vec::new();
    while start.len() < MAX_BODY_BYTES {
        let Ok(Some(Ok(frame))) = timeout_at(until, body.frame()).await else {
            break;
        };
        if let Some(data) = frame.data_ref() {
            start.extend_from_slice(&data[..data.len().min(MAX_BODY_BYTES - start.len())]);
        }
    }
    let retry_after = head.headers.get(RETRY_AFTER);
    WebhookResponse {
        status: head.status.as_u16(),
        retry_after: retry_after
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned),
        body: String::from_utf8_lossy(&start).into_owned(),
    }
}
