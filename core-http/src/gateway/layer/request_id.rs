//! Step 3: the request id, the client's or a new one.

use std::sync::Arc;

use core_domain::gateway::is_request_id;
use core_domain::kernel::{Clock, Entropy, new_uuid};
use tower::ServiceExt;

use super::{Next, Step};
use crate::gateway::exchange::{Inbound, Outcome, single};
use crate::kernel::header_names;

#[derive(Clone, Debug)]
pub(crate) struct RequestId {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

impl Step for RequestId {
    async fn run<S: Next>(&self, inbound: Inbound, next: S) -> Outcome {
        let id = single(inbound.request.headers(), header_names::REQUEST_ID)
            .filter(|id| is_request_id(id))
            .and_then(|id| std::str::from_utf8(id).ok())
            .map_or_else(|| new_uuid(self.clock.now(), &*self.entropy), str::to_owned);
        let _ = inbound.exchange.request_id.set(id);
        next.oneshot(inbound).await
    }
}
