//! The host on a socket of its own.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::SiteHost;

/// How many connections are served at a time; more wait to be accepted.
const MAX_CONNECTIONS: usize = 1024;
/// How long a client may take for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// How long requests that run are waited for at the end.
const DRAIN: Duration = Duration::from_secs(10);
/// How long to wait when no connection can be accepted, for want of file descriptors for example.
const PAUSE: Duration = Duration::from_millis(50);

impl SiteHost {
    /// Serves HTTP/1.1 until `shutdown` is ready, then lets running requests end, for at most ten seconds.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let graceful = GracefulShutdown::new();
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let accepting = async {
            while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
                let stream = accept(&listener).await;
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEAD_TIMEOUT)
                    .serve_connection(TokioIo::new(stream), TowerToHyperService::new(self.clone()));
                let connection = graceful.watch(connection);
                tokio::spawn(async move {
                    if let Err(error) = connection.await {
                        tracing::debug!(%error, "a connection to a site ended early");
                    }
                    drop(permit);
                });
            }
        };
        tokio::select! {
            () = accepting => {}
            () = shutdown => {}
        }
        drop(listener);
        if tokio::time::timeout(DRAIN, graceful.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("requests to sites were still running at the end");
        }
    }
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
