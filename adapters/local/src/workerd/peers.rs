//! The interface through which a worker calls other workers.

use async_trait::async_trait;
use http::{Request, Response};

use super::forward::WorkerBody;
use super::refusal::Refusal;
use crate::host::SiteBody;

/// The workers of the provider, as callable from a worker's bindings.
#[async_trait]
pub(super) trait Peers: Send + Sync + std::fmt::Debug {
    /// Sends a request to a worker.
    async fn send(
        &self,
        name: &str,
        request: Request<WorkerBody>,
    ) -> Result<Response<SiteBody>, Refusal>;
}
