//! A real `core-server` process, which is called over HTTP.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::OnceLock;

use bytes::Bytes;
use core_http::kernel::testing::Answer;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::call::{answer, whole_answer};
use super::log::Log;
use super::suites::Installation;
use super::{Call, SERVICE_KEY};

/// The path of the server's binary.
fn binary() -> PathBuf {
    build_binary("core-server")
}

/// Returns the path of the binary with this name. Cargo builds binaries of other packages only on request, so this runs
/// cargo once, for all targets, so that the output of `tests/run` is reused.
pub(crate) fn build_binary(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let status = core_tests::cargo()
            .args([
                "build",
                "--quiet",
                "--locked",
                "--workspace",
                "--all-features",
                "--all-targets",
            ])
            .status()
            .unwrap();
        assert!(status.success(), "the workspace could not be built");
        // .../target/debug/deps/it-hash -> .../target/debug
        let own = std::env::current_exe().unwrap();
        own.parent().unwrap().parent().unwrap().to_owned()
    });
    folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// Runs a command of the server's binary to its end, with this text on its standard input.
pub(crate) async fn run(data: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(binary())
        .arg("--data")
        .arg(data)
        .args(arguments)
        .env("RUST_LOG", "error")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).await.unwrap();
    drop(stdin);
    child.wait_with_output().await.unwrap()
}

/// Runs a command of the server's binary, and kills it after a line of its standard error that starts with `text`.
pub(crate) async fn run_until(data: &Path, arguments: &[&str], text: &str) {
    let mut child = Command::new(binary())
        .arg("--data")
        .arg(data)
        .args(arguments)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.starts_with(text) {
            child.kill().await.unwrap();
            return;
        }
    }
    panic!("the command ended without {text}");
}

/// Returns the output of `check-config`, including its log.
pub(crate) async fn checked_configuration(
    data: &Path,
    arguments: &[&str],
    environment: &[(&str, String)],
) -> String {
    let mut command = Command::new(binary());
    command.arg("--data").arg(data).args(arguments);
    command.arg("check-config");
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let shown = command.output().await.unwrap();
    assert!(shown.status.success(), "{shown:?}");
    let [out, log] = [shown.stdout, shown.stderr].map(|said| String::from_utf8(said).unwrap());
    format!("{out}{log}")
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    client: Client<HttpConnector, Full<Bytes>>,
    addresses: Value,
    log: Log,
    _output: Lines<BufReader<ChildStdout>>,
}

impl Server {
    /// Starts a server on free ports and waits for its ready line.
    pub(crate) async fn start(data: &Path, arguments: &[&str]) -> Self {
        let environment = [
            ("AUTH_API_KEY", SERVICE_KEY.to_owned()),
            ("RUST_LOG", "error".to_owned()),
        ];
        Self::start_with(data, arguments, &environment).await
    }

    /// Starts a server with this environment.
    pub(crate) async fn start_with(
        data: &Path,
        arguments: &[&str],
        environment: &[(&str, String)],
    ) -> Self {
        Self::start_by(Command::new(binary()), data, arguments, environment).await
    }

    /// Starts a server through a program such as `env`, which becomes the server.
    pub(crate) async fn start_under(
        program: &[&str],
        data: &Path,
        arguments: &[&str],
        environment: &[(&str, String)],
    ) -> Self {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg(binary());
        Self::start_by(command, data, arguments, environment).await
    }

    async fn start_by(
        mut command: Command,
        data: &Path,
        arguments: &[&str],
        environment: &[(&str, String)],
    ) -> Self {
        let mut child = command
            .args(["--base-port", "0", "--data"])
            .arg(data)
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let log = Log::of(child.stderr.take().unwrap());
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let addresses = loop {
            let Some(line) = output.next_line().await.unwrap() else {
                let log = log.whole().await;
                panic!("the server ended before it was ready: {log}")
            };
            if let Some(json) = line.strip_prefix("ready ") {
                break serde_json::from_str::<Value>(json).unwrap()["addresses"].clone();
            }
        };
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self {
            child,
            client,
            addresses,
            log,
            _output: output,
        }
    }

    /// The log of the process.
    pub(crate) const fn log(&self) -> &Log {
        &self.log
    }

    /// The base URL of a service.
    pub(crate) fn url(&self, service: &str) -> String {
        self.addresses[service].as_str().unwrap().to_owned()
    }

    /// The peak memory use of the process, in bytes.
    #[cfg(target_os = "linux")]
    pub(crate) fn peak_memory(&self) -> u64 {
        let pid = self.child.id().unwrap();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
        kib.unwrap().trim().parse::<u64>().unwrap() * 1024
    }

    /// The id of the process.
    pub(crate) fn pid(&self) -> String {
        self.child.id().unwrap().to_string()
    }

    /// Sends the process a signal by its name: `STOP`, `CONT`, ..
    pub(crate) async fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        let sent = kill.arg(format!("-{name}")).arg(self.pid()).status();
        assert!(sent.await.unwrap().success());
    }

    /// Sends a call. Returns `None` if the process ends before it has responded.
    pub(crate) async fn try_send(&self, service: &str, call: Call) -> Option<Answer> {
        let request = call.at(&self.url(service));
        let response = self.client.request(request).await.ok()?;
        whole_answer(response).await.ok()
    }

    /// Kills the process, as `kill -9` does.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Waits until the process has ended after a signal. Returns its exit status.
    pub(crate) async fn wait_for_exit(mut self) -> std::process::ExitStatus {
        self.child.wait().await.unwrap()
    }

    /// Asks the process to end (SIGTERM), and returns its exit status.
    pub(crate) async fn terminate(self) -> std::process::ExitStatus {
        self.terminate_with_log().await.0
    }

    /// Asks the process to end (SIGTERM). Returns its exit status and its complete log.
    pub(crate) async fn terminate_with_log(mut self) -> (std::process::ExitStatus, String) {
        self.signal("TERM").await;
        let status = self.child.wait().await.unwrap();
        (status, self.log.whole().await)
    }
}

impl Installation for Server {
    fn origin(&self) -> String {
        self.url("iam")
    }

    async fn send(&self, service: &str, call: Call) -> Answer {
        let request = call.at(&self.url(service));
        answer(self.client.request(request).await.unwrap()).await
    }
}
