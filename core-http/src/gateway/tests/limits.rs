use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::gateway::{Policy, RateKey, Usage};
use core_domain::kernel::Timestamp;
use http::Method;

use super::world::{World, anonymous, config, signed};
use crate::gateway::{Limiter, LimiterError};

const PATH: &str = "/api/v1/platforms";

#[tokio::test]
async fn the_101st_request_in_a_window_is_429_with_the_time_to_wait() {
    let world = World::new();
    let first = world.get(PATH).await;
    assert_eq!(
        first.header("ratelimit-policy"),
        Some("\"default\";q=100;w=60")
    );
    assert_eq!(first.header("ratelimit"), Some("\"default\";r=99;t=60"));
    assert_eq!(first.header("retry-after"), None);
    world.clock.advance(Duration::from_millis(10_500));
    for _ in 1..100 {
        assert_eq!(world.get(PATH).await.status, 200);
    }
    let refused = world.get(PATH).await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (429, "RATE_LIMITED")
    );
    assert_eq!(refused.header("ratelimit"), Some("\"default\";r=0;t=50"));
    assert_eq!(refused.header("retry-after"), Some("50"));
    world.clock.advance(Duration::from_secs(50));
    assert_eq!(world.get(PATH).await.status, 200);
}

#[tokio::test]
async fn neither_queries_nor_spellings_open_a_fresh_window() {
    let world = World::new();
    for n in 0..100 {
        let path = match n % 3 {
            0 => format!("{PATH}?x={n}"),
            1 => format!("{PATH}/"),
            _ => PATH.to_owned(),
        };
        assert_eq!(world.get(&path).await.status, 200);
    }
    assert_eq!(world.get(PATH).await.status, 429);
    assert_eq!(world.get("/api/v1/stacks").await.status, 200);
}

#[tokio::test]
async fn paths_that_are_refused_share_one_window() {
    let world = World::new();
    for n in 0..100 {
        assert_eq!(world.get(&format!("/api//{n}")).await.status, 400);
    }
    assert_eq!(world.get("/api//another").await.status, 429);
}

#[tokio::test]
async fn sign_in_is_limited_to_ten_and_failures_count() {
    let world = World::new();
    let sign_in = || anonymous("/api/v1/iam/api/auth/sign-in/email").method(Method::POST);
    for _ in 0..10 {
        assert_eq!(world.send(sign_in().build()).await.status, 401);
    }
    let answer = world.send(sign_in().build()).await;
    assert_eq!(answer.status, 429);
    assert_eq!(
        answer.header("ratelimit-policy"),
        Some("\"strict\";q=10;w=60")
    );
}

#[tokio::test]
async fn another_client_has_a_window_of_its_own_and_an_ipv6_client_one_for_its_64() {
    let world = World::new();
    for n in 0..100 {
        let peer = format!("[2001:db8::{n:x}]:1");
        assert_eq!(
            world.send(signed(PATH).peer(&peer).build()).await.status,
            200
        );
    }
    let same = signed(PATH).peer("[2001:db8::ffff]:1");
    assert_eq!(world.send(same.build()).await.status, 429);
    let other = signed(PATH).peer("[2001:db8:0:1::1]:1");
    assert_eq!(world.send(other.build()).await.status, 200);
}

#[tokio::test]
async fn only_a_trusted_proxy_says_whose_window_it_is() {
    let mut config = config();
    config.trusted_proxies = vec!["10.0.0.0/8".to_owned()];
    let world = World::with(config);
    for n in 0..100 {
        // The client writes a new first entry each time; the proxy appends the address it saw.
        let request = signed(PATH)
            .peer("10.0.0.1:1")
            .header("x-forwarded-for", &format!("1.2.3.{n}, 198.51.100.7"));
        assert_eq!(world.send(request.build()).await.status, 200);
    }
    let through_proxy = signed(PATH)
        .peer("10.0.0.2:1")
        .header("x-forwarded-for", "198.51.100.7");
    assert_eq!(world.send(through_proxy.build()).await.status, 429);
    let lying = signed(PATH)
        .peer("203.0.113.1:1")
        .header("x-forwarded-for", "198.51.100.7");
    assert_eq!(world.send(lying.build()).await.status, 200);
}

#[tokio::test]
async fn health_is_not_limited() {
    let world = World::new();
    for _ in 0..150 {
        assert_eq!(world.send(anonymous("/health").build()).await.status, 200);
    }
}

#[tokio::test]
async fn the_older_headers_are_sent_when_configured() {
    let mut config = config();
    config.older_rate_headers = true;
    let answer = World::with(config).get(PATH).await;
    assert_eq!(answer.header("ratelimit-limit"), Some("100"));
    assert_eq!(answer.header("ratelimit-remaining"), Some("99"));
    assert_eq!(answer.header("ratelimit-reset"), Some("60"));
}

#[derive(Debug)]
struct Broken;

#[async_trait]
impl Limiter for Broken {
    async fn take(&self, _: RateKey, _: &Policy, _: Timestamp) -> Result<Usage, LimiterError> {
        Err(LimiterError("no connection".to_owned()))
    }
}

#[tokio::test]
async fn a_limiter_that_fails_is_replaced_by_the_memory() {
    let world = World::with_limiter(config(), Arc::new(Broken));
    for _ in 0..100 {
        assert_eq!(world.get(PATH).await.status, 200);
    }
    assert_eq!(world.get(PATH).await.status, 429);
}
