//! Refuses connections that exceed the limits of a listener.

use std::net::IpAddr;
use std::time::Duration;

use core_domain::kernel::{Code, Error};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::ServeOptions;
use super::connections::NoRoom;
use crate::kernel::{ErrorStyle, error_body};

/// Maximum number of refused connections that wait for their request. Above it, a refused connection is closed at once.
const MAX_WAITING: usize = 64;

/// How long a refused connection waits for its request, and then for the client to close. A client that gets the
/// response before it has sent a request may take the response for a connection error.
const WAIT_TIME: Duration = Duration::from_secs(1);

/// Minimum time between two log lines about refused connections.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The security headers of a response that no service makes.
const SECURITY_HEADERS: &str =
    "x-content-type-options: nosniff\r\nx-frame-options: DENY\r\nreferrer-policy: no-referrer\r\n";

/// The refused connections of a listener.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    waiting: JoinSet<()>,
    count: u64,
    logged_at: Option<Instant>,
}

impl Refusals {
    /// Responds to the request of a connection with 503 and closes the connection. Returns at once; a task does the
    /// waiting.
    pub(super) fn refuse(
        &mut self,
        stream: TcpStream,
        peer: IpAddr,
        reason: NoRoom,
        options: &ServeOptions,
    ) {
        self.count += 1;
        let is_due = |at: Instant| at.elapsed() >= LOG_INTERVAL;
        if self.logged_at.is_none_or(is_due) {
            self.logged_at = Some(Instant::now());
            let count = self.count;
            tracing::warn!(target: "core::serve", %peer, ?reason, count, "connections were refused: all others have a request in progress");
        }
        while self.waiting.try_join_next().is_some() {}
        let response = response(reason, options, self.count);
        if self.waiting.len() < MAX_WAITING {
            self.waiting.spawn(respond(stream, response));
        } else {
            // If this fails, the client only sees a closed connection.
            let _ = stream.try_write(response.as_bytes());
        }
    }
}

async fn respond(mut stream: TcpStream, response: String) {
    let mut bytes = [0; 8 * 1024];
    // A client that sends no request also gets the response.
    let _ = tokio::time::timeout(WAIT_TIME, stream.read(&mut bytes)).await;
    let closing = async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await?;
        // A socket that is closed with unread bytes is reset, and the client may lose the response.
        while stream.read(&mut bytes).await? > 0 {}
        std::io::Result::Ok(())
    };
    let _ = tokio::time::timeout(WAIT_TIME, closing).await;
}

fn response(reason: NoRoom, options: &ServeOptions, number: u64) -> String {
    let (message, limit) = match reason {
        NoRoom::ForClient => (
            "This address has too many connections; use those that are open.",
            options.max_connections_per_client,
        ),
        NoRoom::ForListener => (
            "The server has too many connections; try again later.",
            options.max_connections,
        ),
    };
    let error = Error::Refused {
        code: Code::ServiceUnavailable,
        message: message.to_owned(),
        details: json!({ "limit": limit }),
    };
    // There is no request yet, and so no request id.
    let id = format!("connection-{number}");
    let body = error_body(&error, &id, ErrorStyle::Envelope);
    let length = body.len();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         retry-after: 1\r\nx-request-id: {id}\r\n{SECURITY_HEADERS}connection: close\r\n\r\n{body}"
    )
}
