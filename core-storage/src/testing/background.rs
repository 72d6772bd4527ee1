//! Programs that run in the background of a test, as a user that is not root.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::server::{output, run_as_prefix};

/// A temporary folder that belongs to the user of the programs. It is removed by the program that ends last.
pub(super) fn folder(name: &str) -> Result<PathBuf, String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::SeqCst);
    let name = format!("core-test-{name}-{}-{count}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    give_away(&folder)?;
    Ok(folder)
}

/// Gives a file or folder to the user of the programs.
pub(super) fn give_away(path: &Path) -> Result<(), String> {
    if let Some(user) = run_as_prefix()?.get(2) {
        output(Command::new("chown").args(["-R", user]).arg(path))?;
    }
    Ok(())
}

/// Returns a free port of the loopback address.
pub(super) fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    Ok(address.port())
}

#[expect(
    clippy::disallowed_methods,
    reason = "programs are looked for in PATH, as a shell does"
)]
/// Returns the path of a program. `package` is the Debian package that contains it.
pub(super) fn find_program(name: &str, package: &str) -> Result<PathBuf, String> {
    let on_path = std::env::var("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&on_path).collect();
    let folders = folders.into_iter().chain([PathBuf::from("/usr/sbin")]);
    let mut programs = folders.map(|folder| folder.join(name));
    let found = programs.find(|program| program.is_file());
    found.ok_or_else(|| {
        format!("{name} was not found. Install it (Debian: apt-get install {package})")
    })
}

/// A program that runs until this value is dropped or this process ends.
#[derive(Debug)]
pub(super) struct Background {
    /// A shell that ends the program once its standard input is closed.
    shell: Child,
}

impl Background {
    /// Starts a program. `run` and `stop` are commands of a shell. `stop` runs as the user of this process
    /// when the program has to end, and `$!` is its process.
    pub(super) fn start(
        run: &str,
        environment: &[(&str, String)],
        stop: &str,
    ) -> Result<Self, String> {
        let run_as = run_as_prefix()?.join(" ");
        let script =
            format!("trap '' INT HUP; cd /; {run_as} {run} & read _; {stop}; wait; exit 0");
        let shell = Command::new("sh")
            .args(["-c", &script])
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        Ok(Self { shell })
    }

    /// Returns the log of the program, which must be read.
    pub(super) fn log(&mut self) -> Result<ChildStderr, String> {
        let log = self.shell.stderr.take();
        log.ok_or_else(|| "the log is already read".to_owned())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
