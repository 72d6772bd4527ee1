//! A tail of a worker or of the live deployment of a site.

use std::sync::Arc;
use std::time::Duration;

use core_domain::port::ResourceRef;
use core_domain::registry::ResourceType;
use futures_util::{SinkExt, StreamExt};
use http::Method;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error as SocketError};

use super::lines::Lines;
use super::message::parse;
use crate::client::Client;
use crate::error::CallError;
use crate::pages::project;
use crate::worker::script;

/// The subprotocol of tails.
const PROTOCOL: &str = "trace-v1";
/// Maximum length of a message, in bytes. Cloudflare reports at most 256 KB of lines per request.
const MAX_MESSAGE_BYTES: usize = 2 * 1024 * 1024;
/// Interval of pings, so that neither side takes a silent connection for a broken one.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// Maximum number of pings without any message before the connection counts as broken.
const MAX_PINGS: u32 = 3;
/// Maximum time to delete a tail at the end. An undeleted tail expires after some hours.
const REMOVAL_TIME: Duration = Duration::from_secs(5);
/// The highest step of the pause between two attempts to open a tail again.
const MAX_BACK_OFF: u32 = 6;

/// A tail as the API returns it.
#[derive(Debug, Deserialize)]
struct CreatedTail {
    id: String,
    url: String,
}

/// An open tail.
#[derive(Debug)]
pub(super) struct Tail {
    client: Client,
    object: ResourceRef,
    /// The path of the tail below the account.
    path: Vec<String>,
    socket: WebSocketStream<TokioIo<Upgraded>>,
}

impl Tail {
    /// Creates a tail and connects to it. Returns `None` if the object no longer exists or is a site without a
    /// deployment.
    pub(super) async fn open(
        client: &Client,
        object: &ResourceRef,
    ) -> Result<Option<Self>, CallError> {
        let Some((mut path, missing)) = path_of(client, object).await? else {
            return Ok(None);
        };
        let call = client.call(Method::POST, "logs.tail", &segments(&path));
        let created = client
            .find::<CreatedTail>(call.json(&json!({})), missing)
            .await?;
        let Some(created) = created else {
            return Ok(None);
        };
        path.push(created.id);
        match connect(client, &created.url).await {
            Ok(socket) => Ok(Some(Self {
                client: client.clone(),
                object: object.clone(),
                path,
                socket,
            })),
            Err(error) => {
                remove(client, &path).await;
                Err(error)
            }
        }
    }

    /// Passes lines on until the sender of `stop` is dropped, and then deletes the tail. Opens it again if the
    /// connection ends before.
    pub(super) async fn follow(mut self, lines: Arc<Lines>, mut stop: watch::Receiver<()>) {
        loop {
            tokio::select! {
                _ = stop.changed() => {
                    let _ = timeout(REMOVAL_TIME, self.socket.close(None)).await;
                    return remove(&self.client, &self.path).await;
                }
                error = self.read_messages(&lines) => {
                    let worker = &self.object.name;
                    tracing::debug!(worker, ?error, "a tail has ended");
                }
            }
            remove(&self.client, &self.path).await;
            let next = tokio::select! {
                _ = stop.changed() => return,
                next = reopen(&self.client, &self.object) => next,
            };
            match next {
                Some(next) => self = next,
                None => return,
            }
        }
    }

    /// Reads messages until the connection ends. Returns its error, if there is one.
    async fn read_messages(&mut self, lines: &Lines) -> Option<SocketError> {
        let mut pings = interval(PING_INTERVAL);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick is immediate.
        pings.tick().await;
        let mut unanswered = 0;
        loop {
            let message = tokio::select! {
                message = self.socket.next() => message,
                _ = pings.tick() => {
                    if unanswered == MAX_PINGS {
                        return None;
                    }
                    unanswered += 1;
                    match self.socket.send(Message::Ping(Bytes::new())).await {
                        Ok(()) => continue,
                        Err(error) => return Some(error),
                    }
                }
            };
            unanswered = 0;
            let now = self.client.clock().now();
            match message {
                Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => {
                    let parsed = message.to_text().ok().and_then(|text| parse(text, now));
                    lines.push(&self.object.name, parsed.unwrap_or_default(), now);
                }
                Some(Ok(Message::Close(_))) | None => return None,
                Some(Ok(_)) => {}
                Some(Err(error)) => return Some(error),
            }
        }
    }
}

/// Opens the tail of an object again, as often as necessary. Returns `None` if the object no longer exists.
async fn reopen(client: &Client, object: &ResourceRef) -> Option<Tail> {
    let mut attempt = 1;
    loop {
        client.back_off(attempt).await;
        match Tail::open(client, object).await {
            Ok(tail) => return tail,
            Err(error) => {
                tracing::debug!(worker = object.name, %error, "a tail could not be opened again");
                attempt = MAX_BACK_OFF.min(attempt + 1);
            }
        }
    }
}

async fn connect(
    client: &Client,
    url: &str,
) -> Result<WebSocketStream<TokioIo<Upgraded>>, CallError> {
    let connection = TokioIo::new(client.open_socket(url, PROTOCOL).await?);
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES));
    let mut socket = WebSocketStream::from_raw_socket(connection, Role::Client, Some(config)).await;
    // Without this message the server would wait for a filter.
    let settings = json!({ "debug": false }).to_string();
    let sent = socket.send(Message::text(settings)).await;
    sent.map_err(|error| CallError::Unsent(core_domain::port::Cause::new(error)))?;
    Ok(socket)
}

/// Returns the path of the tails of an object below the account, and the error code if the object does not exist.
/// Returns `None` if it has no deployment that could have a tail.
async fn path_of(
    client: &Client,
    object: &ResourceRef,
) -> Result<Option<(Vec<String>, u32)>, CallError> {
    let name = object.name.as_str();
    if object.resource_type == ResourceType::Worker {
        let path = ["workers", "scripts", name, "tails"];
        return Ok(Some((path.map(str::to_owned).to_vec(), script::MISSING)));
    }
    let deployment = project::live_deployment(client, name).await?;
    Ok(deployment.map(|id| {
        let path = ["pages", "projects", name, "deployments", &id, "tails"];
        (path.map(str::to_owned).to_vec(), project::MISSING)
    }))
}

fn segments(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

/// Deletes a tail. Errors are only logged, because a tail expires.
async fn remove(client: &Client, path: &[String]) {
    let call = client.call(Method::DELETE, "logs.remove_tail", &segments(path));
    match timeout(REMOVAL_TIME, client.run(call)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a tail could not be deleted"),
        Err(_) => tracing::debug!("a tail could not be deleted in time"),
    }
}
