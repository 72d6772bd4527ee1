//! What the server and the process that hosts workers tell each other: requests and responses of HTTP over a Unix socket,
//! with headers that no visitor and no worker can set.

use std::path::PathBuf;

use bytes::Bytes;
use http::{HeaderName, Response};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use serde::{Deserialize, Serialize};

use super::WorkerdOptions;
use super::refusal::Refusal;

/// Names the worker that a request is for.
pub(super) const WORKER: HeaderName = HeaderName::from_static("x-core-worker");
/// Marks a request that ends the worker.
pub(super) const FORGET: HeaderName = HeaderName::from_static("x-core-forget");
/// Marks a response whose body is a refusal.
pub(super) const REFUSAL: HeaderName = HeaderName::from_static("x-core-refusal");

/// The longest refusal, in bytes.
const MAX_REFUSAL: usize = 256 * 1024;

/// The configuration of the process, which is the first line of its standard input.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostStart {
    /// The data folder.
    pub(super) root: PathBuf,
    /// The program that runs workers.
    pub(super) workerd: PathBuf,
    /// The options of workers.
    pub(super) options: WorkerdOptions,
    /// Services that workers can reach wherever they run.
    pub(super) reachable: Vec<String>,
    /// The socket that tells which platforms are suspended.
    pub(super) suspensions: PathBuf,
}

/// A refusal as the body of a response.
pub(super) fn write_refusal(refusal: &Refusal) -> Vec<u8> {
    serde_json::to_vec(refusal).unwrap_or_default()
}

/// The refusal of a marked response.
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
    async fn a_refusal_is_read_as_it_was_written() {
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
