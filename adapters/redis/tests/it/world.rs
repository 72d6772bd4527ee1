//! Servers, connections to them, and keys.

use std::time::Duration;

use core_domain::gateway::{RateKey, RatePolicy, RateSubject};
use core_domain::kernel::{ProcessName, Timestamp};
use core_domain::testing::SeededEntropy;
use core_redis::testing::RedisServer;
use core_redis::{Redis, RedisConfig, RedisNotices};

/// A time limit that only a hanging test reaches.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) async fn server() -> RedisServer {
    RedisServer::start(&[]).await.unwrap()
}

/// Returns a configuration whose time-outs a busy machine does not reach.
pub(crate) fn config(url: impl Into<String>) -> RedisConfig {
    RedisConfig {
        response_timeout: TIMEOUT,
        connect_timeout: TIMEOUT,
        ..RedisConfig::new(url)
    }
}

/// Opens a connection, and waits for it.
pub(crate) async fn connect(url: impl Into<String>) -> Redis {
    let redis = Redis::open(config(url)).unwrap();
    assert!(redis.wait_until_connected(TIMEOUT).await);
    redis
}

/// Opens the channel of a process with this number.
pub(crate) fn notices(redis: &Redis, process: u64) -> RedisNotices {
    redis.notices(ProcessName::generate(&SeededEntropy::new(process)))
}

pub(crate) fn policy(name: &str, quota: u32, seconds: u64) -> RatePolicy {
    RatePolicy::new(name, quota, Duration::from_secs(seconds)).unwrap()
}

pub(crate) fn key(policy: &RatePolicy, text: &str) -> RateKey {
    let client = "192.0.2.1".parse().unwrap();
    RateKey::new(policy, client, RateSubject::Text(text))
}

pub(crate) fn now() -> Timestamp {
    Timestamp::from_seconds(1_800_000_000)
}
