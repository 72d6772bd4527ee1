//! The queue binding. Scripts push messages; no worker consumes them.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, Method, Request};
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::{Value, json};

use super::calls::Call;
use super::reply::{self, BindingError, BindingResult, header_text, read_body};
use crate::error::Result;
use crate::queue::Queue;

/// Maximum length of a request, in bytes: a batch of 256 KiB as base64 within JSON.
const MAX_REQUEST: usize = 512 * 1024;
/// Maximum delay of a message, in seconds.
const MAX_DELAY: u64 = 24 * 60 * 60;

#[derive(Deserialize)]
struct Batch {
    messages: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    /// The message body in base64.
    body: String,
    delay_secs: Option<u64>,
}

/// Handles a request to a queue.
pub(super) async fn answer(
    queue: &Queue,
    request: Request<&mut Incoming>,
    call: &Call,
) -> BindingResult {
    match (request.method(), request.uri().path()) {
        (&Method::POST, "/message") => {
            let delay = delay(common_delay(request.headers())?)?;
            let body = read_body(request.into_body(), MAX_REQUEST, call).await?;
            queue.push(&body, delay).await?;
        }
        (&Method::POST, "/batch") => push_all(queue, request, call).await?,
        (&Method::GET, "/metrics") => return Ok(reply::json(&metrics(queue).await?)),
        _ => return Err(BindingError::unsupported("this call of a queue")),
    }
    let metrics = metrics(queue).await?;
    Ok(reply::json(&json!({ "metadata": { "metrics": metrics } })))
}

async fn push_all(
    queue: &Queue,
    request: Request<&mut Incoming>,
    call: &Call,
) -> Result<(), BindingError> {
    let common = common_delay(request.headers())?;
    let body = read_body(request.into_body(), MAX_REQUEST, call).await?;
    let batch: Batch =
        serde_json::from_slice(&body).map_err(|error| BindingError::bad(error.to_string()))?;
    let mut messages = Vec::new();
    for message in &batch.messages {
        let body = STANDARD.decode(&message.body);
        let body = body.map_err(|_| BindingError::bad("a message is not valid base64"))?;
        messages.push((body, delay(message.delay_secs.or(common))?));
    }
    queue.push_all(messages).await?;
    Ok(())
}

fn common_delay(headers: &HeaderMap) -> Result<Option<u64>, BindingError> {
    let text = header_text(headers, "x-msg-delay-secs");
    let seconds = text.map(str::parse).transpose();
    seconds.map_err(|_| BindingError::bad("the delay is not a number of seconds"))
}

fn delay(seconds: Option<u64>) -> Result<Duration, BindingError> {
    match seconds.unwrap_or(0) {
        seconds @ 0..=MAX_DELAY => Ok(Duration::from_secs(seconds)),
        _ => Err(BindingError::bad(
            "the delay of a message is at most one day",
        )),
    }
}

async fn metrics(queue: &Queue) -> Result<Value> {
    let (count, bytes) = queue.backlog().await?;
    Ok(json!({ "backlogCount": count, "backlogBytes": bytes, "oldestMessageTimestamp": 0 }))
}
