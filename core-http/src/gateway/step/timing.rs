//! Step 5: measures the time until the head of the response.

use std::time::Duration;

use http::{HeaderMap, HeaderName};

use crate::gateway::config::Settings;
use crate::gateway::exchange::Exchange;
use crate::kernel::own_value;

static SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// Records the time, and sends it as `Server-Timing` if that is configured.
pub(super) fn write(exchange: &mut Exchange, settings: &Settings, headers: &mut HeaderMap) {
    let total = exchange.arrived.elapsed();
    exchange.head_time = Some(total);
    if !settings.server_timing {
        return;
    }
    let mut text = format!("total;dur={:.3}", millis(total));
    if let Some(upstream) = exchange.upstream_time.get() {
        text.push_str(&format!(", upstream;dur={:.3}", millis(*upstream)));
    }
    headers.insert(SERVER_TIMING.clone(), own_value(text));
}
