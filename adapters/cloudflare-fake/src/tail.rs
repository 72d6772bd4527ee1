//! Tails: WebSockets that receive the messages that a test sends for a worker or a site.

use std::io;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{HeaderMap, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::sync::broadcast;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role};

use crate::envelope::{Refusal, Reply, ok};
use crate::request::Request;
use crate::state::State;
use crate::state::tail::Tail;

/// The path below which the WebSockets are.
const PATH: &str = "/tails/";
/// The subprotocol of tails.
const PROTOCOL: &str = "trace-v1";
const NOT_FOUND: Refusal = Refusal::new(404, 10_007, "The tail does not exist.");

/// `..tails` and `..tails/{id}` of a target.
pub(crate) fn route(
    state: &mut State,
    request: &Request,
    target: &str,
    path: &[&str],
) -> Option<Reply> {
    match (request.method.as_str(), path) {
        ("GET", []) => Some(ok(state
            .tails_of(target)
            .map(|tail| view(state, tail))
            .collect())),
        ("POST", []) => Some(create(state, target)),
        ("DELETE", [id]) => Some(remove(state, target, id)),
        _ => None,
    }
}

fn create(state: &mut State, target: &str) -> Reply {
    let tail = Tail::new(state.ids.hex(), target);
    let created = view(state, &tail);
    state.tails.push(tail);
    ok(created)
}

fn view(state: &State, tail: &Tail) -> serde_json::Value {
    let url = format!("ws://{}{PATH}{}", state.address, tail.id);
    json!({ "id": tail.id, "url": url, "expires_at": "2099-01-01T00:00:00Z" })
}

fn remove(state: &mut State, target: &str, id: &str) -> Reply {
    let count = state.tails.len();
    state
        .tails
        .retain(|tail| tail.id != id || tail.target != target);
    if state.tails.len() == count {
        return Err(NOT_FOUND);
    }
    ok(serde_json::Value::Null)
}

/// Returns the id of the tail whose WebSocket a request asks for; `None` for a request to the API.
pub(crate) fn socket_id(request: &http::Request<Incoming>) -> Option<String> {
    let id = request.uri().path().strip_prefix(PATH)?;
    request
        .headers()
        .contains_key(UPGRADE)
        .then(|| id.to_owned())
}

/// Opens a WebSocket that receives the messages of a tail, `None` if there is no such tail. It closes when the tail is
/// deleted.
pub(crate) fn open_socket(
    messages: Option<broadcast::Receiver<String>>,
    request: http::Request<Incoming>,
) -> io::Result<Response<Bytes>> {
    let key = text(request.headers(), &SEC_WEBSOCKET_KEY).map(str::to_owned);
    let is_tail = text(request.headers(), &SEC_WEBSOCKET_PROTOCOL) == Some(PROTOCOL);
    let (Some(messages), Some(key), true) = (messages, key, is_tail) else {
        let mut refused = Response::new(Bytes::new());
        *refused.status_mut() = StatusCode::BAD_REQUEST;
        return Ok(refused);
    };
    tokio::spawn(async move {
        if let Ok(upgraded) = hyper::upgrade::on(request).await {
            let stream = TokioIo::new(upgraded);
            let socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
            forward(socket, messages).await;
        }
    });
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_PROTOCOL, PROTOCOL)
        .header(SEC_WEBSOCKET_ACCEPT, derive_accept_key(key.as_bytes()))
        .body(Bytes::new())
        .map_err(io::Error::other)
}

fn text<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Forwards messages until the tail is deleted or the client disconnects. Cloudflare sends binary messages.
async fn forward<S>(mut socket: WebSocketStream<S>, mut messages: broadcast::Receiver<String>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    loop {
        let sent = tokio::select! {
            message = messages.recv() => match message {
                Ok(message) => socket.send(Message::binary(message.into_bytes())).await,
                Err(broadcast::error::RecvError::Lagged(_)) => Ok(()),
                Err(broadcast::error::RecvError::Closed) => {
                    let _ = socket.close(None).await;
                    return;
                }
            },
            // Reading also answers pings.
            received = socket.next() => match received {
                Some(Ok(_)) => Ok(()),
                _ => return,
            },
        };
        if sent.is_err() {
            return;
        }
    }
}
