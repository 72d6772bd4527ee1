//! Creates an empty Postgres database for each test.
//!
//! `CORE_TEST_POSTGRES_URL` is the URL of a server on which databases are created. If it is not set, the test process
//! starts a temporary server on a free port of the loopback address. The server is stopped and its files are deleted
//! when the process ends. Tests of cells need the server's setting `max_prepared_transactions`.

mod background;
pub mod cancelled;
mod connections;
mod patroni;
mod pgbouncer;
#[cfg(feature = "sqlite")]
mod plans;
mod proxy;
mod schema;
mod server;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio_postgres::{Client, Error, NoTls};

pub use connections::Observer;
pub use patroni::PatroniCluster;
pub use pgbouncer::{IgnoredSettings, PgBouncer};
#[cfg(feature = "sqlite")]
pub use plans::{PlanDatabases, Plans};
pub use proxy::Proxy;
pub use schema::{drop_postgres_guards, postgres_schema};
#[cfg(feature = "sqlite")]
pub use schema::{drop_sqlite_guards, sqlite_schema};
use server::{restart_immediately, start, start_standby};

/// An empty database, which is dropped together with this value.
#[derive(Debug)]
pub struct TestDatabase {
    /// The URL of the database.
    pub url: String,
    server: String,
    name: String,
}

/// Creates an empty database.
///
/// # Panics
/// If there is no Postgres server and none can be started. A missing database fails a test; it never skips the test.
pub async fn postgres() -> TestDatabase {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let server = match tokio::task::spawn_blocking(server).await {
        Ok(Ok(url)) => url,
        Ok(Err(why)) => panic!(
            "{why}. Install PostgreSQL (Debian: apt-get install postgresql) or set CORE_TEST_POSTGRES_URL"
        ),
        Err(error) => panic!("starting Postgres panicked: {error}"),
    };
    let count = COUNT.fetch_add(1, Ordering::SeqCst);
    let name = format!("core_test_{}_{count}", std::process::id());
    if let Err(error) = run(&server, format!("CREATE DATABASE {name}")).await {
        panic!("no database can be created on {server}: {error}");
    }
    let url = with_database(&server, &name);
    TestDatabase { url, server, name }
}

impl TestDatabase {
    /// Returns the URL of the database through these proxies. Each proxy is a host of the URL.
    #[must_use]
    pub fn url_through(&self, proxies: &[&Proxy]) -> String {
        let hosts: Vec<String> = proxies
            .iter()
            .map(|proxy| proxy.address.to_string())
            .collect();
        with_hosts(&self.url, &hosts.join(","))
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        // Uses a new thread, because this may run on the runtime of the test.
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            if let Ok(runtime) = runtime {
                let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
                let _ = runtime.block_on(run(&server, drop));
            }
        });
        let _ = thread.join();
    }
}

/// Starts a separate server with TLS, this certificate and this key (PEM). It runs until this process ends. Returns the
/// URL of the server.
///
/// # Panics
/// If the server does not start.
pub async fn postgres_with_tls(certificate: String, key: String) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("tls-{}", COUNT.fetch_add(1, Ordering::SeqCst));
    start_or_panic(move || {
        let files = [("server.crt", &*certificate), ("server.key", &*key)];
        start(&name, &["ssl=on"], &files)
    })
    .await
}

/// A server that only one test uses, because the test disturbs it. It runs until this process ends.
#[derive(Debug)]
pub struct DedicatedPostgres {
    /// The URL of its database.
    pub url: String,
    name: String,
}

impl DedicatedPostgres {
    /// Starts the server.
    ///
    /// # Panics
    /// If the server does not start.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts the server with these settings, for example `work_mem=1MB`.
    ///
    /// # Panics
    /// If the server does not start.
    pub async fn start_with(settings: &'static [&'static str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("own-{}", COUNT.fetch_add(1, Ordering::SeqCst));
        let of_name = name.clone();
        let url = start_or_panic(move || start(&of_name, settings, &[])).await;
        Self { url, name }
    }

    /// Returns the URL of its database through a proxy.
    #[must_use]
    pub fn url_through(&self, proxy: &Proxy) -> String {
        with_hosts(&self.url, &proxy.address.to_string())
    }

    /// Starts a standby that follows this server.
    ///
    /// # Panics
    /// If the standby does not start.
    pub async fn start_standby(&self) -> Self {
        let name = format!("{}-standby", self.name);
        let (of_name, primary) = (name.clone(), self.url.clone());
        let url = start_or_panic(move || start_standby(&of_name, &primary)).await;
        Self { url, name }
    }

    /// Simulates a crash (`pg_ctl -m immediate`), and restarts the server. Returns when it accepts connections again.
    ///
    /// # Panics
    /// If the server does not start again.
    pub async fn restart_immediately(&self) {
        let name = self.name.clone();
        start_or_panic(move || restart_immediately(&name)).await;
    }
}

/// Runs the function that starts a server, and panics if it fails.
async fn start_or_panic<T: Send + 'static>(
    start: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> T {
    match tokio::task::spawn_blocking(start).await {
        Ok(Ok(started)) => started,
        Ok(Err(why)) => panic!("{why}"),
        Err(error) => panic!("starting Postgres panicked: {error}"),
    }
}

/// Opens a connection for direct use by a test.
///
/// # Panics
/// If the server cannot be reached.
pub async fn connect(url: &str) -> Client {
    match tokio_postgres::connect(url, NoTls).await {
        Ok((client, io)) => {
            tokio::spawn(io);
            client
        }
        Err(error) => panic!("no connection to {url}: {error}"),
    }
}

async fn run(url: &str, statement: String) -> Result<(), Error> {
    let (client, io) = tokio_postgres::connect(url, NoTls).await?;
    let io = tokio::spawn(io);
    client.batch_execute(&statement).await?;
    drop(client);
    io.await.unwrap_or(Ok(()))
}

/// Returns the URL of another database on the server.
fn with_database(url: &str, database: &str) -> String {
    let (address, query) = match url.split_once('?') {
        Some((address, query)) => (address, format!("?{query}")),
        None => (url, String::new()),
    };
    let end = address.find("://").map_or(0, |at| at + 3);
    let server = match address[end..].find('/') {
        Some(slash) => &address[..end + slash],
        None => address,
    };
    format!("{server}/{database}{query}")
}

/// Replaces the hosts of the URL.
fn with_hosts(url: &str, hosts: &str) -> String {
    let begin = url.find("://").map_or(0, |at| at + 3);
    let end = url[begin..]
        .find(['/', '?'])
        .map_or(url.len(), |at| begin + at);
    let begin = url[begin..end]
        .rfind('@')
        .map_or(begin, |at| begin + at + 1);
    format!("{}{hosts}{}", &url[..begin], &url[end..])
}

#[expect(clippy::disallowed_methods, reason = "the one setting of the tests")]
fn configured_url() -> Option<String> {
    std::env::var("CORE_TEST_POSTGRES_URL")
        .ok()
        .filter(|url| !url.is_empty())
}

fn server() -> Result<String, String> {
    static SERVER: OnceLock<Result<String, String>> = OnceLock::new();
    SERVER
        .get_or_init(|| configured_url().map_or_else(|| start("shared", &[], &[]), Ok))
        .clone()
}

#[cfg(test)]
mod tests {
    use super::{with_database, with_hosts};

    #[test]
    fn with_hosts_replaces_host_and_port_of_the_url() {
        let cases = [
            ("postgres://a:b@h:1/x?y=z", "postgres://a:b@i:2,j:3/x?y=z"),
            ("postgres://h", "postgres://i:2,j:3"),
        ];
        for (url, expected) in cases {
            assert_eq!(with_hosts(url, "i:2,j:3"), expected);
        }
    }

    #[test]
    fn with_database_replaces_the_database_of_the_url() {
        let cases = [
            ("postgres://a:b@h:1/postgres", "postgres://a:b@h:1/x"),
            ("postgres://h", "postgres://h/x"),
            (
                "postgres://h/y?sslmode=disable",
                "postgres://h/x?sslmode=disable",
            ),
        ];
        for (url, expected) in cases {
            assert_eq!(with_database(url, "x"), expected);
        }
    }
}
