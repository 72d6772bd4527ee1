//! An S3 server in a process of its own, for tests: moto, in Python.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use core_domain::kernel::Secret;

use crate::{S3Config, S3Credentials};

/// The program of the server.
const SERVER: &str = include_str!("server.py");

/// The environment variable with the folder in which `pip install --target` has installed moto.
const MODULES: &str = "CORE_TEST_MOTO";

/// The environment variable that names a Python interpreter.
const PYTHON: &str = "CORE_TEST_PYTHON";

/// The id of the access key of every server.
pub const ACCESS_KEY_ID: &str = "AKIACORETESTS0000000";

/// The secret of the access key of every server.
pub const SECRET_ACCESS_KEY: &str = "sesame/Open+Sesame/tests";

/// The bucket that every server has at its start.
pub const BUCKET: &str = "uploads";

/// A server on a free port of the loopback address. It verifies the signatures of requests, and stores objects in its
/// memory. It ends when this value is dropped, and when this process ends, however that happens.
#[derive(Debug)]
pub struct S3Server {
    port: u16,
    /// The files of the certificate and its key; `None` without TLS.
    tls: Option<[PathBuf; 2]>,
    /// `None` while the server is stopped.
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    process: Child,
    commands: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl S3Server {
    /// Starts a server with the bucket [`BUCKET`].
    ///
    /// # Errors
    /// If there is no Python with moto.
    pub async fn start() -> io::Result<Self> {
        Self::start_with(None).await
    }

    /// Starts a server with TLS and the bucket [`BUCKET`]. The files are the certificate and its key, as PEM.
    ///
    /// # Errors
    /// If there is no Python with moto, or a file is invalid.
    pub async fn start_with_tls(certificate: PathBuf, key: PathBuf) -> io::Result<Self> {
        Self::start_with(Some([certificate, key])).await
    }

    async fn start_with(tls: Option<[PathBuf; 2]>) -> io::Result<Self> {
        blocking(move || {
            let (port, running) = start(0, tls.as_ref())?;
            Ok(Self {
                port,
                tls,
                running: Mutex::new(Some(running)),
            })
        })
        .await
    }

    /// Returns the URL of the server.
    #[must_use]
    pub fn endpoint(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// Returns the URL of a bucket and a prefix, for example `uploads/core`.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("s3://{path}?endpoint={}", self.endpoint())
    }

    /// Returns the valid configuration for a bucket and a prefix, for example `uploads/core`.
    #[must_use]
    pub fn config(&self, path: &str) -> S3Config {
        S3Config::new(self.url(path), credentials())
    }

    /// Lets the next requests fail with the status 503.
    ///
    /// # Errors
    /// If the server is stopped.
    pub fn fail(&self, requests: u32) -> io::Result<()> {
        self.execute(&format!("fail {requests}")).map(drop)
    }

    /// Lets the next downloads end after half of their content.
    ///
    /// # Errors
    /// If the server is stopped.
    pub fn cut(&self, downloads: u32) -> io::Result<()> {
        self.execute(&format!("cut {downloads}")).map(drop)
    }

    /// Returns the number of downloads that are still to be cut.
    ///
    /// # Errors
    /// If the server is stopped.
    pub fn cuts_left(&self) -> io::Result<String> {
        self.execute("cuts-left")
    }

    /// Adds objects to [`BUCKET`], whose keys are the prefix, a hyphen and a number from 0.
    ///
    /// # Errors
    /// If the server is stopped.
    pub fn fill(&self, prefix: &str, objects: usize) -> io::Result<()> {
        let command = format!("fill {BUCKET} {prefix} {objects}");
        self.execute(&command).map(drop)
    }

    /// Creates a role, and returns its temporary credentials as JSON, in the form in which the services of a machine
    /// return them.
    ///
    /// # Errors
    /// If the server is stopped.
    pub fn role_credentials(&self) -> io::Result<String> {
        self.execute("role")
    }

    /// Sets whether parts of multipart uploads are refused.
    ///
    /// # Errors
    /// If the server is stopped.
    pub fn refuse_parts(&self, refuses: bool) -> io::Result<()> {
        self.execute(&format!("refuse-parts {refuses}")).map(drop)
    }

    /// Returns the keys of all objects in [`BUCKET`], sorted.
    ///
    /// # Errors
    /// If the server is stopped.
    pub fn keys(&self) -> io::Result<Vec<String>> {
        let keys = self.execute(&format!("keys {BUCKET}"))?;
        Ok(keys.split_whitespace().map(str::to_owned).collect())
    }

    /// Returns the number of incomplete multipart uploads in [`BUCKET`].
    ///
    /// # Errors
    /// If the server is stopped.
    pub fn incomplete_uploads(&self) -> io::Result<usize> {
        let count = self.execute(&format!("multiparts {BUCKET}"))?;
        count.parse().map_err(io::Error::other)
    }

    /// Kills the server, and waits until it has ended. All of its data is lost.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn stop(&self) -> io::Result<()> {
        self.running().take().map_or(Ok(()), end)
    }

    /// Starts the server again on the same port, after [`S3Server::stop`].
    ///
    /// # Errors
    /// If the server does not start.
    pub async fn start_again(&self) -> io::Result<()> {
        let (port, tls) = (self.port, self.tls.clone());
        let (_, running) = blocking(move || start(port, tls.as_ref())).await?;
        *self.running() = Some(running);
        Ok(())
    }

    fn execute(&self, command: &str) -> io::Result<String> {
        let mut running = self.running();
        let running = running.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        running.execute(command)
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        // No caller is left to receive the error.
        let _ = self.stop();
    }
}

impl Running {
    fn execute(&mut self, command: &str) -> io::Result<String> {
        writeln!(self.commands, "{command}")?;
        self.commands.flush()?;
        self.read_line()
    }

    fn read_line(&mut self) -> io::Result<String> {
        let ended = || io::Error::other("the S3 server has ended; see its errors above");
        self.lines.next().ok_or_else(ended)?
    }
}

/// Returns the credentials that every server accepts.
#[must_use]
pub fn credentials() -> S3Credentials {
    S3Credentials::Key {
        id: ACCESS_KEY_ID.to_owned(),
        secret: Secret::new(SECRET_ACCESS_KEY),
        session_token: None,
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let joined = tokio::task::spawn_blocking(work).await;
    joined.map_err(io::Error::other)?
}

/// Starts a server, and waits until it accepts connections. The port 0 means a free one.
fn start(port: u16, tls: Option<&[PathBuf; 2]>) -> io::Result<(u16, Running)> {
    let mut process = Command::new(python()?)
        .args(["-c", SERVER, &port.to_string()])
        .args([ACCESS_KEY_ID, SECRET_ACCESS_KEY])
        .args(tls.into_iter().flatten())
        .envs(modules().map(|folder| ("PYTHONPATH", folder)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let commands = process.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let output = process.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut running = Running {
        process,
        commands,
        lines: BufReader::new(output).lines(),
    };
    let port = running.read_line()?.parse().map_err(io::Error::other)?;
    running.execute(&format!("bucket {BUCKET}"))?;
    Ok((port, running))
}

fn end(running: Running) -> io::Result<()> {
    let Running {
        mut process,
        commands,
        lines: _lines,
    } = running;
    process.kill()?;
    drop(commands);
    process.wait().map(drop)
}

fn modules() -> Option<OsString> {
    std::env::var_os(MODULES)
}

/// Returns a Python interpreter that has moto.
fn python() -> io::Result<PathBuf> {
    let named = std::env::var_os(PYTHON).map(PathBuf::from);
    let usual = ["python3", "/usr/bin/python3"].map(PathBuf::from);
    let has_moto = |python: &PathBuf| {
        let mut command = Command::new(python);
        // Older versions compute the signatures of some requests in another way.
        let code = "from importlib.metadata import version as v; v('flask'); \
                    raise SystemExit([int(n) for n in v('moto').split('.')] < [5, 2, 5])";
        command.args(["-c", code]);
        command.envs(modules().map(|folder| ("PYTHONPATH", folder)));
        let tried = command.stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    };
    named.into_iter().chain(usual).find(has_moto).ok_or_else(|| {
        io::Error::other(
            "no Python with moto 5.2.5, the S3 server of these tests: pip install 'moto[s3,server]==5.2.5', and name that Python in \
             CORE_TEST_PYTHON, or its folder of modules in CORE_TEST_MOTO",
        )
    })
}
