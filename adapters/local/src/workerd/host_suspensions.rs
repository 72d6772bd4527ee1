//! Queries of platform suspensions: the worker host process asks the server over a Unix socket.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use core_domain::kernel::PlatformId;
use core_domain::port::{PlatformSuspensions, SuspensionUnknown};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{UnixListener, UnixStream};

/// Maximum time that the server may take to respond.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum length of a response, in bytes.
const MAX_RESPONSE: usize = 16;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Serves the queries of [`RemoteSuspensions`] until the task is aborted.
pub(super) async fn serve_suspensions(
    listener: UnixListener,
    suspensions: Option<Arc<dyn PlatformSuspensions>>,
) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // The process may lack file descriptors until others are closed.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let suspensions = suspensions.clone();
        let respond = service_fn(move |request| {
            let suspensions = suspensions.clone();
            async move { Ok::<_, Infallible>(respond(suspensions.as_deref(), &request).await) }
        });
        let connection = server::Builder::new().serve_connection(TokioIo::new(stream), respond);
        // A broken connection gives no response, and the host then treats every platform as suspended.
        tokio::spawn(connection);
    }
}

async fn respond(
    suspensions: Option<&dyn PlatformSuspensions>,
    request: &Request<Incoming>,
) -> Response<Full<Bytes>> {
    let platform = PlatformId::parse(request.uri().path().trim_start_matches('/'));
    let is_suspended = match (suspensions, platform) {
        (None, _) => Ok(false),
        (Some(_), None) => Err(SuspensionUnknown),
        (Some(suspensions), Some(platform)) => suspensions.is_suspended(&platform).await,
    };
    let mut response = Response::default();
    match is_suspended {
        Ok(is_suspended) => *response.body_mut() = Full::from(is_suspended.to_string()),
        Err(SuspensionUnknown) => *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE,
    }
    response
}

/// The suspensions that the server knows, queried over its socket.
#[derive(Debug)]
pub(super) struct RemoteSuspensions {
    socket: PathBuf,
}

impl RemoteSuspensions {
    pub(super) const fn at(socket: PathBuf) -> Self {
        Self { socket }
    }

    async fn query(&self, platform: &PlatformId) -> Result<bool, Error> {
        let stream = UnixStream::connect(&self.socket).await?;
        let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let request = Request::get(format!("/{platform}")).body(Empty::<Bytes>::new())?;
        let response = sender.send_request(request).await?;
        if response.status() != StatusCode::OK {
            return Err("the suspension state is unknown to the server".into());
        }
        let body = Limited::new(response.into_body(), MAX_RESPONSE).collect();
        let body = body.await?.to_bytes();
        Ok(std::str::from_utf8(&body)?.parse()?)
    }
}

#[async_trait]
impl PlatformSuspensions for RemoteSuspensions {
    async fn is_suspended(&self, platform: &PlatformId) -> Result<bool, SuspensionUnknown> {
        let answer = tokio::time::timeout(TIMEOUT, self.query(platform)).await;
        answer
            .map_err(|_| SuspensionUnknown)?
            .map_err(|_| SuspensionUnknown)
    }
}

#[cfg(test)]
mod tests {
    use core_domain::testing::MockPlatformSuspensions;

    use super::*;

    #[tokio::test]
    async fn suspensions_are_queried_over_the_socket() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("suspensions");
        let platforms = ["platform-1", "platform-2", "platform-3"];
        let platforms = platforms.map(|id| PlatformId::parse(id).unwrap());
        let [active, suspended, unknown] = platforms;
        let mut known = MockPlatformSuspensions::new();
        let (one, two) = (active.clone(), suspended.clone());
        known.expect_is_suspended().returning(move |id| match id {
            id if *id == one => Ok(false),
            id if *id == two => Ok(true),
            _ => Err(SuspensionUnknown),
        });
        let listener = UnixListener::bind(&socket).unwrap();
        let server = tokio::spawn(serve_suspensions(listener, Some(Arc::new(known))));
        let remote = RemoteSuspensions::at(socket);
        assert_eq!(remote.is_suspended(&active).await, Ok(false));
        assert_eq!(remote.is_suspended(&suspended).await, Ok(true));
        assert_eq!(remote.is_suspended(&unknown).await, Err(SuspensionUnknown));
        server.abort();
        assert!(server.await.unwrap_err().is_cancelled());
        assert_eq!(remote.is_suspended(&active).await, Err(SuspensionUnknown));
    }
}
