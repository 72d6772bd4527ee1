//! The process of one running worker.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::bindings::Bindings;
use super::capnp::{self, Network, SOCKET};
use super::forward::{self, WorkerBody};
use super::launch::Launch;
use super::log::Tail;
use super::program::Workerd;
use crate::data_dir::{DataDir, StagingPath};
use crate::error::Result;
use crate::host::SiteBody;
use crate::logs::ConsoleSink;

const SETTINGS: &str = "worker.capnp";

/// A shell script that starts the program with its listening socket. It stops the program when standard input closes:
/// that is a pipe that the provider holds open, so it closes when the provider ends for any reason. When the program
/// has ended, the script deletes the folder of the sockets. Standard output is the socket; all output goes to standard
/// error.
const GUARD: &str = r#"
folder=$1
shift
exec 3<&0 </dev/null 4<&1 1>&2
"$@" 3<&- &
child=$!
{ read -r _ <&3; kill -TERM $child; sleep 1; kill -KILL $child; } >/dev/null 2>&1 4<&- &
guard=$!
exec 3<&- 4<&-
wait $child
status=$?
kill $guard 2>/dev/null
rm -rf "$folder"
exit $status
"#;

/// The response to a call that exceeds the number of connections.
const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 429 Too many calls to bindings at a time\r\n\
content-length: 0\r\nconnection: close\r\n\r\n";

/// Maximum number of buffered bytes of a request head, and of an unread response, per connection of a binding.
const MAX_BUFFER: usize = 64 * 1024;

/// Maximum time to wait for the reason when a connection ends early.
const REASON_TIME: Duration = Duration::from_secs(1);

/// The process of one running worker. Dropping it stops the process. Every request holds a clone until its response has
/// been read.
#[derive(Debug)]
pub(super) struct Process {
    /// The identity of what the process runs, see [`Launch`].
    pub(super) identity: String,
    pub(super) started_at: Instant,
    socket: PathBuf,
    last_used: Mutex<Instant>,
    has_answered: AtomicBool,
    /// The reason for the end of the process; `None` while it runs.
    end: watch::Receiver<Option<String>>,
    bindings: JoinHandle<()>,
    _lifeline: ChildStdin,
    _settings: StagingPath,
    _sockets: tempfile::TempDir,
}

/// The reason for which a request has no response.
#[derive(Debug)]
pub(super) enum SendError {
    /// The process has ended; contains the reason.
    Ended(String),
    /// No response started in time.
    Silent,
    /// The connection broke, but the process still runs.
    Broken(Box<dyn std::error::Error + Send + Sync>),
}

impl Process {
    /// Starts a process. Requests can be sent immediately: they wait until the process listens or has ended.
    pub(super) fn start(
        workerd: &Workerd,
        launch: &Launch,
        bindings: Bindings,
        data: &DataDir,
        network: Network<'_>,
        console: Arc<dyn ConsoleSink>,
    ) -> Result<Self> {
        let private = std::fs::Permissions::from_mode(0o700);
        let mut sockets = tempfile::Builder::new();
        let sockets = sockets
            .prefix("core-worker-")
            .permissions(private)
            .tempdir()?;
        let (socket, asked) = (sockets.path().join("http"), sockets.path().join("bindings"));
        let listener = StdListener::bind(&socket)?;
        let asked_listener = UnixListener::bind(&asked)?;

        let settings = data.stage_dir()?;
        let address = format!("unix:{}", asked.display());
        let text = capnp::worker_config(launch, &address, network);
        settings.write(SETTINGS, text.as_bytes())?;

        let mut child = Command::new("/bin/sh")
            .args(["-c", GUARD, "sh"])
            .arg(sockets.path())
            .arg(workerd.program())
            .args(["serve", SETTINGS, "--socket-fd", &format!("{SOCKET}=4")])
            // Prints the stacks of uncaught exceptions.
            .arg("--verbose")
            .current_dir(settings.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            // Ctrl-C reaches only the provider, which completes running responses first.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(OwnedFd::from(listener))
            .stderr(Stdio::piped())
            .spawn()?;
        let (Some(lifeline), Some(output)) = (child.stdin.take(), child.stderr.take()) else {
            return Err(io::Error::other("the process has no pipes").into());
        };
        let (ended, end) = watch::channel(None);
        let folders = [sockets.path(), settings.path()];
        let tail = tail_of(launch, workerd, &folders, console);
        tokio::spawn(watch_exit(launch.name.clone(), child, output, tail, ended));
        tracing::info!(worker = launch.name, "started a worker");
        Ok(Self {
            identity: launch.identity.clone(),
            started_at: Instant::now(),
            socket,
            last_used: Mutex::new(Instant::now()),
            has_answered: AtomicBool::new(false),
            end,
            bindings: tokio::spawn(answer_bindings(asked_listener, Arc::new(bindings))),
            _lifeline: lifeline,
            _settings: settings,
            _sockets: sockets,
        })
    }

    /// Returns the reason for the end of the process; `None` while it runs.
    pub(super) fn end_reason(&self) -> Option<String> {
        self.end.borrow().clone()
    }

    /// Returns a receiver that is notified when the process ends. It does not keep the process running.
    pub(super) fn watch_end(&self) -> watch::Receiver<Option<String>> {
        self.end.clone()
    }

    /// Returns whether the process has ever responded. A process that ends before that was unable to start.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// Records that the process is used now.
    pub(super) fn record_use(&self) {
        *self
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Returns the time of the last use.
    pub(super) fn last_used(&self) -> Instant {
        *self
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request. Both bodies are streamed, and the response keeps the process running until it has been read.
    /// The timeout restarts with every part of the request body.
    pub(super) async fn send(
        self: &Arc<Self>,
        request: Request<WorkerBody>,
        timeout: Duration,
    ) -> Result<Response<SiteBody>, SendError> {
        let (request, progress) = with_progress(request);
        let sent = tokio::select! {
            reason = self.wait_for_end() => return Err(SendError::Ended(reason)),
            () = no_progress(progress, timeout) => return Err(SendError::Silent),
            sent = self.exchange(request) => sent,
        };
        let error = match sent {
            Ok(answer) => {
                self.has_answered.store(true, Ordering::Relaxed);
                return Ok(forward::answer(answer).map(|body| self.keep_running_body(body)));
            }
            Err(error) => error,
        };
        // The usual cause is that the process has just ended.
        match tokio::time::timeout(REASON_TIME, self.wait_for_end()).await {
            Ok(reason) => Err(SendError::Ended(reason)),
            Err(_) => Err(SendError::Broken(error)),
        }
    }

    async fn exchange(
        &self,
        request: Request<WorkerBody>,
    ) -> Result<Response<Incoming>, Box<dyn std::error::Error + Send + Sync>> {
        let stream = UnixStream::connect(&self.socket).await?;
        let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await?;
        // The task ends when the response has been read or dropped.
        tokio::spawn(connection);
        Ok(sender.send_request(request).await?)
    }

    async fn wait_for_end(&self) -> String {
        let mut end = self.end.clone();
        let reason = end.wait_for(Option::is_some).await;
        reason.map_or_else(
            |_| String::new(),
            |reason| reason.clone().unwrap_or_default(),
        )
    }

    fn keep_running_body(self: &Arc<Self>, body: Incoming) -> SiteBody {
        let process = Arc::clone(self);
        ProcessBody { body, process }.boxed()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.bindings.abort();
    }
}

/// Returns the request with a receiver of the time at which its last part was sent.
pub(super) fn with_progress(
    request: Request<WorkerBody>,
) -> (Request<WorkerBody>, watch::Receiver<Instant>) {
    let (moved, progress) = watch::channel(Instant::now());
    let request = request.map(|body| {
        let noted = body.map_frame(move |frame| {
            moved.send_replace(Instant::now());
            frame
        });
        noted.boxed_unsync()
    });
    (request, progress)
}

/// Returns when no progress was made for the duration of the timeout.
pub(super) async fn no_progress(progress: watch::Receiver<Instant>, timeout: Duration) {
    loop {
        let until = *progress.borrow() + timeout;
        if until <= Instant::now() {
            return;
        }
        tokio::time::sleep_until(until).await;
    }
}

/// Returns the tail of a process's output that hides secrets and paths.
fn tail_of(
    launch: &Launch,
    workerd: &Workerd,
    folders: &[&Path],
    console: Arc<dyn ConsoleSink>,
) -> Tail {
    let secrets = launch
        .secrets
        .values()
        .map(core_domain::kernel::Secret::expose);
    let paths = folders.iter().copied().chain([workerd.program()]);
    let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    Tail::with_hidden(secrets.chain(paths.iter().map(String::as_str)), console)
}

/// Reads the output of a process until it ends, and reports its end.
async fn watch_exit(
    worker: String,
    mut child: Child,
    output: ChildStderr,
    mut tail: Tail,
    ended: watch::Sender<Option<String>>,
) {
    tail.read_from(&worker, output).await;
    let status = match child.wait().await {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    tracing::info!(worker, status, "a worker has ended");
    let text = tail.text();
    ended.send_replace(Some(if text.is_empty() { status } else { text }));
}

async fn answer_bindings(listener: UnixListener, bindings: Arc<Bindings>) {
    let connections = Arc::new(Semaphore::new(bindings.max_connections()));
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            // Usually the process lacks file descriptors until others are closed.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&connections).try_acquire_owned() else {
            tokio::spawn(async move { stream.write_all(TOO_MANY_CONNECTIONS).await });
            continue;
        };
        let bindings = Arc::clone(&bindings);
        let answer = service_fn(move |request| {
            let bindings = Arc::clone(&bindings);
            async move { Ok::<_, std::convert::Infallible>(bindings.answer(request).await) }
        });
        let connection = server::Builder::new()
            .max_buf_size(MAX_BUFFER)
            .serve_connection(TokioIo::new(stream), answer);
        tokio::spawn(async move {
            // If the connection breaks, the script gets an error.
            let _ = connection.await;
            drop(permit);
        });
    }
}

/// A response body that keeps its process running until it has been read.
#[derive(Debug)]
struct ProcessBody {
    body: Incoming,
    process: Arc<Process>,
}

impl Body for ProcessBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if polled.is_ready() {
            self.process.record_use();
        }
        polled.map(|frame| frame.map(|frame| frame.map_err(io::Error::other)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
