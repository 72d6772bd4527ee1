//! Sends batches of spans to a collector over OTLP.

use std::time::Duration;

use bytes::Bytes;
use core_domain::port::{Cause, Span};
use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use prost::Message;
use tokio::time::timeout;

use crate::config::OtlpConfig;
use crate::convert::{scope, span_data};
use crate::error::OtlpError;
use crate::tls;

/// The content type of OTLP over HTTP.
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");

const USER_AGENT_VALUE: HeaderValue =
    HeaderValue::from_static(concat!("core-otel/", env!("CARGO_PKG_VERSION")));

/// Maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// How long an idle connection stays open. Longer than the pause between two batches, shorter than collectors keep it.
const POOL_IDLE: Duration = Duration::from_secs(15);

/// Maximum time to open a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why the collector did not accept a batch.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The collector could not be reached, or is overloaded. The batch can be sent again after the pause.
    #[error("the collector is not available")]
    Unavailable {
        /// The error of the connection, or the response.
        #[source]
        cause: Cause,
        /// The pause that the collector asks for.
        retry_after: Option<Duration>,
    },
    /// The collector refuses the batch.
    #[error("the collector refused the spans with {0}")]
    Refused(StatusCode),
}

fn unavailable(cause: Cause) -> SendError {
    SendError::Unavailable {
        cause,
        retry_after: None,
    }
}

/// A client of a collector.
pub(crate) struct Collector {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    uri: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
    resource: ResourceAttributesWithSchema,
    scope: InstrumentationScope,
    timeout: Duration,
}

impl Collector {
    /// Creates a client. It must be used on one runtime only, which drives its connections.
    ///
    /// # Errors
    /// [`OtlpError`] names the invalid setting.
    pub(crate) fn new(config: &OtlpConfig) -> Result<Self, OtlpError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let tls = tls::configuration(config.options.root_certificates.as_deref())?;
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls);
        let connector = connector.https_or_http().enable_http1().wrap_connector(tcp);
        let resource = Resource::builder_empty().with_attributes([
            KeyValue::new("service.name", config.service_name.clone()),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        ]);
        Ok(Self {
            client: Client::builder(TokioExecutor::new())
                .pool_idle_timeout(POOL_IDLE)
                .pool_timer(TokioTimer::new())
                .build(connector),
            uri: config.uri()?,
            headers: config.header_lines()?,
            resource: ResourceAttributesWithSchema::from(&resource.build()),
            scope: scope(),
            timeout: config.options.timeout,
        })
    }

    /// Encodes a request with these spans.
    pub(crate) fn encode(&self, spans: Vec<Span>) -> Bytes {
        let spans = spans.into_iter().map(|span| span_data(span, &self.scope));
        let resource_spans = group_spans_by_resource_and_scope(spans.collect(), &self.resource);
        let request = ExportTraceServiceRequest { resource_spans };
        request.encode_to_vec().into()
    }

    /// Returns an encoded request without spans, which a collector accepts.
    pub(crate) fn empty() -> Bytes {
        ExportTraceServiceRequest::default().encode_to_vec().into()
    }

    /// Sends an encoded request. Returns the number of spans in it that the collector has refused.
    pub(crate) async fn send(&self, body: Bytes) -> Result<u64, SendError> {
        match timeout(self.timeout, self.post(body)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(unavailable("it did not respond in time".into())),
        }
    }

    async fn post(&self, body: Bytes) -> Result<u64, SendError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.uri.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, PROTOBUF);
        headers.insert(USER_AGENT, USER_AGENT_VALUE);
        headers.extend(self.headers.iter().cloned());
        let response = self.client.request(request).await;
        let response = response.map_err(|error| unavailable(Cause::new(error)))?;
        read(response).await
    }
}

/// Reads the response of a collector. The whole body is read, so that the connection can be used again.
async fn read(response: Response<Incoming>) -> Result<u64, SendError> {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
    if head.status.is_success() {
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        // Some collectors respond with JSON or text. Only protobuf can say that spans were refused.
        let response = ExportTraceServiceResponse::decode(body).unwrap_or_default();
        let partial = response.partial_success.unwrap_or_default();
        return Ok(u64::try_from(partial.rejected_spans).unwrap_or(0));
    }
    let is_temporary = matches!(head.status.as_u16(), 408 | 429 | 502 | 503 | 504);
    if !is_temporary {
        return Err(SendError::Refused(head.status));
    }
    Err(SendError::Unavailable {
        cause: format!("it responded with {}", head.status).as_str().into(),
        retry_after: retry_after(&head.headers),
    })
}

/// Returns the seconds of `Retry-After`.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
