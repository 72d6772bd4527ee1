//! The rules by which a failed request is sent again.

use std::time::Duration;

use super::random::jitter;
use crate::error::{ApiError, Error, TransportStage};

/// The rules by which the client repeats a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum number of attempts, the first included. 1 turns retries off. Default: 4.
    pub max_attempts: u32,
    /// Pause before the second attempt. It doubles with every attempt, and the client shortens it by up to half at
    /// random. Default: 250 ms.
    pub first_pause: Duration,
    /// Maximum pause. A server that asks for more in `Retry-After` gets no further attempt. Default: 30 s.
    pub max_pause: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 4,
            first_pause: Duration::from_millis(250),
            max_pause: Duration::from_secs(30),
        }
    }
}

impl RetryPolicy {
    /// Returns the pause before the next attempt; `None` if the request is not repeated.
    ///
    /// `attempts` is the number of attempts so far. A request that is not idempotent is only repeated if the server did
    /// not execute it: without a connection, or after a refusal because of a rate limit.
    pub(crate) fn pause_before_next(
        &self,
        error: &Error,
        attempts: u32,
        is_idempotent: bool,
    ) -> Option<Duration> {
        if attempts >= self.max_attempts {
            return None;
        }
        let asked = match error {
            Error::Transport(transport) => {
                if !is_idempotent && transport.stage != TransportStage::Connect {
                    return None;
                }
                None
            }
            Error::Api(error) if is_temporary(error, is_idempotent) => error.retry_after,
            _ => return None,
        };
        match asked {
            Some(pause) => (pause <= self.max_pause).then_some(pause),
            None => Some(self.backoff(attempts)),
        }
    }

    /// Returns the pause after a number of failed attempts, without a wish of the server.
    pub(crate) fn backoff(&self, attempts: u32) -> Duration {
        let factor = 2_u32.saturating_pow(attempts.saturating_sub(1).min(16));
        jitter(self.first_pause.saturating_mul(factor).min(self.max_pause))
    }
}

/// Returns whether the same request can succeed later.
fn is_temporary(error: &ApiError, is_idempotent: bool) -> bool {
    match error.status {
        429 => true,
        502..=504 => is_idempotent,
        409 => error.code == "IDEMPOTENCY_IN_PROGRESS",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::TransportError;

    const POLICY: RetryPolicy = RetryPolicy {
        max_attempts: 3,
        first_pause: Duration::from_millis(100),
        max_pause: Duration::from_secs(5),
    };

    fn api(status: u16, code: &str, retry_after: Option<u64>) -> Error {
        let body = format!(
            r#"{{"error":{{"code":"{code}","message":"m","requestId":"r","details":{{}}}}}}"#
        );
        let retry_after = retry_after.map(Duration::from_secs);
        Error::Api(Box::new(ApiError::parse(
            status,
            body.as_bytes(),
            retry_after,
        )))
    }

    fn transport(stage: TransportStage) -> Error {
        TransportError::new(stage, "http://localhost", "closed").into()
    }

    #[test]
    fn the_pause_that_the_server_asks_for_is_kept() {
        let limited = api(429, "RATE_LIMITED", Some(2));
        assert_eq!(
            POLICY.pause_before_next(&limited, 1, false),
            Some(Duration::from_secs(2))
        );
    }

    #[test]
    fn a_pause_beyond_the_maximum_ends_the_attempts() {
        assert_eq!(
            POLICY.pause_before_next(&api(429, "RATE_LIMITED", Some(60)), 1, true),
            None
        );
    }

    #[test]
    fn a_write_without_key_is_not_repeated_after_it_was_sent() {
        let lost = transport(TransportStage::Request);
        assert_eq!(POLICY.pause_before_next(&lost, 1, false), None);
        assert!(POLICY.pause_before_next(&lost, 1, true).is_some());
        assert_eq!(
            POLICY.pause_before_next(&api(503, "SERVICE_UNAVAILABLE", None), 1, false),
            None
        );
    }

    #[test]
    fn a_request_that_never_left_is_repeated() {
        let refused = transport(TransportStage::Connect);
        assert!(POLICY.pause_before_next(&refused, 1, false).is_some());
    }

    #[test]
    fn attempts_are_bounded() {
        let refused = transport(TransportStage::Connect);
        assert!(POLICY.pause_before_next(&refused, 2, true).is_some());
        assert_eq!(POLICY.pause_before_next(&refused, 3, true), None);
    }

    #[test]
    fn refusals_are_final() {
        for (status, code) in [
            (400, "VALIDATION_ERROR"),
            (404, "NOT_FOUND"),
            (409, "CONFLICT"),
            (500, "INTERNAL_ERROR"),
        ] {
            assert_eq!(
                POLICY.pause_before_next(&api(status, code, None), 1, true),
                None,
                "{code}"
            );
        }
    }

    #[test]
    fn pauses_grow_up_to_the_maximum() {
        assert!(POLICY.backoff(1) <= Duration::from_millis(100));
        assert!(POLICY.backoff(3) >= Duration::from_millis(200));
        assert!(POLICY.backoff(40) <= Duration::from_secs(5));
    }
}
