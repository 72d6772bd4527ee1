//! The protocol between the server and the worker host process: HTTP over a Unix socket, with headers that neither
//! visitors nor workers can set.

use std::path::PathBuf;

use bytes::Bytes;
use http::{HeaderName, Response};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use serde::{Deserialize, Serialize};

use super::WorkerdOptions;
use super::refusal::Refusal;

/// The header that names the worker of a request.
pub(super) const WORKER: HeaderName = HeaderName::from_static("x-core-worker");
/// The header that marks a request to stop the worker.
pub(super) const FORGET: HeaderName = HeaderName::from_static("x-core-forget");
/// The header that marks a response whose body is a refusal.
pub(super) const REFUSAL: HeaderName = HeaderName::from_static("x-core-refusal");

/// Maximum length of a refusal, in bytes.
const MAX_REFUSAL: usize = 256 * 1024;

/// The configuration of the process: the first line of its standard input.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostStart {
    /// The path of the data folder.
    pub(super) root: PathBuf,
    /// The path of the `workerd` program.
    pub(super) workerd: PathBuf,
    /// The options for running workers.
    pub(super) options: WorkerdOptions,
    /// Services that workers can reach at any address, as `host:port`.
    pub(super) reachable: Vec<String>,
    /// The path of the socket for queries of platform suspensions.
    pub(super) suspensions: PathBuf,
    /// The path of the socket that receives the console lines of workers.
    pub(super) logs: PathBuf,
}

/// Encodes a refusal as the body of a response.
pub(super) fn write_refusal(refusal: &Refusal) -> Vec<u8> {
    serde_json::to_vec(refusal).unwrap_or_default()
}

/// Decodes the refusal of a marked response.
pub(super) async fn read_refusal<B>(response: Response<B>) -> Refusal
where
    B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
{
    let body = Limited::new(response.into_body(), MAX_REFUSAL).collect();
    let refusal = match body.await {
        Ok(body) => serde_json::from_slice(&body.to_bytes()).ok(),
        Err(_) => None,
    };
    refusal.unwrap_or(Refusal::Failed)
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    #[tokio::test]
    async fn refusal_survives_encoding() {
        for refusal in [
            Refusal::Missing,
            Refusal::Ended("line one\nzwei".to_owned()),
            Refusal::Silent,
        ] {
            let body = Full::new(Bytes::from(write_refusal(&refusal)));
            let read = read_refusal(Response::new(body)).await;
            assert_eq!(format!("{read:?}"), format!("{refusal:?}"));
        }
        let damaged = Full::new(Bytes::from_static(b"{"));
        let read = read_refusal(Response::new(damaged)).await;
        assert!(matches!(read, Refusal::Failed));
    }
}
