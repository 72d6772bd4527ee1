//! Runs temporary Postgres servers.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[expect(
    clippy::disallowed_methods,
    reason = "binaries are looked for in PATH, as a shell does"
)]
pub(super) fn find_binaries() -> Option<PathBuf> {
    let on_path = std::env::var("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&on_path).map(|folder| folder.join("initdb"));
    // The folders of Debian, newest version first.
    let versions = (10..40)
        .rev()
        .map(|v| format!("/usr/lib/postgresql/{v}/bin/initdb"));
    let found = on_path.chain(versions.map(PathBuf::from));
    found
        .filter_map(|initdb| initdb.canonicalize().ok())
        .filter_map(|initdb| initdb.parent().map(Path::to_owned))
        .find(|folder| folder.join("pg_ctl").exists())
}

pub(super) fn output(command: &mut Command) -> Result<String, String> {
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

/// Returns the command prefix that runs a program as another user if this process runs as root. Postgres and PgBouncer
/// refuse to run as root.
pub(super) fn run_as_prefix() -> Result<Vec<String>, String> {
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

/// Starts a server with these settings, and with these files in its data folder. It runs until this process ends.
/// Returns its URL.
pub(super) fn start(
    name: &str,
    settings: &[&str],
    files: &[(&str, &str)],
) -> Result<String, String> {
    let (folder, run_as) = create_folder(name)?;
    let binaries = find_binaries().ok_or("PostgreSQL was not found")?;
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
    for (name, content) in files {
        add_file(&run_as, &data.join(name), content)?;
    }
    serve(name, settings)
}

/// Starts a standby that follows the server at this URL. It runs until this process ends. Returns its URL.
pub(super) fn start_standby(name: &str, primary: &str) -> Result<String, String> {
    let (folder, run_as) = create_folder(name)?;
    let binaries = find_binaries().ok_or("PostgreSQL was not found")?;
    let mut copy = command(&run_as, &binaries.join("pg_basebackup"));
    copy.args(["--write-recovery-conf", "--checkpoint", "fast"]);
    copy.args(["--dbname", primary, "--pgdata"]);
    output(copy.arg(folder.join("data")).current_dir(&folder))?;
    serve(name, &[])
}

/// Creates the folder of a server that is stopped when this process ends. Also returns the words before its commands.
fn create_folder(name: &str) -> Result<(PathBuf, Vec<String>), String> {
    let binaries = find_binaries().ok_or("PostgreSQL was not found")?;
    let run_as = run_as_prefix()?;
    let folder = folder_of(name);
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    if let Some(user) = run_as.get(2) {
        output(Command::new("chown").arg(user).arg(&folder))?;
    }
    stop_on_exit(&run_as, &binaries, &folder)?;
    Ok((folder, run_as))
}

/// Starts the server whose data folder is complete, on a free port. Returns its URL.
fn serve(name: &str, settings: &[&str]) -> Result<String, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    let port = listener.local_addr().map_err(|e| e.to_string())?.port();
    drop(listener);
    let mut options = format!(
        "-h 127.0.0.1 -p {port} -k '' -c fsync=off -c max_connections=200 -c max_prepared_transactions=64"
    );
    for setting in settings {
        options.push_str(" -c ");
        options.push_str(setting);
    }
    run_server(name, &["-o", &options, "start"])?;
    Ok(format!("postgres://core@127.0.0.1:{port}/postgres"))
}

/// Simulates a crash of the server, and starts it again with the same settings.
pub(super) fn restart_immediately(name: &str) -> Result<(), String> {
    run_server(name, &["-m", "immediate", "restart"])
}

fn folder_of(name: &str) -> PathBuf {
    let folder = format!("core-test-postgres-{name}-{}", std::process::id());
    std::env::temp_dir().join(folder)
}

/// Runs `pg_ctl` for the server of this name. The server is running when this returns.
fn run_server(name: &str, arguments: &[&str]) -> Result<(), String> {
    let binaries = find_binaries().ok_or("PostgreSQL was not found")?;
    let folder = folder_of(name);
    let mut pg_ctl = command(&run_as_prefix()?, &binaries.join("pg_ctl"));
    pg_ctl.arg("-D").arg(folder.join("data"));
    pg_ctl.arg("-l").arg(folder.join("log"));
    pg_ctl.args(["-w", "-t", "60"]).args(arguments);
    // The server must not inherit the pipes of this process.
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
    Ok(())
}

/// Writes a file that only the server may read.
fn add_file(run_as: &[String], path: &Path, content: &str) -> Result<(), String> {
    std::fs::write(path, content).map_err(|error| error.to_string())?;
    output(Command::new("chmod").arg("600").arg(path))?;
    if let Some(user) = run_as.get(2) {
        output(Command::new("chown").arg(user).arg(path))?;
    }
    Ok(())
}

/// Starts a shell that waits until this process ends, however it ends, and then stops the server.
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
    // This process never closes the pipe; the end of the process does.
    std::mem::forget(shell.stdin.take());
    Ok(())
}
