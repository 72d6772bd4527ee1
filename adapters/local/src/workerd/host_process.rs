//! The worker host process, from the server's side. The first request for a worker starts the process. If the process
//! has ended, the next request starts it again.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener as StdListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use core_domain::port::Cause;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::Workerd;
use super::forward::{self, WorkerBody};
use super::host_logs::receive_logs;
use super::host_suspensions::serve_suspensions;
use super::host_wire::{FORGET, HostStart, REFUSAL, WORKER, read_refusal};
use super::process::{no_progress, with_progress};
use super::refusal::Refusal;
use crate::config::{LocalConfig, WorkerHostCommand};
use crate::error::{LocalError, Result};
use crate::host::SiteBody;
use crate::logs::ConsoleSink;

/// Time that the process may take to respond in addition to the timeout of the worker.
const RESPONSE_MARGIN: Duration = Duration::from_secs(10);
/// Maximum time to wait for the process when it is stopped. The process itself waits two seconds for its workers.
const STOP_TIME: Duration = Duration::from_secs(4);
/// Maximum time to wait for the last console lines of an ended process.
const LOG_TIME: Duration = Duration::from_millis(500);
/// If a process ran at least this long, its end does not count as a repeated failure.
const MIN_STABLE_RUNTIME: Duration = Duration::from_secs(60);
/// Maximum pause before the process is started again.
const MAX_PAUSE: Duration = Duration::from_secs(30);

type SendError = Box<dyn std::error::Error + Send + Sync>;

/// The process that hosts the workers of a provider. It ends when this value is dropped.
#[derive(Debug)]
pub(super) struct WorkerHost {
    command: WorkerHostCommand,
    config: Arc<LocalConfig>,
    workerd: Workerd,
    /// Receives what the workers write to their consoles.
    console: Arc<dyn ConsoleSink>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    process: Option<Arc<HostProcess>>,
    /// Number of consecutive times that the process ended soon after its start.
    failures: u32,
    /// The earliest time of the next start; `None` if it can start immediately.
    not_before: Option<Instant>,
    is_closed: bool,
}

#[derive(Debug)]
struct HostProcess {
    socket: PathBuf,
    started_at: Instant,
    has_ended: watch::Receiver<bool>,
    suspensions: JoinHandle<()>,
    _lifeline: ChildStdin,
    _sockets: tempfile::TempDir,
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        self.suspensions.abort();
    }
}

impl WorkerHost {
    pub(super) fn new(
        command: WorkerHostCommand,
        config: Arc<LocalConfig>,
        workerd: Workerd,
        console: Arc<dyn ConsoleSink>,
    ) -> Self {
        Self {
            command,
            config,
            workerd,
            console,
            state: Mutex::default(),
        }
    }

    /// Sends a request to a worker.
    pub(super) async fn send(
        &self,
        name: &str,
        mut request: Request<WorkerBody>,
    ) -> Result<Response<SiteBody>, Refusal> {
        let process = self.running().await?;
        set_worker_header(request.headers_mut(), name);
        let (request, progress) = with_progress(request);
        let timeout = self.config.workers.answer_timeout + RESPONSE_MARGIN;
        let sent = tokio::select! {
            () = no_progress(progress, timeout) => return Err(Refusal::Silent),
            sent = exchange(&process.socket, request) => sent,
        };
        let response = sent.map_err(|error| {
            let cause = Cause::new(LocalError::Io(io::Error::other(error)));
            tracing::warn!(%cause, worker = name, "the worker host process did not respond");
            Refusal::Ended("the worker host process has ended".to_owned())
        })?;
        if response.headers().contains_key(REFUSAL) {
            return Err(read_refusal(response).await);
        }
        Ok(forward::answer(response).map(|body| body.map_err(io::Error::other).boxed()))
    }

    /// Stops a worker that was deleted.
    pub(super) async fn stop_worker(&self, name: &str) {
        let Some(process) = self.state.lock().await.process.clone() else {
            return;
        };
        let body = Empty::new().map_err(|never| match never {});
        let mut request = Request::new(body.boxed_unsync());
        set_worker_header(request.headers_mut(), name);
        let mark = HeaderValue::from_static("1");
        request.headers_mut().insert(FORGET, mark);
        // An ended process hosts no workers.
        let _ = tokio::time::timeout(RESPONSE_MARGIN, exchange(&process.socket, request)).await;
    }

    /// Stops the process. It is never started again.
    pub(super) async fn stop(&self) {
        let mut state = self.state.lock().await;
        state.is_closed = true;
        let Some(process) = state.process.take() else {
            return;
        };
        drop(state);
        let mut has_ended = process.has_ended.clone();
        drop(process);
        let _ = tokio::time::timeout(STOP_TIME, has_ended.wait_for(|ended| *ended)).await;
    }

    async fn running(&self) -> Result<Arc<HostProcess>, Refusal> {
        let mut state = self.state.lock().await;
        if state.is_closed {
            return Err(Refusal::Busy);
        }
        if let Some(process) = &state.process {
            if !*process.has_ended.borrow() {
                return Ok(Arc::clone(process));
            }
            let is_steady = process.started_at.elapsed() >= MIN_STABLE_RUNTIME;
            state.failures = if is_steady { 0 } else { state.failures + 1 };
            state.not_before = Some(Instant::now() + restart_delay(state.failures));
            state.process = None;
        }
        if state.not_before.is_some_and(|until| Instant::now() < until) {
            return Err(Refusal::Busy);
        }
        let started = self.start().await;
        let process = started.map_err(|error| {
            let cause = Cause::new(error);
            tracing::error!(%cause, "failed to start the worker host process");
            Refusal::Failed
        })?;
        let process = Arc::new(process);
        state.process = Some(Arc::clone(&process));
        Ok(process)
    }

    async fn start(&self) -> Result<HostProcess> {
        let private = std::fs::Permissions::from_mode(0o700);
        let mut sockets = tempfile::Builder::new();
        let sockets = sockets
            .prefix("core-worker-host-")
            .permissions(private)
            .tempdir()?;
        let socket = sockets.path().join("requests");
        let asked = sockets.path().join("suspensions");
        let logs = sockets.path().join("logs");
        let listener = StdListener::bind(&socket)?;
        let suspensions =
            serve_suspensions(UnixListener::bind(&asked)?, self.config.suspensions.clone());
        let logs_received = receive_logs(UnixListener::bind(&logs)?, Arc::clone(&self.console));
        let reachable = self.config.reachable.iter().map(ToString::to_string);
        let start = HostStart {
            root: std::path::absolute(&self.config.root)?,
            workerd: self.workerd.program().to_owned(),
            options: self.config.workers,
            reachable: reachable.collect(),
            suspensions: asked,
            logs,
        };
        let mut line = serde_json::to_vec(&start).map_err(io::Error::other)?;
        line.push(b'\n');

        let mut child = Command::new(&self.command.program)
            .args(&self.command.args)
            // The process must not inherit the secrets of the server.
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("TMPDIR", std::env::temp_dir())
            .envs(self.command.env.iter().cloned())
            // Ctrl-C reaches only the server, which completes running responses first.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(OwnedFd::from(listener))
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()?;
        let mut lifeline = child
            .stdin
            .take()
            .ok_or_else(|| io::Error::other("the process has no pipe"))?;
        lifeline.write_all(&line).await?;
        tracing::info!(pid = child.id(), "started the worker host process");
        let (ended, has_ended) = watch::channel(false);
        tokio::spawn(watch_exit(child, tokio::spawn(logs_received), ended));
        Ok(HostProcess {
            socket,
            started_at: Instant::now(),
            has_ended,
            suspensions: tokio::spawn(suspensions),
            _lifeline: lifeline,
            _sockets: sockets,
        })
    }
}

/// Sets the header that names the worker, and removes the values that a visitor sent.
fn set_worker_header(headers: &mut http::HeaderMap, name: &str) {
    headers.remove(FORGET);
    match HeaderValue::from_str(name) {
        Ok(name) => drop(headers.insert(WORKER, name)),
        // Names that are not valid in a header belong to no worker.
        Err(_) => drop(headers.remove(WORKER)),
    }
}

async fn exchange(
    socket: &std::path::Path,
    request: Request<WorkerBody>,
) -> Result<Response<Incoming>, SendError> {
    let stream = UnixStream::connect(socket).await?;
    let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await?;
    // The task ends when the response has been read or dropped.
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?)
}

/// Waits for the end of the process, and for its last console lines.
async fn watch_exit(mut child: Child, mut logs: JoinHandle<()>, ended: watch::Sender<bool>) {
    match child.wait().await {
        Ok(status) => tracing::warn!(%status, "the worker host process has ended"),
        Err(error) => tracing::warn!(%error, "failed to wait for the worker host process"),
    }
    // A process that ended early has no connection for lines.
    let _ = tokio::time::timeout(LOG_TIME, &mut logs).await;
    logs.abort();
    ended.send_replace(true);
}

/// Returns the pause before the next start after this number of consecutive failures. The first restart is immediate.
fn restart_delay(failures: u32) -> Duration {
    if failures <= 1 {
        return Duration::ZERO;
    }
    let doubled = Duration::from_millis(100).saturating_mul(1 << failures.min(16));
    doubled.min(MAX_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restart_pause_grows_with_failures() {
        assert_eq!(
            (restart_delay(0), restart_delay(1)),
            (Duration::ZERO, Duration::ZERO)
        );
        assert!(restart_delay(2) < restart_delay(3));
        assert_eq!(restart_delay(40), MAX_PAUSE);
    }

    #[test]
    fn visitors_cannot_choose_the_worker() {
        let mut headers = http::HeaderMap::new();
        headers.insert(FORGET, HeaderValue::from_static("1"));
        headers.append(WORKER, HeaderValue::from_static("other"));
        headers.append(WORKER, HeaderValue::from_static("another"));
        set_worker_header(&mut headers, "acme-api");
        let workers: Vec<_> = headers.get_all(WORKER).iter().collect();
        assert_eq!(workers, ["acme-api"]);
        assert!(!headers.contains_key(FORGET));
    }
}
