//! The limits of a listener.

use std::time::Duration;

use core_domain::gateway::TrustedProxies;
use core_domain::kernel::duration_text;
use serde::{Deserialize, Serialize};

use crate::kernel::BodyTimes;

/// The smallest buffer that hyper accepts.
const MIN_HEAD_BYTES: usize = 8 * 1024;

/// The limits of a listener. Every connection obeys them, whatever service answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServeOptions {
    /// Maximum number of concurrent connections, at least 1. A new connection above the limit closes the connection that has
    /// been idle between two requests, or has been waiting for the rest of a head, for longest. A connection with a request
    /// in progress is never closed: if all have one, the new connection is refused with 503. Keep the sum over all listeners
    /// below the file descriptors that the process may open. Default: 512.
    pub max_connections: usize,
    /// Maximum number of concurrent connections of one client address, at least 1; the addresses of an IPv6 /64 are one. A
    /// new connection above the limit closes one of the same address, or is refused with 503, by the rule of
    /// [`Self::max_connections`]. Trusted proxies have no such limit, because they connect for many clients. Default: 128.
    pub max_connections_per_client: usize,
    /// Proxies without a limit of their own. A gateway in another process, before a listener of services, is one as well.
    /// Default: none.
    #[serde(skip)]
    pub trusted_proxies: TrustedProxies,
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
    /// How long the listener goes on to accept connections after the shutdown began, while `/readyz` responds with 503 and
    /// answers close their connections. Behind a load balancer, set it to the time in which
    /// the load balancer notices, such as 5 seconds.
    /// Default: 0, so that a server in a terminal stops at once.
    #[serde(with = "duration_text")]
    pub drain_delay: Duration,
    /// How long requests in flight may take after [`Self::drain_delay`]. 25 seconds unless set.
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
            max_connections_per_client: 128,
            trusted_proxies: TrustedProxies::default(),
            header_timeout: Duration::from_secs(10),
            keep_alive_timeout: Duration::from_secs(75),
            body_times: BodyTimes {
                idle: Duration::from_secs(60),
                total: Duration::from_secs(15 * 60),
            },
            write_idle_timeout: Duration::from_secs(60),
            max_unread_bytes: 64 * 1024 * 1024,
            drain_delay: Duration::ZERO,
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
