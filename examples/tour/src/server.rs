//! The server that the tour uses: its own, or a running one.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::failure::Failure;

/// The addresses of the services, and the operator's key.
#[derive(Clone)]
pub(crate) struct Addresses {
    /// The gateway's base URL.
    pub(crate) gateway: String,
    /// The IAM service's base URL.
    pub(crate) iam: String,
    /// The gateway's service key.
    pub(crate) service_key: String,
}

/// A server that the tour starts. Its data is deleted at the end.
#[derive(Debug)]
pub(crate) struct OwnServer {
    child: Child,
    _data: tempfile::TempDir,
}

impl OwnServer {
    /// Starts a server with fresh data on free ports, and waits until it is ready.
    pub(crate) async fn start() -> Result<(Self, Addresses), Failure> {
        let data = tempfile::tempdir().map_err(Failure::from)?;
        let service_key = format!("service-key-of-the-tour-{}", std::process::id());
        let log = data.path().join("server.log");
        let mut child = Command::new(binary().await?)
            .args(["--base-port", "0", "--data"])
            .arg(data.path())
            .env("AUTH_API_KEY", &service_key)
            .env("RUST_LOG", "warn")
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log)?)
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| Failure(format!("the server could not be started: {e}")))?;
        let stdout = child
            .stdout
            .take()
            .ok_or_else(|| Failure("the server has no output".to_owned()))?;
        let ready = ready_line(BufReader::new(stdout))
            .await
            .map_err(|failure| {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                Failure(format!("{failure}\n{said}"))
            })?;
        let address = |name: &str| -> Result<String, Failure> {
            let url = ready["addresses"][name].as_str();
            url.map(str::to_owned)
                .ok_or_else(|| Failure(format!("the server reported no address for {name}")))
        };
        let addresses = Addresses {
            gateway: address("gateway")?,
            iam: address("iam")?,
            service_key,
        };
        Ok((Self { child, _data: data }, addresses))
    }

    /// Stops the server.
    pub(crate) async fn stop(mut self) -> Result<(), Failure> {
        self.child.kill().await.map_err(Failure::from)
    }
}

/// Reads lines until the one that begins with `ready`. Returns the JSON after that word.
async fn ready_line(mut output: BufReader<tokio::process::ChildStdout>) -> Result<Value, Failure> {
    let mut line = String::new();
    while output.read_line(&mut line).await.map_err(Failure::from)? > 0 {
        if let Some(json) = line.trim().strip_prefix("ready ") {
            let ready =
                serde_json::from_str(json).map_err(|e| Failure(format!("the ready line: {e}")))?;
            // Keep reading, so that the server never blocks on a full pipe.
            tokio::spawn(async move {
                let mut rest = String::new();
                while output.read_line(&mut rest).await.is_ok_and(|n| n > 0) {
                    rest.clear();
                }
            });
            return Ok(ready);
        }
        line.clear();
    }
    Err(Failure("the server ended before it was ready".to_owned()))
}

/// Returns the path of the server's binary, which is next to this one. Builds it with cargo if cargo runs the tour.
async fn binary() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().map_err(Failure::from)?;
    let folder = own.parent().map(Path::to_owned).unwrap_or_default();
    let binary = folder.join(format!("core-server{}", std::env::consts::EXE_SUFFIX));
    if let Some(cargo) = std::env::var_os("CARGO") {
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "-p", "core-server"]);
        if folder.file_name().is_some_and(|name| name == "release") {
            build.arg("--release");
        }
        let status = build.status().await.map_err(Failure::from)?;
        if !status.success() {
            return Err(Failure("core-server could not be built".to_owned()));
        }
    }
    if binary.is_file() {
        return Ok(binary);
    }
    Err(Failure(format!(
        "{} does not exist; run the tour with cargo",
        binary.display()
    )))
}
