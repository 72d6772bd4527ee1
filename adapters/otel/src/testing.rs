//! A collector in this process, for tests: it receives spans over OTLP and decodes them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode as SpanStatus;
use prost::Message;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// A span as the collector received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedSpan {
    /// The name.
    pub name: String,
    /// The trace id in hexadecimal.
    pub trace_id: String,
    /// The span id in hexadecimal.
    pub span_id: String,
    /// The id of the parent in hexadecimal; empty without a parent.
    pub parent_id: String,
    /// The number of the kind in the protocol: 2 is a server, 3 a client, 5 a consumer.
    pub kind: i32,
    /// The start in nanoseconds since 1970-01-01 00:00 UTC.
    pub start: u64,
    /// The end in nanoseconds since 1970-01-01 00:00 UTC.
    pub end: u64,
    /// Whether the status is an error.
    pub is_error: bool,
    /// The attributes as text.
    pub attributes: BTreeMap<String, String>,
    /// The attributes of the resource as text.
    pub resource: BTreeMap<String, String>,
}

/// A request that the collector received.
#[derive(Clone, Debug)]
pub struct ReceivedBatch {
    /// The path of the request.
    pub path: String,
    /// The headers of the request.
    pub headers: HeaderMap,
    /// The decoded spans.
    pub spans: Vec<ReceivedSpan>,
}

#[derive(Debug)]
struct State {
    status: StatusCode,
    rejected: i64,
    batches: Vec<ReceivedBatch>,
}

/// A collector that listens on a port of this machine. It stops when it is dropped.
#[derive(Debug)]
pub struct TestCollector {
    address: SocketAddr,
    scheme: &'static str,
    state: Arc<Mutex<State>>,
    received: watch::Receiver<usize>,
    server: JoinHandle<()>,
}

impl Drop for TestCollector {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn lock_state(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TestCollector {
    /// Starts a collector on any free port.
    ///
    /// # Errors
    /// The port cannot be opened.
    pub async fn start() -> io::Result<Self> {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), None).await
    }

    /// Starts a collector at this address, with TLS if there is a configuration for it.
    ///
    /// # Errors
    /// The port cannot be opened.
    pub async fn start_at(address: SocketAddr, tls: Option<ServerConfig>) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(State {
            status: StatusCode::OK,
            rejected: 0,
            batches: Vec::new(),
        }));
        let (sender, received) = watch::channel(0);
        let scheme = if tls.is_some() { "https" } else { "http" };
        let tls = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
        let accepting = accept(listener, tls, Arc::clone(&state), Arc::new(sender));
        Ok(Self {
            address,
            scheme,
            state,
            received,
            server: tokio::spawn(accepting),
        })
    }

    /// Stops the collector and closes its port.
    pub async fn stop(mut self) {
        self.server.abort();
        // The task ends with an error, because it was aborted.
        let _ = (&mut self.server).await;
    }

    /// Returns the address of the collector.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the base URL of the collector.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Sets the status of the next responses.
    pub fn set_status(&self, status: StatusCode) {
        lock_state(&self.state).status = status;
    }

    /// Sets how many spans of each batch the next responses reject.
    pub fn set_rejected(&self, count: i64) {
        lock_state(&self.state).rejected = count;
    }

    /// Returns the requests that arrived, those with an error response as well.
    #[must_use]
    pub fn batches(&self) -> Vec<ReceivedBatch> {
        lock_state(&self.state).batches.clone()
    }

    /// Returns all spans that arrived.
    #[must_use]
    pub fn spans(&self) -> Vec<ReceivedSpan> {
        let batches = self.batches().into_iter();
        batches.flat_map(|batch| batch.spans).collect()
    }

    /// Waits until this number of requests has arrived.
    pub async fn wait_for_batches(&self, count: usize) {
        let mut received = self.received.clone();
        // An error means that the collector has stopped, and no more requests arrive.
        let _ = received.wait_for(|received| *received >= count).await;
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    state: Arc<Mutex<State>>,
    sender: Arc<watch::Sender<usize>>,
) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (state, sender, tls) = (Arc::clone(&state), Arc::clone(&sender), tls.clone());
        connections.spawn(async move {
            match tls {
                None => serve(stream, state, sender).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(stream, state, sender).await;
                    }
                }
            }
        });
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    state: Arc<Mutex<State>>,
    sender: Arc<watch::Sender<usize>>,
) {
    let service = service_fn(|request| {
        let (state, sender) = (Arc::clone(&state), Arc::clone(&sender));
        async move { Ok::<_, Infallible>(receive(request, &state, &sender).await) }
    });
    // An error means that the client has disconnected.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn receive(
    request: Request<Incoming>,
    state: &Mutex<State>,
    sender: &watch::Sender<usize>,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes());
    let decoded = body
        .ok()
        .and_then(|body| ExportTraceServiceRequest::decode(body).ok());
    let Some(decoded) = decoded else {
        return respond(StatusCode::BAD_REQUEST, Bytes::new());
    };
    let (status, rejected, count) = {
        let mut state = lock_state(state);
        state.batches.push(ReceivedBatch {
            path: head.uri.path().to_owned(),
            headers: head.headers,
            spans: spans(decoded),
        });
        (state.status, state.rejected, state.batches.len())
    };
    sender.send_replace(count);
    let partial = ExportTracePartialSuccess {
        rejected_spans: rejected,
        error_message: String::new(),
    };
    let answer = ExportTraceServiceResponse {
        partial_success: Some(partial),
    };
    respond(status, answer.encode_to_vec().into())
}

fn respond(status: StatusCode, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response
}

fn spans(request: ExportTraceServiceRequest) -> Vec<ReceivedSpan> {
    let mut found = Vec::new();
    for group in request.resource_spans {
        let resource = group.resource.unwrap_or_default();
        let resource = texts(resource.attributes);
        let spans = group.scope_spans.into_iter().flat_map(|scope| scope.spans);
        found.extend(spans.map(|span| convert_span(span, &resource)));
    }
    found
}

fn convert_span(span: Span, resource: &BTreeMap<String, String>) -> ReceivedSpan {
    let status = span.status.unwrap_or_default();
    ReceivedSpan {
        name: span.name,
        trace_id: hex(&span.trace_id),
        span_id: hex(&span.span_id),
        parent_id: hex(&span.parent_span_id),
        kind: span.kind,
        start: span.start_time_unix_nano,
        end: span.end_time_unix_nano,
        is_error: status.code == SpanStatus::Error as i32,
        attributes: texts(span.attributes),
        resource: resource.clone(),
    }
}

fn texts(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |attribute: KeyValue| {
        let value = match attribute.value?.value? {
            Value::StringValue(text) => text,
            Value::IntValue(number) => number.to_string(),
            other => format!("{other:?}"),
        };
        Some((attribute.key, value))
    };
    attributes.into_iter().filter_map(text).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
