//! Streams of server-sent events that survive lost connections.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};

use super::sse::{SseEvent, SseParser};
use super::transport::OutgoingRequest;
use crate::client::Client;
use crate::error::{Error, Result, TransportError, TransportStage};

/// Maximum time without a byte. Servers send a comment every 15 seconds.
const MAX_SILENCE: Duration = Duration::from_secs(60);

/// Maximum number of connections in a row that bring no event.
const MAX_EMPTY_CONNECTIONS: u32 = 10;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The condition that ends a stream of events.
pub(crate) enum StreamEnd<T> {
    /// The server ends the stream.
    ByServer,
    /// The stream ends with an event for which the function returns `true`. Before, a closed connection is resumed.
    After(fn(&T) -> bool),
    /// The stream never ends.
    Never,
}

/// A stream of server-sent events. It reconnects after a lost connection and continues after the last received event.
pub struct EventStream<T> {
    client: Client,
    operation: &'static str,
    request: OutgoingRequest,
    end: StreamEnd<T>,
    body: Option<Incoming>,
    parser: SseParser,
    events: VecDeque<SseEvent>,
    empty_connections: u32,
    has_ended: bool,
    item: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for EventStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream")
            .field("url", &self.request.url)
            .field("last_event_id", &self.parser.last_id())
            .finish_non_exhaustive()
    }
}

impl<T: DeserializeOwned> EventStream<T> {
    /// Opens a stream. Returns the refusal of the server, if there is one.
    pub(crate) async fn open(
        client: Client,
        operation: &'static str,
        request: OutgoingRequest,
        end: StreamEnd<T>,
    ) -> Result<Self> {
        let mut stream = Self {
            client,
            operation,
            end,
            body: None,
            parser: SseParser::new(last_event_id(&request)),
            request,
            events: VecDeque::new(),
            empty_connections: 0,
            has_ended: false,
            item: PhantomData,
        };
        stream.connect().await?;
        Ok(stream)
    }

    /// Returns the id of the last received event; empty if there was none.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        self.parser.last_id()
    }

    /// Returns the next event; `None` after the end of the stream. It can be cancelled without losing an event.
    ///
    /// # Errors
    /// The refusal of the server if the stream cannot be resumed, for example after the access has ended.
    pub async fn next(&mut self) -> Result<Option<T>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return self.decode(&event).map(Some);
            }
            if self.has_ended {
                return Ok(None);
            }
            let Some(body) = &mut self.body else {
                self.resume().await?;
                continue;
            };
            match timeout(MAX_SILENCE, body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.push(&bytes)?;
                    }
                }
                Ok(None) => self.end_connection(true),
                Ok(Some(Err(_))) | Err(_) => self.end_connection(false),
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let events = self.parser.push(bytes).map_err(|error| Error::Decode {
            operation: self.operation,
            problem: error.to_string(),
        })?;
        if !events.is_empty() {
            self.empty_connections = 0;
        }
        self.events.extend(events);
        Ok(())
    }

    fn decode(&mut self, event: &SseEvent) -> Result<T> {
        let item = serde_json::from_str(&event.data).map_err(|error| Error::Decode {
            operation: self.operation,
            problem: error.to_string(),
        })?;
        if let StreamEnd::After(is_last) = self.end
            && is_last(&item)
        {
            self.has_ended = true;
            self.body = None;
        }
        Ok(item)
    }

    fn end_connection(&mut self, is_clean: bool) {
        self.body = None;
        self.has_ended = is_clean && matches!(self.end, StreamEnd::ByServer);
    }

    /// Opens the next connection after a pause.
    async fn resume(&mut self) -> Result<()> {
        self.empty_connections += 1;
        if self.empty_connections > MAX_EMPTY_CONNECTIONS {
            let what = "the server ended the stream repeatedly";
            let error = TransportError::new(TransportStage::Response, &self.request.url, what);
            return Err(error.into());
        }
        let backoff = self
            .client
            .0
            .transport
            .policy
            .backoff(self.empty_connections);
        sleep(self.parser.retry().unwrap_or_default().max(backoff)).await;
        match self.connect().await {
            // The server may be restarting.
            Err(Error::Transport(_)) if self.empty_connections < MAX_EMPTY_CONNECTIONS => Ok(()),
            result => result,
        }
    }

    async fn connect(&mut self) -> Result<()> {
        let last_id = self.parser.last_id().to_owned();
        if let Ok(id) = HeaderValue::from_bytes(last_id.as_bytes())
            && !last_id.is_empty()
        {
            self.request.headers.insert(LAST_EVENT_ID, id);
        }
        let response = self.client.0.transport.send(&self.request).await?;
        // An unfinished event of the earlier connection is sent again.
        let retry = self.parser.retry();
        self.parser = SseParser::new(last_id).with_retry(retry);
        self.accept(response)
    }

    fn accept(&mut self, response: Response<Incoming>) -> Result<()> {
        if response.status() == StatusCode::NO_CONTENT {
            self.has_ended = true;
            return Ok(());
        }
        let kind = response.headers().get(http::header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            return Err(Error::Decode {
                operation: self.operation,
                problem: format!("expected an event stream, received {kind:?}"),
            });
        }
        self.body = Some(response.into_body());
        Ok(())
    }
}

fn last_event_id(request: &OutgoingRequest) -> String {
    let id = request.headers.get(LAST_EVENT_ID);
    let id = id.and_then(|id| id.to_str().ok());
    id.unwrap_or_default().to_owned()
}
