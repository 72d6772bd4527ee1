//! An empty Postgres database for each test.
//!
//! `CORE_TEST_POSTGRES_URL` names a server to create databases on. Without it a temporary server is started: one for the
//! test process, on a free port of the loopback address, stopped and removed when the process ends.

mod schema;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{Connection, PgConnection};

pub use schema::postgres_schema;
#[cfg(feature = "sqlite")]
pub use schema::sqlite_schema;

/// An empty database; dropped with this value.
#[derive(Debug)]
pub struct TestDatabase {
    /// Its address.
    pub url: String,
    server: String,
    name: String,
}

/// Creates an empty database.
///
/// # Panics
/// When there is no Postgres server and none can be started: a missing database fails a test, it never skips it.
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

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        // A thread of its own, because the test's runtime may be the one that drops this.
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

async fn run(url: &str, statement: String) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement))
        .execute(&mut connection)
        .await?;
    connection.close().await
}

/// The address of another database on the server.
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

#[expect(clippy::disallowed_methods, reason = "the one setting of the tests")]
fn configured_url() -> Option<String> {
    std::env::var("CORE_TEST_POSTGRES_URL")
        .ok()
        .filter(|url| !url.is_empty())
}

fn server() -> Result<String, String> {
    static SERVER: OnceLock<Result<String, String>> = OnceLock::new();
    SERVER
        .get_or_init(|| configured_url().map_or_else(start, Ok))
        .clone()
}

#[expect(
    clippy::disallowed_methods,
    reason = "binaries are looked for in PATH, as a shell does"
)]
fn find_binaries() -> Option<PathBuf> {
    let on_path = std::env::var("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&on_path).map(|folder| folder.join("initdb"));
    // Where Debian keeps them, newest first.
    let versions = (10..40)
        .rev()
        .map(|v| format!("/usr/lib/postgresql/{v}/bin/initdb"));
    let found = on_path.chain(versions.map(PathBuf::from));
    found
        .filter_map(|initdb| initdb.canonicalize().ok())
        .filter_map(|initdb| initdb.parent().map(Path::to_owned))
        .find(|folder| folder.join("pg_ctl").exists())
}

fn output(command: &mut Command) -> Result<String, String> {
    let what = format!("{command:?}");
    let output = command
        .output()
        .map_err(|error| format!("{what}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{what} failed: {stderr}"))
}

/// The command prefix that changes the user, if this is root: Postgres refuses to run as root.
fn unprivileged() -> Result<Vec<String>, String> {
    if output(Command::new("id").arg("-u"))? != "0" {
        return Ok(Vec::new());
    }
    let users = ["postgres", "nobody"];
    let exists = |user: &&&str| output(Command::new("id").arg(user)).is_ok();
    let user = users
        .iter()
        .find(exists)
        .ok_or("no user to run Postgres as")?;
    Ok(["runuser", "-u", user, "--"].map(str::to_owned).to_vec())
}

fn command(run_as: &[String], program: &Path) -> Command {
    match run_as.split_first() {
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
        None => Command::new(program),
    }
}

fn start() -> Result<String, String> {
    let binaries = find_binaries().ok_or("PostgreSQL was not found")?;
    let run_as = unprivileged()?;
    let folder = std::env::temp_dir().join(format!("core-test-postgres-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    if let Some(user) = run_as.get(2) {
        output(Command::new("chown").arg(user).arg(&folder))?;
    }
    stop_on_exit(&run_as, &binaries, &folder)?;
    let data = folder.join("data");
    let mut initdb = command(&run_as, &binaries.join("initdb"));
    initdb.arg("-D").arg(&data);
    initdb.args([
        "-U",
        "core",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C",
        "-N",
    ]);
    output(initdb.current_dir(&folder))?;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    let port = listener.local_addr().map_err(|e| e.to_string())?.port();
    drop(listener);
    let options = format!("-h 127.0.0.1 -p {port} -k '' -c fsync=off -c max_connections=200");
    let mut pg_ctl = command(&run_as, &binaries.join("pg_ctl"));
    pg_ctl
        .arg("-D")
        .arg(&data)
        .args(["-w", "-t", "60", "-o", &options]);
    pg_ctl.arg("-l").arg(folder.join("log")).arg("start");
    // The server must not inherit our pipes.
    let status = pg_ctl
        .current_dir(&folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| error.to_string())?;
    if !status.success() {
        let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        return Err(format!("Postgres did not start: {log}"));
    }
    Ok(format!("postgres://core@127.0.0.1:{port}/postgres"))
}

/// Starts a shell that waits for the end of this process, however it ends, and then stops the server.
fn stop_on_exit(run_as: &[String], binaries: &Path, folder: &Path) -> Result<(), String> {
    let mut stop = run_as.to_vec();
    stop.push(binaries.join("pg_ctl").display().to_string());
    let script = format!(
        "trap '' INT TERM HUP; read _; cd /; {} -D {folder}/data -m immediate stop; rm -rf {folder}",
        stop.join(" "),
        folder = folder.display()
    );
    let mut shell = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    // Never closed by this process: its end closes it.
    std::mem::forget(shell.stdin.take());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::with_database;

    #[test]
    fn with_database_replaces_the_database_of_the_address() {
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
