//! Before authentication: ambiguously framed requests are refused, and headers that a client must not set are removed.

use tower::ServiceExt;

use super::{Next, Step};
use crate::gateway::exchange::{Inbound, Outcome};
use crate::gateway::{framing, headers};

#[derive(Clone, Debug)]
pub(crate) struct RequestSanitizer;

impl Step for RequestSanitizer {
    async fn run<S: Next>(&self, mut inbound: Inbound, next: S) -> Outcome {
        framing::check(&inbound.request, &inbound.exchange)?;
        headers::clean_request(inbound.request.headers_mut())?;
        next.oneshot(inbound).await
    }
}
