//! A Postgres database for a test, made for it alone.
//!
//! `CORE_TEST_POSTGRES_URL` names a server to make databases on. Without it a throw-away server is started: one for the
//! test process, on a private port of the loopback address, stopped and removed when the process ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{Connection, PgConnection};

/// An empty database; dropped with this value.
#[derive(Debug)]
pub struct TestDatabase {
    /// Where it is.
    pub url: String,
    server: String,
    name: String,
}

/// Makes an empty database.
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
        panic!("no database can be made on {server}: {error}");
    }
    let url = on_server(&server, &name);
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

/// The address of another database on the same server.
fn on_server(url: &str, database: &str) -> String {
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
fn given() -> Option<String> {
    std::env::var("CORE_TEST_POSTGRES_URL")
        .ok()
        .filter(|url| !url.is_empty())
}

fn server() -> Result<String, String> {
    static SERVER: OnceLock<Result<String, String>> = OnceLock::new();
    SERVER
        .get_or_init(|| given().map_or_else(start, Ok))
        .clone()
}

#[expect(
    clippy::disallowed_methods,
    reason = "programs are looked for as a shell does"
)]
fn programs() -> Option<PathBuf> {
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
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{what} failed: {said}"))
}

/// The words before a command that must not run as root: Postgres refuses to.
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

fn command(before: &[String], program: &Path) -> Command {
    match before.split_first() {
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
        None => Command::new(program),
    }
}

fn start() -> Result<String, String> {
    let programs = programs().ok_or("PostgreSQL was not found")?;
    let before = unprivileged()?;
    let folder = std::env::temp_dir().join(format!("core-test-postgres-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    if let Some(user) = before.get(2) {
        output(Command::new("chown").arg(user).arg(&folder))?;
    }
    stop_at_the_end(&before, &programs, &folder)?;
    let data = folder.join("data");
    let mut initdb = command(&before, &programs.join("initdb"));
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
    let mut pg_ctl = command(&before, &programs.join("pg_ctl"));
    pg_ctl
        .arg("-D")
        .arg(&data)
        .args(["-w", "-t", "60", "-o", &options]);
    pg_ctl.arg("-l").arg(folder.join("log")).arg("start");
    // The server must not keep our pipes open.
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

/// Leaves behind a shell that waits for the end of this process, however it ends, and then stops the server.
fn stop_at_the_end(before: &[String], programs: &Path, folder: &Path) -> Result<(), String> {
    let mut stop = before.to_vec();
    stop.push(programs.join("pg_ctl").display().to_string());
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
    // Never closed by us: the end of the process closes it.
    std::mem::forget(shell.stdin.take());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::on_server;

    #[test]
    fn a_database_takes_the_place_of_the_one_in_the_address() {
        let cases = [
            ("postgres://a:b@h:1/postgres", "postgres://a:b@h:1/x"),
            ("postgres://h", "postgres://h/x"),
            (
                "postgres://h/y?sslmode=disable",
                "postgres://h/x?sslmode=disable",
            ),
        ];
        for (url, expected) in cases {
            assert_eq!(on_server(url, "x"), expected);
        }
    }
}
