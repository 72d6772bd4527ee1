//! The limits of a listener.

use std::time::Duration;

use core_domain::gateway::TrustedProxies;
use core_domain::kernel::duration_text;
use serde::{Deserialize, Serialize};

use crate::kernel::BodyTimes;

/// The smallest buffer that hyper accepts, in bytes.
const MIN_HEAD_BYTES: usize = 8 * 1024;

/// The limits of a listener. They apply to every connection, whichever service responds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServeOptions {
    /// Maximum number of concurrent connections, at least 1. Default: 1,024.
    ///
    /// For a new connection above the limit, another one is closed: the connection that has been idle or has had an
    /// incomplete head for longest. A connection with a request in progress is never closed. If all have one, the new
    /// connection is refused with 503. Keep the sum over all listeners below the number of file descriptors that the
    /// process may open.
    pub max_connections: usize,
    /// Maximum number of concurrent connections per client address, at least 1. The addresses of an IPv6 /64 count as
    /// one. Default: 128.
    ///
    /// For a new connection above the limit, another one of the same address is closed, or the new one is refused with
    /// 503. The rule is that of [`Self::max_connections`]. Trusted proxies have no such limit, because they connect for
    /// many clients.
    pub max_connections_per_client: usize,
    /// Proxies without a limit per client address. A gateway in another process, in front of a listener of services, is
    /// one as well. Default: none.
    #[serde(skip)]
    pub trusted_proxies: TrustedProxies,
    /// Maximum time for the head of a request. It is measured from the accept for the first request, and from the first
    /// byte for later ones. Default: 10 seconds.
    #[serde(with = "duration_text")]
    pub header_timeout: Duration,
    /// Maximum idle time of a connection between two requests. Default: 75 seconds.
    #[serde(with = "duration_text")]
    pub keep_alive_timeout: Duration,
    /// Time limits for every request body. Default: pauses of 60 seconds and 15 minutes in total, which is enough for
    /// 100 MiB at one megabit per second.
    ///
    /// Services have lower limits for bodies other than uploads, see
    /// [`ServiceOptions::body_times`](crate::kernel::ServiceOptions::body_times).
    pub body_times: BodyTimes,
    /// Maximum time for which a client may read nothing while there is data to send. The total time of a response is
    /// not limited, so that streams can continue. Default: 60 seconds.
    #[serde(with = "duration_text")]
    pub write_idle_timeout: Duration,
    /// Maximum number of response bytes of this listener that wait in memory for clients to read them. Default: 64 MiB.
    ///
    /// Above the limit, the connection whose client has read nothing for longest is closed. Each connection has at most
    /// two waiting responses. Streams do not count, because they only produce bytes that are read.
    pub max_unread_bytes: usize,
    /// How long the listener still accepts connections after the shutdown has begun. During this time `/readyz`
    /// responds with 503, and responses close their connections. Default: 0, so that a server in a terminal stops at
    /// once.
    ///
    /// With a load balancer in front, set it to the time that the load balancer needs to notice, for example 5 seconds.
    #[serde(with = "duration_text")]
    pub drain_delay: Duration,
    /// Maximum time for requests in progress after [`Self::drain_delay`]. Default: 25 seconds.
    #[serde(with = "duration_text")]
    pub drain: Duration,
    /// Maximum size of the head of a request in bytes, at least 8 KiB. A larger head gets 431. Default: 16 KiB.
    pub max_head_bytes: usize,
    /// Maximum number of header lines of a request. More lines get 431. Default: 100.
    pub max_header_lines: usize,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            max_connections: 1_024,
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
    /// Returns the options with another drain time.
    #[must_use]
    pub fn with_drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    pub(super) fn head_buffer(&self) -> usize {
        self.max_head_bytes.max(MIN_HEAD_BYTES)
    }
}
