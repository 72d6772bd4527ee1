//! Pauses that answers of others ask for.

use std::time::Duration;

use super::Timestamp;

/// What the header `Retry-After` asks for: seconds, or an instant. Nothing when it is neither.
#[must_use]
pub fn retry_after(header: &str, now: Timestamp) -> Duration {
    if let Ok(seconds) = header.trim().parse() {
        return Duration::from_secs(seconds);
    }
    let instant = jiff::fmt::rfc2822::parse(header.trim())
        .map(|instant| instant.timestamp().as_millisecond());
    instant.map_or(Duration::ZERO, |millis| {
        Timestamp::from_millis(millis).since(now)
    })
}
