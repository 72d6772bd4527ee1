//! The rate limiter, compared with the one in memory.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use core_domain::gateway::RatePolicy;
use core_domain::kernel::Timestamp;
use core_domain::port::RateLimiter;
use core_http::kernel::MemoryRateLimiter;
use core_redis::testing::RedisServer;
use core_redis::{EXPIRY_MARGIN, RedisRateLimiter};
use futures_util::future::join_all;
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::runtime::Runtime;

use crate::world::{TIMEOUT, connect, key, now, policy, server};

const MINUTE: i64 = 60 * 1_000;
const DAY: i64 = 24 * 60 * MINUTE;

/// A call of the limiter.
#[derive(Clone, Copy, Debug)]
enum Step {
    Count { key: usize, policy: usize },
    Uncount { key: usize, policy: usize },
    Attempt { key: usize },
    Forget { key: usize },
}

fn steps() -> impl Strategy<Value = Vec<(Step, i64)>> {
    let (key, policy) = (0..2_usize, 0..3_usize);
    let windows = (key.clone(), policy.clone());
    let step = prop_oneof![
        6 => windows.clone().prop_map(|(key, policy)| Step::Count { key, policy }),
        2 => windows.prop_map(|(key, policy)| Step::Uncount { key, policy }),
        8 => key.clone().prop_map(|key| Step::Attempt { key }),
        1 => key.prop_map(|key| Step::Forget { key }),
    ];
    // The clock may also be set back.
    let pause = prop_oneof![
        4 => Just(0_i64),
        4 => -1_500..3_000_i64,
        2 => -2 * MINUTE..2 * MINUTE,
        1 => 0..20 * MINUTE,
        1 => prop_oneof![Just(MINUTE), Just(DAY), DAY - 2..DAY + 2, Just(-DAY)],
    ];
    vec((step, pause), 1..60)
}

/// The server of the property test, and the runtime of its connection.
static SHARED: LazyLock<(Runtime, RedisServer, RedisRateLimiter)> = LazyLock::new(|| {
    let runtime = Runtime::new().unwrap();
    let (server, limiter) = runtime.block_on(async {
        let server = server().await;
        let limiter = connect(server.url()).await.rate_limiter();
        (server, limiter)
    });
    (runtime, server, limiter)
});

/// Runs the steps on both limiters, and compares every result.
async fn compare(redis: &RedisRateLimiter, steps: &[(Step, i64)]) -> Result<(), TestCaseError> {
    static CASES: AtomicU32 = AtomicU32::new(0);
    let case = CASES.fetch_add(1, Ordering::Relaxed);
    let memory = MemoryRateLimiter::new();
    // Two policies of the same name can meet while a setting is changed on one node after the other.
    let policies = [policy("a", 3, 60), policy("a", 2, 1), policy("b", 1, 60)];
    let name = |number: usize| key(&policies[0], &format!("{case}:{number}"));
    let mut now = now();
    for (step, pause) in steps {
        now = Timestamp::from_millis(now.millis() + pause);
        match *step {
            Step::Count { key, policy } => {
                let (key, policy) = (name(key), &policies[policy]);
                let counted = redis.count_request(key, policy, now).await.unwrap();
                prop_assert_eq!(counted, memory.count(key, policy, now), "{:?}", step);
            }
            Step::Uncount { key, policy } => {
                let (key, policy) = (name(key), &policies[policy]);
                let had_one = redis.uncount_request(key, policy, now).await.unwrap();
                prop_assert_eq!(had_one, memory.give_back(&key, policy, now), "{:?}", step);
            }
            Step::Attempt { key } => {
                let refusal = redis.begin_attempt(name(key), now).await.unwrap();
                let expected = memory.count_attempt(name(key), now).await;
                prop_assert_eq!(refusal, expected, "{:?}", step);
            }
            Step::Forget { key } => {
                redis.forget_attempts(name(key)).await.unwrap();
                memory.forget(&name(key)).await;
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn redis_and_memory_give_the_same_results(steps in steps()) {
        let (runtime, _, limiter) = &*SHARED;
        runtime.block_on(compare(limiter, &steps))?;
    }
}

#[tokio::test]
async fn failed_attempts_are_delayed_up_to_the_maximum() {
    let server = server().await;
    let (limiter, memory) = (
        connect(server.url()).await.rate_limiter(),
        MemoryRateLimiter::new(),
    );
    let (key, mut now) = (key(&policy("a", 1, 1), "ada"), now());
    for _ in 0..60 {
        let refusal = limiter.begin_attempt(key, now).await.unwrap();
        assert_eq!(refusal, memory.count_attempt(key, now).await);
        now = now.plus(refusal.map_or(std::time::Duration::ZERO, |refusal| refusal.retry_after));
    }
    let refusal = limiter
        .begin_attempt(key, now.minus(TIMEOUT))
        .await
        .unwrap();
    assert!(refusal.unwrap().failures > 20);
}

#[tokio::test]
async fn concurrent_requests_of_several_nodes_never_exceed_the_quota() {
    let server = server().await;
    let policy = policy("default", 100, 60);
    let key = key(&policy, "shared");
    let mut nodes = Vec::new();
    for _ in 0..4 {
        nodes.push(connect(server.url()).await.rate_limiter());
    }
    let count = |limiter| {
        let policy = &policy;
        async move {
            RateLimiter::count_request(limiter, key, policy, now())
                .await
                .unwrap()
        }
    };
    let requests = nodes.iter().cycle().take(4 * 60).map(count);
    let usages = join_all(requests).await;
    let allowed = usages.iter().filter(|usage| usage.is_allowed).count();
    assert_eq!(allowed, 100);
    let mut remaining: Vec<u32> = usages
        .iter()
        .filter(|u| u.is_allowed)
        .map(|u| u.remaining)
        .collect();
    remaining.sort_unstable();
    assert!(remaining.into_iter().eq(0..100));
}

/// Sends a command to the server, on a connection of its own.
async fn command(server: &RedisServer, words: &[&str]) -> redis::Value {
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    command.query_async(&mut connection).await.unwrap()
}

async fn keys(server: &RedisServer) -> Vec<String> {
    redis::from_redis_value(command(server, &["KEYS", "*"]).await).unwrap()
}

#[tokio::test]
async fn every_key_has_the_prefix_and_expires_after_its_window() {
    let server = server().await;
    let limiter = connect(server.url()).await.rate_limiter();
    let minute: RatePolicy = policy("default", 2, 60);
    let key = key(&minute, "ada");
    for _ in 0..3 {
        let _ = limiter.count_request(key, &minute, now()).await.unwrap();
    }
    let _ = limiter.begin_attempt(key, now()).await.unwrap();
    let mut keys = keys(&server).await;
    keys.sort_unstable();
    assert_eq!(keys.len(), 2, "{keys:?}");
    let margin = i64::try_from(EXPIRY_MARGIN.as_millis()).unwrap();
    for (key, (start, kept)) in keys
        .iter()
        .zip([("core:attempts:", DAY), ("core:rate:default:", MINUTE)])
    {
        assert!(key.starts_with(start), "{key}");
        let left: i64 = redis::from_redis_value(command(&server, &["PTTL", key]).await).unwrap();
        assert!((kept..=kept + margin).contains(&left), "{key} {left}");
    }
}

#[tokio::test]
async fn scripts_are_loaded_again_after_the_server_has_forgotten_them() {
    let server = server().await;
    let limiter = connect(server.url()).await.rate_limiter();
    let policy = policy("default", 2, 60);
    for remaining in [1, 0] {
        let usage = limiter
            .count_request(key(&policy, "ada"), &policy, now())
            .await;
        assert_eq!(usage.unwrap().remaining, remaining);
        command(&server, &["SCRIPT", "FLUSH"]).await;
    }
}
