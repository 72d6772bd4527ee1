//! The worker host process: runs workers, serves their bindings, and receives requests from the server.
//!
//! The first line of standard input is the configuration. Standard input stays open as long as the server runs.
//! Standard output is the socket that receives requests.

use std::convert::Infallible;
use std::io::{self, BufRead, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::Clock;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rusqlite::Connection;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::UnixListener;
use tokio::sync::oneshot;

use super::Workerd;
use super::forward;
use super::host_logs::RemoteLogs;
use super::host_suspensions::RemoteSuspensions;
use super::host_wire::{FORGET, HostStart, REFUSAL, WORKER, write_refusal};
use super::pool::Workers;
use crate::config::LocalConfig;
use crate::data_dir::DataDir;
use crate::error::{LocalError, Result, run_blocking};
use crate::host::SiteBody;
use crate::stores::Stores;

/// Maximum length of the configuration line, in bytes.
const MAX_START: u64 = 64 * 1024;

/// Hosts the workers of a data folder for the server that started this process. Returns when that server ends. The
/// command of [`LocalConfig::worker_host`] calls it.
///
/// # Errors
/// [`LocalError::Invalid`] if a server did not start this process. [`LocalError::Io`] if the memory cannot be limited
/// or the folder cannot be opened.
pub async fn run_worker_host(clock: Arc<dyn Clock>) -> Result<()> {
    let start = run_blocking(|| read_start(&mut io::stdin().lock())).await?;
    let listener = inherited_listener()?;
    limit_process(start.options.memory)?;
    let workers = workers_of(start, clock).await?;
    let (end, ended) = oneshot::channel();
    std::thread::spawn(move || {
        // No more data arrives; the input closes when the server ends.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        end.send(())
    });
    tokio::select! {
        () = accept(listener, workers.clone()) => {}
        _ = ended => {}
    }
    workers.stop().await;
    Ok(())
}

fn read_start(input: &mut impl BufRead) -> Result<HostStart> {
    let mut line = String::new();
    input.take(MAX_START).read_line(&mut line)?;
    serde_json::from_str(&line).map_err(|_| {
        let what =
            "this command must be started by the server: standard input has no valid configuration";
        LocalError::Invalid(what.to_owned())
    })
}

fn inherited_listener() -> Result<UnixListener> {
    let socket = io::stdout().as_fd().try_clone_to_owned()?;
    let listener = StdListener::from(socket);
    listener.set_nonblocking(true)?;
    Ok(UnixListener::from_std(listener)?)
}

/// Limits the memory of this process and its child processes, and raises the limit of open files to the maximum.
fn limit_process(memory: u64) -> Result<()> {
    let allowed = getrlimit(Resource::Data).maximum;
    let memory = allowed.map_or(memory, |allowed| allowed.min(memory));
    let limit = Rlimit {
        current: Some(memory),
        maximum: Some(memory),
    };
    setrlimit(Resource::Data, limit).map_err(io::Error::from)?;
    let files = getrlimit(Resource::Nofile);
    let files = Rlimit {
        current: files.maximum,
        ..files
    };
    setrlimit(Resource::Nofile, files).map_err(io::Error::from)?;
    // A statement that needs more memory fails, instead of this process.
    let connection = Connection::open_in_memory()?;
    let half = i64::try_from(memory / 2).unwrap_or(i64::MAX);
    connection.pragma_update_and_check(None, "hard_heap_limit", half, |_| Ok(()))?;
    Ok(())
}

async fn workers_of(start: HostStart, clock: Arc<dyn Clock>) -> Result<Workers> {
    let mut config = LocalConfig::new(start.root, 0, clock);
    config.workerd = Workerd::at(&start.workerd);
    config.workers = start.options;
    config.reachable = start
        .reachable
        .iter()
        .filter_map(|authority| authority.parse().ok())
        .collect();
    config.suspensions = Some(Arc::new(RemoteSuspensions::at(start.suspensions)));
    let root = config.root.clone();
    let data = run_blocking(move || DataDir::open(&root)).await?;
    let stores = Stores::new(data, Arc::clone(&config.clock), config.workers.bindings);
    let console = Arc::new(RemoteLogs::at(start.logs));
    Workers::new(stores, Arc::new(config), console)
}

async fn accept(listener: UnixListener, workers: Workers) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // The process may lack file descriptors until others are closed.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let workers = workers.clone();
        let respond = service_fn(move |request| {
            let workers = workers.clone();
            async move { Ok::<_, Infallible>(respond(&workers, request).await) }
        });
        let connection = server::Builder::new().serve_connection(TokioIo::new(stream), respond);
        // The server detects broken connections.
        tokio::spawn(connection);
    }
}

async fn respond(workers: &Workers, mut request: Request<Incoming>) -> Response<SiteBody> {
    let headers = request.headers_mut();
    let (name, forget) = (headers.remove(WORKER), headers.remove(FORGET));
    let name = name.as_ref().and_then(|name| name.to_str().ok());
    let name = name.unwrap_or_default();
    if forget.is_some() {
        workers.forget(name).await;
        return Response::new(Empty::new().map_err(|never| match never {}).boxed());
    }
    match workers.send(name, forward::prepare_request(request)).await {
        Ok(mut response) => {
            // A response of a worker is never a refusal of the host.
            response.headers_mut().remove(REFUSAL);
            response
        }
        Err(refusal) => {
            let body = Full::from(write_refusal(&refusal));
            let mut response = Response::new(body.map_err(|never| match never {}).boxed());
            let mark = http::HeaderValue::from_static("1");
            response.headers_mut().insert(REFUSAL, mark);
            response
        }
    }
}
