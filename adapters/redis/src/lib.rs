//! Shares the rate limits of the Platform Control API Suite between nodes through a Redis server, and carries notices
//! between them.
//!
//! ```no_run
//! # async fn open(entropy: &dyn core_domain::kernel::Entropy) -> Result<(), core_redis::OptionError> {
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use core_domain::kernel::ProcessName;
//! use core_redis::{Redis, RedisConfig};
//!
//! let redis = Redis::open(RedisConfig::new("redis://:password@redis.example.org:6379/0"))?;
//! redis.wait_until_connected(Duration::from_secs(1)).await;
//! let limiter = redis.rate_limiter();
//! let notices = redis.notices(ProcessName::generate(entropy));
//! # drop((limiter, notices));
//! # Ok(()) }
//! ```
//!
//! # Rate limits
//! [`RedisRateLimiter`] gives the same result as counting in memory ([`Windows`](core_domain::gateway::Windows) and
//! [`FailedAttempts`](core_domain::iam::FailedAttempts)): a window starts with the first request of a key, and refused
//! requests neither count nor extend it. A limiter that smooths bursts (GCRA) would be as fast, but one rule must give
//! one result: callers count in memory while Redis is away, and the interface promises 100 requests in 60 seconds, not
//! a rate. Like in memory, a client can use the quota of one window at its end and that of the next one at its start.
//!
//! Each call is one script, which is atomic. Keys expire by themselves, [`EXPIRY_MARGIN`] after their window has ended.
//!
//! **Clocks.** Times are those of the calling node, because tests and all other rules use them. If clocks differ by some
//! time, a window is shorter or longer by at most that time: a node whose clock is behind moves the start of the window
//! back to its own time and keeps the count. The clock of a node must not be wrong by more than a fraction of a window;
//! run NTP.
//!
//! # Notices
//! [`RedisNotices`] uses `PUBLISH` and `SUBSCRIBE`. A message reaches those who are connected at that time. After a
//! lost connection [`Notice::Missed`](core_domain::kernel::Notice::Missed) is reported.
//!
//! # Failures
//! Connections are opened in the background and opened again when they are lost. While there is none, the limiter fails
//! at once, and its callers count in memory. A change of the state is logged once.
//!
//! # Servers
//! Redis 6.2 and newer, or Valkey. A replica that accepts no writes cannot be used. Sentinel and the protocol of Redis
//! Cluster are not supported; use an address that always leads to the primary. All keys begin with
//! [`RedisOptions::key_prefix`], and so does the channel, so that several installations can share a server.
//!
//! `rediss://` uses TLS: rustls with ring, the root certificates of the operating system or of a file. The TLS of the crate
//! `redis` is not used, because it takes the crypto provider from the process, and fails if the host program has two.

mod check;
mod config;
mod link;
mod notices;
mod rate_limiter;
mod stream;
#[cfg(all(feature = "testing", unix))]
pub mod testing;

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::ProcessName;

pub use check::CheckError;
pub use config::{OptionError, RedisConfig, RedisOptions};
pub use notices::RedisNotices;
pub use rate_limiter::{EXPIRY_MARGIN, RedisRateLimiter};

use link::Link;

/// A connection to a Redis server, which is opened again when it is lost. Clones share it. It is closed when the last
/// clone, limiter and channel is dropped.
#[derive(Clone, Debug)]
pub struct Redis {
    link: Arc<Link>,
    key_prefix: String,
}

impl Redis {
    /// Starts to connect in the background. Must be called in a Tokio runtime. A server that cannot be reached causes
    /// no error.
    ///
    /// # Errors
    /// [`OptionError`] names the invalid option.
    pub fn open(config: RedisConfig) -> Result<Self, OptionError> {
        let target = config.target()?;
        Ok(Self {
            link: Arc::new(Link::open(target)),
            key_prefix: config.options.key_prefix,
        })
    }

    /// Checks that the server can be used: connects within [`RedisConfig::connect_timeout`], signs in and sends `PING`.
    /// The connection is closed.
    ///
    /// # Errors
    /// [`CheckError`] if an option is invalid, if the server cannot be reached in time, or if it refuses the login.
    pub async fn check(config: &RedisConfig) -> Result<(), CheckError> {
        check::check(&config.target()?).await
    }

    /// Waits until there is a connection, at most for the given time. Returns whether there is one.
    pub async fn wait_until_connected(&self, limit: Duration) -> bool {
        let connected = tokio::time::timeout(limit, self.link.wait_until_connected());
        connected.await.is_ok()
    }

    /// Returns the rate limiter of all nodes.
    #[must_use]
    pub fn rate_limiter(&self) -> RedisRateLimiter {
        RedisRateLimiter::new(Arc::clone(&self.link), &self.key_prefix)
    }

    /// Starts to exchange notices with the other processes. `process` is the random name of this process. Must be
    /// called in a Tokio runtime.
    #[must_use]
    pub fn notices(&self, process: ProcessName) -> RedisNotices {
        RedisNotices::open(Arc::clone(&self.link), &self.key_prefix, process)
    }
}
