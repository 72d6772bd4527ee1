//! The check of the Redis server that the nodes share.

#[cfg(feature = "redis")]
use std::time::Instant;

use super::Finding;
use crate::SuiteBuilder;

impl SuiteBuilder {
    /// Signs in at the Redis server and sends `PING`. Returns `None` without such a server.
    #[cfg(feature = "redis")]
    pub(super) async fn redis_finding(&self) -> Option<Finding> {
        let mut config = core_redis::RedisConfig::new(self.redis.as_ref()?.expose());
        config.options.clone_from(&self.settings.redis);
        config.connect_timeout = super::CHECK_TIMEOUT;
        let began = Instant::now();
        Some(match core_redis::Redis::check(&config).await {
            Ok(()) => Finding::fine("redis", format!("responds ({:.0?})", began.elapsed())),
            Err(error) => failure_finding(&error),
        })
    }

    /// Returns `None`: without the feature `redis` there is no server.
    #[cfg(not(feature = "redis"))]
    #[expect(clippy::unused_async, reason = "with the feature it connects")]
    pub(super) async fn redis_finding(&self) -> Option<Finding> {
        None
    }
}

#[cfg(feature = "redis")]
fn failure_finding(error: &core_redis::CheckError) -> Finding {
    let text = format!(
        "{error}; {}. Until then each node counts requests alone, and its notices do not reach the others",
        error.advice()
    );
    Finding::failure("redis", text)
}

#[cfg(all(test, feature = "redis"))]
mod tests {
    use core_redis::CheckError;

    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn each_failure_says_what_to_do() {
        for (error, advice) in [
            (
                CheckError::Unreachable("connection refused".to_owned()),
                "firewall",
            ),
            (CheckError::TimedOut, "firewall"),
            (
                CheckError::Login("NOAUTH".to_owned()),
                "the user and the password",
            ),
            (
                CheckError::Refused("LOADING".to_owned()),
                "the log of Redis",
            ),
        ] {
            let found = failure_finding(&error);
            assert_eq!(found.severity, Severity::Failure);
            assert!(found.text.contains(advice), "{found}");
        }
    }

    #[tokio::test]
    async fn a_server_that_cannot_be_reached_is_a_failure_without_the_password() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = closed.local_addr().unwrap();
        drop(closed);
        let builder = SuiteBuilder::default().redis(format!("redis://:open-sesame@{address}"));
        let found = builder.redis_finding().await.unwrap();
        assert_eq!(found.severity, Severity::Failure, "{found}");
        assert!(!found.text.contains("sesame"), "{found}");
        assert_eq!(SuiteBuilder::default().redis_finding().await, None);
    }
}
