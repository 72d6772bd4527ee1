//! Before authentication: messages that are not clear are refused, and what a client has no say in is dropped.

use tower::ServiceExt;

use super::{Next, Step};
use crate::gateway::exchange::{Inbound, Outcome};
use crate::gateway::{framing, headers};

#[derive(Clone, Debug)]
pub(crate) struct Guard;

impl Step for Guard {
    async fn run<S: Next>(&self, mut inbound: Inbound, next: S) -> Outcome {
        framing::check(&inbound.request, &inbound.exchange)?;
        headers::clean_request(inbound.request.headers_mut())?;
        next.oneshot(inbound).await
    }
}
