//! The limits of a listener.

use std::time::Duration;

use core_domain::kernel::duration_text;
use serde::{Deserialize, Serialize};

use crate::kernel::BodyTimes;

/// The smallest buffer that hyper accepts.
const MIN_HEAD_BYTES: usize = 8 * 1024;

/// The limits of a listener. Every connection obeys them, whatever service answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServeOptions {
    /// The number of concurrent connections; 512 unless set, at least 1. At the limit, the connection that has been idle
    /// (between two requests) longest is closed for a new one. If none is idle, one new connection is accepted and waits, the
    /// others wait unaccepted in the listener's backlog. Keep the sum over all listeners below the file descriptors that the
    /// process may open.
    pub max_connections: usize,
    /// How long a request's head may take: the first one from the accept, each later one from its first byte. 10 seconds
    /// unless set.
    #[serde(with = "duration_text")]
    pub header_timeout: Duration,
    /// How long a connection may be idle between two requests. 75 seconds unless set.
    #[serde(with = "duration_text")]
    pub keep_alive_timeout: Duration,
    /// The time limits of every request body: pauses of 60 seconds, 15 minutes in all, unless set; enough for 100 MiB at one
    /// megabit a second. Services have lower limits for bodies other than uploads, see
    /// [`ServiceOptions::body_times`](crate::kernel::ServiceOptions::body_times).
    pub body_times: BodyTimes,
    /// How long a client may read nothing while there is data to send. 60 seconds unless set. There is no limit for the whole
    /// answer, so streams may last.
    #[serde(with = "duration_text")]
    pub write_idle_timeout: Duration,
    /// Maximum bytes of answers that wait in memory for the clients of this listener. Above it, the connection whose client
    /// has read nothing for longest is closed. Each connection waits with two answers at most. Streams do not count: they
    /// produce what is read. Default: 64 MiB.
    pub max_unread_bytes: usize,
    /// How long requests in flight may take after the shutdown began. 25 seconds unless set.
    #[serde(with = "duration_text")]
    pub drain: Duration,
    /// The largest head of a request in bytes, 8 KiB at least; a larger one is answered with 431. 16 KiB unless set.
    pub max_head_bytes: usize,
    /// The most header lines of a request; more are answered with 431. 100 unless set.
    pub max_header_lines: usize,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            max_connections: 512,
            header_timeout: Duration::from_secs(10),
            keep_alive_timeout: Duration::from_secs(75),
            body_times: BodyTimes {
                idle: Duration::from_secs(60),
                total: Duration::from_secs(15 * 60),
            },
            write_idle_timeout: Duration::from_secs(60),
            max_unread_bytes: 64 * 1024 * 1024,
            drain: Duration::from_secs(25),
            max_head_bytes: 16 * 1024,
            max_header_lines: 100,
        }
    }
}

impl ServeOptions {
    /// The same options with another drain time.
    #[must_use]
    pub fn with_drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    pub(super) fn head_buffer(&self) -> usize {
        self.max_head_bytes.max(MIN_HEAD_BYTES)
    }
}
