//! Step 10: callers of a suspended platform get 451 on every route. The service key belongs to no platform.

use core_domain::kernel::Code;
use tower::ServiceExt;

use super::{Next, Step};
use crate::gateway::exchange::{Inbound, Outcome};
use crate::gateway::refusal::Refusal;

#[derive(Clone, Debug)]
pub(crate) struct Suspension;

impl Step for Suspension {
    async fn run<S: Next>(&self, inbound: Inbound, next: S) -> Outcome {
        if inbound.identity.as_ref().is_some_and(|who| who.suspended) {
            return Err(Refusal::new(
                Code::PlatformSuspended,
                "This platform has been suspended.",
            ));
        }
        next.oneshot(inbound).await
    }
}
