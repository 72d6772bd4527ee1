//! The configuration of the Postgres store.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::Clock;

use crate::cursor::CursorKey;
use crate::page::DEFAULT_PAGE_BYTES;
use crate::sql::migrations::MigrationOptions;

/// When the operating system probes a silent TCP connection, and when it closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// The time without traffic before the first probe. Default: 10 s.
    pub idle: Duration,
    /// The time between probes. Default: 5 s.
    pub interval: Duration,
    /// The number of unanswered probes after which the connection is closed. Default: 3.
    pub count: u32,
}

impl Default for Keepalive {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(10),
            interval: Duration::from_secs(5),
            count: 3,
        }
    }
}

/// A standby for lists that may be stale, see [`Store::begin_stale`](core_domain::port::Store::begin_stale).
#[derive(Clone)]
pub struct ReplicaConfig {
    /// The URL of the same database on a standby, or on several. It leads to a pooler only if
    /// [`PostgresConfig::direct_url`] is set.
    pub url: String,
    /// The maximum age of a commit that such a list lacks. If the standby is further behind, the primary is read.
    pub max_staleness: Duration,
}

impl std::fmt::Debug for ReplicaConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The URL may contain a password.
        f.debug_struct("ReplicaConfig")
            .field("max_staleness", &self.max_staleness)
            .finish_non_exhaustive()
    }
}

/// The configuration of the Postgres store.
#[derive(Clone)]
pub struct PostgresConfig {
    /// The URL of the database: `postgres://user:password@host:port/database`. With several hosts
    /// (`host1:port1,host2:port2`) a connection goes to one that accepts writes, unless `target_session_attrs` requests
    /// otherwise. `sslmode` and `sslrootcert` have the same meaning as in libpq. TLS requires the feature
    /// `postgres-tls`.
    pub url: String,
    /// The URL of the same database without a pooler. If it is set, `url` may lead to a pooler that assigns a server
    /// connection to each transaction, such as PgBouncer with `pool_mode = transaction`. Units of work then use no state
    /// of a session: no settings, no prepared statements. Migrations, notices, hints, backups and the end of prepared
    /// transactions use this URL, because they need a session. Default: `None`, `url` leads to the server itself.
    pub direct_url: Option<String>,
    /// A standby for lists that may be stale. Default: `None`, all units use the primary.
    pub replica: Option<ReplicaConfig>,
    /// The source of `now`. Default: `None`, which is the clock of the database. Several processes on one database
    /// should use the default.
    pub clock: Option<Arc<dyn Clock>>,
    /// The key that signs cursors. All processes on the database must use the same key.
    pub cursor_key: CursorKey,
    /// The maximum number of connections for units of work. Default: 16. Minimum: 2. Up to 4 more connections, which
    /// are opened when they are needed, read and end prepared transactions.
    pub connections: u32,
    /// The schema that contains the tables; created if it is missing. Lower-case letters, digits and `_`. Default:
    /// `None`, which is the default schema of the connection.
    pub schema: Option<String>,
    /// A PEM file with the root certificates that the server's certificate must come from. It replaces the file in the
    /// URL and the certificates of the operating system. Default: `None`.
    pub root_certificates: Option<PathBuf>,
    /// The maximum time that a unit waits for a connection. Default: 10 s, which is shorter than the timeout of a
    /// request.
    pub acquire_timeout: Duration,
    /// The maximum time to open a connection to one address of one host, including TLS and authentication. After it the
    /// next address is tried. Default: 3 s. A `connect_timeout` in the URL takes precedence.
    pub connect_timeout: Duration,
    /// `TCP_USER_TIMEOUT`: how long sent bytes may stay unacknowledged before the operating system closes the
    /// connection. Default: 10 s. A `tcp_user_timeout` in the URL takes precedence.
    pub tcp_user_timeout: Duration,
    /// When the operating system probes silent connections. Default: after 10 s, every 5 s, 3 times. Values in the URL
    /// take precedence.
    pub keepalive: Keepalive,
    /// The extra time, in addition to `statement_timeout`, after which this process stops waiting for a reply and
    /// closes the connection. Default: 5 s. Without a statement timeout there is no limit.
    pub reply_margin: Duration,
    /// `client_connection_check_interval`: how often the server checks during a statement whether this process is still
    /// connected. Default: 1 s. Zero leaves the server's setting unchanged; servers before version 14 require zero.
    pub client_check_interval: Duration,
    /// How long a connection may be idle before it is closed. Default: 10 min.
    pub max_idle: Duration,
    /// `statement_timeout`: the maximum duration of a statement. Default: 20 s. Zero means no limit. Migrations have no
    /// limit.
    pub statement_timeout: Duration,
    /// `lock_timeout`: the maximum time that a statement waits for a lock. After it the unit is run again. Default: 5
    /// s.
    pub lock_timeout: Duration,
    /// `idle_in_transaction_session_timeout`: the time without a statement after which the server ends a transaction
    /// and releases its locks. Default: 30 s.
    pub idle_timeout: Duration,
    /// How long a unit that meets conflicts is run again, measured from its first run. Default: 10 s.
    pub retry_timeout: Duration,
    /// The byte budget of a page, see [`RecordStore::with_page_bytes`](crate::RecordStore::with_page_bytes). Its
    /// default is 1 MiB.
    pub page_bytes: usize,
    /// How migrations run. Default: those that have not run, when the store is opened.
    pub migrations: MigrationOptions,
}

impl std::fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The URL may contain a password.
        f.debug_struct("PostgresConfig")
            .field("clock", &self.clock)
            .field("connections", &self.connections)
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl PostgresConfig {
    /// Returns the configuration for the direct address alone: `direct_url` takes the place of `url`.
    #[must_use]
    pub fn into_direct(mut self) -> Self {
        if let Some(url) = self.direct_url.take() {
            self.url = url;
        }
        self
    }

    /// Creates the default configuration for the database, with the database's clock.
    pub fn new(url: impl Into<String>, cursor_key: impl Into<CursorKey>) -> Self {
        Self {
            url: url.into(),
            direct_url: None,
            replica: None,
            clock: None,
            cursor_key: cursor_key.into(),
            connections: 16,
            schema: None,
            root_certificates: None,
            acquire_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(3),
            tcp_user_timeout: Duration::from_secs(10),
            keepalive: Keepalive::default(),
            reply_margin: Duration::from_secs(5),
            client_check_interval: Duration::from_secs(1),
            max_idle: Duration::from_secs(10 * 60),
            statement_timeout: Duration::from_secs(20),
            lock_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(30),
            retry_timeout: Duration::from_secs(10),
            page_bytes: DEFAULT_PAGE_BYTES,
            migrations: MigrationOptions::default(),
        }
    }
}
