//! Runs PgBouncer in transaction mode in front of the database of a test.

use std::io::{BufRead, BufReader};
use std::process::ChildStderr;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::background::{Background, find_program, folder, free_port, give_away};
use super::{TestDatabase, with_hosts};

/// The line that PgBouncer logs when it accepts connections.
const READY: &str = "process up";

/// The treatment of settings with which a client opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredSettings {
    /// PgBouncer refuses the connection, which is its default.
    Refused,
    /// PgBouncer accepts the connection and ignores the settings (`ignore_startup_parameters`).
    Ignored,
}

/// PgBouncer in transaction mode. It runs until it is dropped or this process ends.
#[derive(Debug)]
pub struct PgBouncer {
    /// The URL of the database through PgBouncer.
    pub url: String,
    _program: Background,
}

impl PgBouncer {
    /// Starts PgBouncer with this number of server connections for a database.
    ///
    /// # Panics
    /// If PgBouncer is missing or does not start. A missing program fails a test; it never skips the test.
    pub async fn start(
        database: &TestDatabase,
        server_connections: usize,
        settings: IgnoredSettings,
    ) -> Self {
        let url = database.url.clone();
        let start = move || start(&url, server_connections, settings);
        match tokio::task::spawn_blocking(start).await {
            Ok(Ok(started)) => started,
            Ok(Err(why)) => panic!("{why}"),
            Err(error) => panic!("starting PgBouncer panicked: {error}"),
        }
    }
}

fn start(
    url: &str,
    server_connections: usize,
    settings: IgnoredSettings,
) -> Result<PgBouncer, String> {
    let program = find_program("pgbouncer", "pgbouncer")?;
    let (folder, port) = (folder("pgbouncer")?, free_port()?);
    let ignored = match settings {
        IgnoredSettings::Refused => "",
        IgnoredSettings::Ignored => "ignore_startup_parameters = options\n",
    };
    let configuration = format!(
        "[databases]\n* = {}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
         pidfile = {folder}/pid\nauth_type = any\npool_mode = transaction\n\
         default_pool_size = {server_connections}\nmax_client_conn = 500\n\
         log_connections = 0\nlog_disconnections = 0\n{ignored}",
        server(url)?,
        folder = folder.display(),
    );
    let file = folder.join("pgbouncer.ini");
    std::fs::write(&file, configuration).map_err(|error| error.to_string())?;
    give_away(&folder)?;
    let run = format!("{} {}", program.display(), file.display());
    let folder = folder.display();
    let stop = format!("kill $(cat {folder}/pid); wait; rm -rf {folder}");
    let mut program = Background::start(&run, &[], &stop)?;
    wait_until_ready(program.log()?)?;
    Ok(PgBouncer {
        url: with_hosts(url, &format!("127.0.0.1:{port}")),
        _program: program,
    })
}

/// Returns the server of the URL in the form of PgBouncer's configuration.
fn server(url: &str) -> Result<String, String> {
    let config: Config = url
        .parse()
        .map_err(|_| "the URL of the server is invalid")?;
    let Some(Host::Tcp(host)) = config.get_hosts().first() else {
        return Err("the URL of the server names no host".to_owned());
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let user = config.get_user().unwrap_or("core");
    let mut server = format!("host={host} port={port} user={user}");
    if let Some(password) = config.get_password() {
        let password = String::from_utf8_lossy(password);
        server.push_str(&format!(" password={password}"));
    }
    Ok(server)
}

/// Reads the log until PgBouncer accepts connections. The remaining log is read and dropped by a thread.
fn wait_until_ready(log: ChildStderr) -> Result<(), String> {
    let mut lines = BufReader::new(log).lines();
    let mut text = String::new();
    for line in lines.by_ref().map_while(Result::ok) {
        if line.contains(READY) {
            std::thread::spawn(move || lines.for_each(drop));
            return Ok(());
        }
        text.push_str(&line);
        text.push('\n');
    }
    Err(format!("PgBouncer did not start: {text}"))
}
