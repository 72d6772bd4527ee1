//! A small HTTP server whose responses a test chooses.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A request that the server received.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: Method,
    /// The path with the query string.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl ReceivedRequest {
    /// Returns a header; empty if it is absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }
}

/// What the connection does after the body of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterBody {
    /// The response ends.
    End,
    /// The connection breaks.
    Break,
    /// Nothing more is sent, and the connection stays open.
    Hang,
}

/// A response of the server.
#[derive(Clone, Debug)]
pub(crate) struct FakeReply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
    after: AfterBody,
}

impl FakeReply {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: vec![("content-type", "application/json".to_owned())],
            body: body.to_string(),
            after: AfterBody::End,
        }
    }

    /// An error of the API.
    pub(crate) fn error(status: u16, code: &str) -> Self {
        let error = json!({ "code": code, "message": format!("The message of {code}."), "requestId": "r-1", "details": {} });
        Self::json(status, &json!({ "error": error }))
    }

    /// A stream of server-sent events.
    pub(crate) fn events(text: &str, after: AfterBody) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type", "text/event-stream".to_owned())],
            body: text.to_owned(),
            after,
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// A server on a port of its own. It runs until the test process ends.
#[derive(Debug)]
pub(crate) struct FakeServer {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
}

type Answer = dyn Fn(&ReceivedRequest) -> FakeReply + Send + Sync;

impl FakeServer {
    /// Starts a server that responds by this function.
    pub(crate) fn start(
        answer: impl Fn(&ReceivedRequest) -> FakeReply + Send + Sync + 'static,
    ) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::<Mutex<Vec<ReceivedRequest>>>::default();
        let (answer, log): (Arc<Answer>, _) = (Arc::new(answer), Arc::clone(&received));
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(serve(listener, answer, log));
        });
        Self { url, received }
    }

    /// Starts a server that gives these responses in their order, and the last one from then on.
    pub(crate) fn with_replies(replies: impl IntoIterator<Item = FakeReply>) -> Self {
        let replies: Vec<_> = replies.into_iter().collect();
        let next = Mutex::new(0);
        Self::start(move |_| {
            let mut next = next.lock().unwrap();
            let reply = replies[(*next).min(replies.len() - 1)].clone();
            *next += 1;
            reply
        })
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.received.lock().unwrap().clone()
    }
}

async fn serve(
    listener: std::net::TcpListener,
    answer: Arc<Answer>,
    log: Arc<Mutex<Vec<ReceivedRequest>>>,
) {
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
        let service = service_fn(move |request: Request<Incoming>| {
            let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
            async move {
                let (parts, body) = request.into_parts();
                let received = ReceivedRequest {
                    method: parts.method,
                    target: parts.uri.path_and_query().unwrap().to_string(),
                    headers: parts.headers,
                    body: body
                        .collect()
                        .await
                        .map(|body| body.to_bytes())
                        .unwrap_or_default(),
                };
                log.lock().unwrap().push(received.clone());
                Ok::<_, Infallible>(respond(answer(&received)))
            }
        });
        tokio::spawn(
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service),
        );
    }
}

fn respond(reply: FakeReply) -> Response<impl hyper::body::Body<Data = Bytes, Error = io::Error>> {
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    let after = reply.after;
    let first = futures_util::stream::iter([Ok(Frame::data(Bytes::from(reply.body)))]);
    let last = futures_util::stream::unfold(after, |after| async move {
        match after {
            AfterBody::End => None,
            AfterBody::Break => {
                // Hyper flushes the body so far while the next frame is pending.
                tokio::task::yield_now().await;
                Some((
                    Err(io::Error::other("the test breaks the connection")),
                    AfterBody::End,
                ))
            }
            AfterBody::Hang => pending().await,
        }
    });
    let stream = futures_util::StreamExt::chain(first, last);
    response.body(StreamBody::new(Box::pin(stream))).unwrap()
}
