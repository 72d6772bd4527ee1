//! What the store needs to know.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::Clock;

use crate::cursor::CursorKey;
use crate::page::DEFAULT_PAGE_BYTES;

/// When the system probes a silent TCP connection, and gives it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// How long a connection is silent before the first probe. Default: 10 s.
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

/// What the Postgres store needs.
#[derive(Clone)]
pub struct PostgresConfig {
    /// `postgres://user:password@host:port/database`. With several hosts (`host1:port1,host2:port2`) a connection goes to
    /// one that accepts writes, unless `target_session_attrs` says otherwise. `sslmode` and `sslrootcert` in it mean what
    /// they mean to libpq; TLS needs the feature `postgres-tls`.
    pub url: String,
    /// Where `now` comes from; the database itself unless given. Several processes should leave it to the database.
    pub clock: Option<Arc<dyn Clock>>,
    /// What cursors are signed with; the same in every process on the database.
    pub cursor_key: CursorKey,
    /// How many connections at the most. 16 unless set.
    pub connections: u32,
    /// The schema of the tables, created if missing: small letters, digits and `_`. That of the connection unless set.
    pub schema: Option<String>,
    /// A file of certificates (PEM) that the server's certificate must come from, instead of those that the address names
    /// or the system trusts.
    pub root_certificates: Option<PathBuf>,
    /// How long a unit waits for a connection. 10 s unless set: less than a request waits for its answer.
    pub acquire_timeout: Duration,
    /// Maximum time to open a connection to one address of one host, TLS and sign-in included. The next address follows.
    /// Default: 3 s. A `connect_timeout` in the URL wins.
    pub connect_timeout: Duration,
    /// `TCP_USER_TIMEOUT`: how long sent bytes may stay unacknowledged before the system closes the connection. Default:
    /// 10 s. A `tcp_user_timeout` in the URL wins.
    pub tcp_user_timeout: Duration,
    /// When the system probes silent connections. Default: after 10 s, every 5 s, 3 times. Values in the URL win.
    pub keepalive: Keepalive,
    /// How much longer than `statement_timeout` this process waits for the server's answer before it closes the
    /// connection. Default: 5 s. Without a statement time-out it waits for ever.
    pub answer_margin: Duration,
    /// `client_connection_check_interval`: how often the server looks during a statement whether this process is still
    /// connected. Default: 1 s. Zero does not tell the server; servers before version 14 require zero.
    pub client_check_interval: Duration,
    /// How long a connection may stay unused before it is closed. Default: 10 min.
    pub max_idle: Duration,
    /// `statement_timeout`: how long a statement may take; zero is for ever. 20 s unless set. Migrations have no limit.
    pub statement_timeout: Duration,
    /// `lock_timeout`: how long a statement waits for a lock, after which its unit is run again. 5 s unless set.
    pub lock_timeout: Duration,
    /// `idle_in_transaction_session_timeout`: after which silence of this process the server gives up a transaction, and
    /// its locks. 30 s unless set.
    pub idle_timeout: Duration,
    /// How long a unit that meets conflicts is run again, counted from its first run. Default: 10 s.
    pub retry_timeout: Duration,
    /// The byte budget of a page, see [`RecordStore::with_page_bytes`](crate::RecordStore::with_page_bytes).
    pub page_bytes: usize,
}

impl std::fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may hold a password.
        f.debug_struct("PostgresConfig")
            .field("clock", &self.clock)
            .field("connections", &self.connections)
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl PostgresConfig {
    /// A store in the database, with the database's clock.
    pub fn new(url: impl Into<String>, cursor_key: impl Into<CursorKey>) -> Self {
        Self {
            url: url.into(),
            clock: None,
            cursor_key: cursor_key.into(),
            connections: 16,
            schema: None,
            root_certificates: None,
            acquire_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(3),
            tcp_user_timeout: Duration::from_secs(10),
            keepalive: Keepalive::default(),
            answer_margin: Duration::from_secs(5),
            client_check_interval: Duration::from_secs(1),
            max_idle: Duration::from_secs(10 * 60),
            statement_timeout: Duration::from_secs(20),
            lock_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(30),
            retry_timeout: Duration::from_secs(10),
            page_bytes: DEFAULT_PAGE_BYTES,
        }
    }
}
