//! Step 5: the time until the head of the answer.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use tower::ServiceExt;

use super::{Next, Step};
use crate::gateway::config::Settings;
use crate::gateway::exchange::{Inbound, Outcome, headers_of};

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

#[derive(Clone, Debug)]
pub(crate) struct Timing(pub(crate) Arc<Settings>);

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

impl Step for Timing {
    async fn run<S: Next>(&self, inbound: Inbound, next: S) -> Outcome {
        let exchange = Arc::clone(&inbound.exchange);
        let mut outcome = next.oneshot(inbound).await;
        let total = exchange.arrived.elapsed();
        let _ = exchange.head_time.set(total);
        if !self.0.server_timing {
            return outcome;
        }
        let mut text = format!("total;dur={:.3}", millis(total));
        if let Some(upstream) = exchange.upstream_time.get() {
            text.push_str(&format!(", upstream;dur={:.3}", millis(*upstream)));
        }
        if let Ok(value) = HeaderValue::try_from(text) {
            headers_of(&mut outcome).insert(SERVER_TIMING, value);
        }
        outcome
    }
}
