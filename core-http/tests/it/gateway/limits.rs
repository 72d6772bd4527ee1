//! The rate limits of the gateway: windows, classes, clients, and failures of the limiter.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use core_domain::gateway::{
    RateClass, RateKey, RateKind, RatePolicy, RateSubject, Usage, find_route,
};
use core_domain::iam::AttemptRefusal;
use core_domain::kernel::{Clock, Timestamp};
use core_domain::port::{RateLimiter, RateLimiterError};
use core_http::gateway::{InProcess, RouteTable, Upstream};
use core_http::kernel::MemoryRateLimiter;
use http::Method;

use super::captured::{self, captured_log};
use super::world::{World, anonymous, config, session_request};

const PATH: &str = "/api/v1/platforms";

#[tokio::test]
async fn line_14_the_101st_request_in_a_window_is_429_with_the_time_to_wait() {
    let world = World::new();
    let first = world.get(PATH).await;
    assert_eq!(first.header("ratelimit-policy"), "\"default\";q=100;w=60");
    assert_eq!(first.header("ratelimit"), "\"default\";r=99;t=60");
    assert_eq!(first.header("retry-after"), "");
    world.clock.advance(Duration::from_millis(10_500));
    for _ in 1..100 {
        assert_eq!(world.get(PATH).await.status, 200);
    }
    let refused = world.get(PATH).await.expect_error(429, "RATE_LIMITED");
    assert_eq!(refused.header("ratelimit"), "\"default\";r=0;t=50");
    assert_eq!(refused.header("retry-after"), "50");
    world.clock.advance(Duration::from_secs(50));
    assert_eq!(world.get(PATH).await.status, 200);
}

#[tokio::test]
async fn line_11_queries_and_spellings_of_a_path_share_its_window() {
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
async fn line_11_invalid_paths_share_one_window() {
    let world = World::new();
    for n in 0..100 {
        assert_eq!(world.get(&format!("/api//{n}")).await.status, 400);
    }
    assert_eq!(world.get("/api//another").await.status, 429);
}

fn routes() -> RouteTable {
    RouteTable::parse([
        "POST /api/auth/sign-in/email strict",
        "GET /api/auth/magic-link/{token} strict",
        "GET /",
        "GET /{id}",
    ])
    .unwrap()
}

#[tokio::test]
async fn line_16_a_strict_route_is_limited_to_ten_requests_including_failed_ones() {
    let world = World::with_routes(config(), routes());
    let sign_in = || anonymous("/api/v1/iam/api/auth/sign-in/email").method(Method::POST);
    for _ in 0..10 {
        assert_eq!(world.send(sign_in().build()).await.status, 401);
    }
    let answer = world.send(sign_in().build()).await;
    assert_eq!(answer.status, 429);
    assert_eq!(answer.header("ratelimit-policy"), "\"strict\";q=10;w=60");
}

#[tokio::test]
async fn a_strict_route_has_one_window_for_all_path_parameters() {
    let world = World::with_routes(config(), routes());
    let guess = |n: usize| format!("/api/v1/iam/api/auth/magic-link/guess-{n}");
    for n in 0..10 {
        assert_eq!(world.get(&guess(n)).await.status, 200);
    }
    assert_eq!(world.get(&guess(10)).await.status, 429);
}

#[test]
fn an_in_process_service_knows_its_routes_and_their_rate_classes() {
    let upstream = InProcess::service(crate::world::World::new().iam.0);
    let class = |method: Method, path: &str| {
        let destination = find_route(&format!("/api/v1/iam{path}")).unwrap();
        let route = destination.route().unwrap().clone();
        let found = upstream.routes().unwrap().class(&method, &route)?;
        Some(found.class)
    };
    let (default, strict) = (Some(RateClass::Default), Some(RateClass::Strict));
    for (method, path, expected) in [
        (Method::POST, "/api/auth/sign-in/email", strict),
        (Method::POST, "/api/auth/sign-up/email", strict),
        (Method::POST, "/api/auth/organization/invite-member", strict),
        (
            Method::POST,
            "/api/auth/organization/cancel-invitation",
            strict,
        ),
        (
            Method::POST,
            "/api/core/organizations/o-1/invitations",
            strict,
        ),
        (
            Method::DELETE,
            "/api/core/organizations/o-1/invitations/i-1",
            strict,
        ),
        (Method::POST, "/api/auth/sign-out", default),
        (Method::HEAD, "/api/sessions", default),
        (Method::DELETE, "/api/sessions/s-1", default),
        (Method::GET, "/livez", default),
        (Method::GET, "/api/auth/sign-in/email", None),
        (Method::GET, "/nothing", None),
    ] {
        assert_eq!(class(method.clone(), path), expected, "{method} {path}");
    }
}

#[tokio::test]
async fn routes_that_do_not_exist_share_one_window() {
    let world = World::with_routes(config(), routes());
    for n in 0..100 {
        let (path, status) = match n % 3 {
            0 => (format!("/api/v1/platforms/{n}/nothing/here"), 200),
            1 => (format!("/api/v{n}/unknown"), 404),
            _ => (format!("/outside/{n}"), 404),
        };
        assert_eq!(world.get(&path).await.status, status, "{path}");
    }
    let wrong_method = session_request("/api/v1/platforms/p-1").method(Method::DELETE);
    assert_eq!(world.send(wrong_method.build()).await.status, 429);
    assert_eq!(world.get("/another").await.status, 429);
    assert_eq!(world.get("/api/v1/platforms/p-1").await.status, 200);
}

#[tokio::test]
async fn line_12_a_flood_of_random_paths_does_not_reset_a_window() {
    for made_up in ["/api/v1/platforms/x/", "/api/v1/platforms/", "/nothing/"] {
        let limiter = Arc::new(MemoryRateLimiter::with_capacity(2_000));
        let world = World::with_ports(config(), limiter, Some(Arc::new(routes())));
        for _ in 0..100 {
            assert_eq!(world.get(PATH).await.status, 200);
        }
        for n in 0..3_000 {
            world.get(&format!("{made_up}{n}")).await;
        }
        assert_eq!(world.get(PATH).await.status, 429, "{made_up}");
    }
}

#[tokio::test]
async fn line_13_a_client_is_limited_to_a_thousand_requests_a_minute_over_all_paths() {
    let world = World::new();
    let ask = |n: usize| format!("/api/v1/platforms/p-{n}");
    for n in 0..1_000 {
        assert_eq!(world.get(&ask(n)).await.status, 200);
    }
    let refused = world.get(&ask(1_000)).await;
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("ratelimit-policy"), "\"client\";q=1000;w=60");
    assert_eq!(refused.header("ratelimit"), "\"client\";r=0;t=60");
    assert_eq!(refused.header("retry-after"), "60");
    let other = session_request(&ask(1_000)).peer("203.0.113.10:1");
    assert_eq!(world.send(other.build()).await.status, 200);
    assert_eq!(world.send(anonymous("/health").build()).await.status, 200);
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(world.get(&ask(1_000)).await.status, 200);
}

#[tokio::test]
async fn requests_without_a_peer_are_limited_by_path_alone() {
    let world = World::new();
    for n in 0..1_100 {
        let request = session_request(&format!("/api/v1/platforms/p-{}", n % 11)).without_peer();
        assert_eq!(world.send(request.build()).await.status, 200);
    }
    let request = session_request("/api/v1/platforms/p-0").without_peer();
    assert_eq!(world.send(request.build()).await.status, 429);
}

#[tokio::test]
async fn line_16_a_preflight_counts_in_the_window_of_the_request_it_asks_for() {
    let world = World::with_routes(config(), routes());
    let path = "/api/v1/iam/api/auth/sign-in/email";
    let preflight = || {
        anonymous(path)
            .method(Method::OPTIONS)
            .header("origin", "https://app.example.com")
            .header("access-control-request-method", "POST")
            .build()
    };
    for _ in 0..10 {
        assert_eq!(world.send(preflight()).await.status, 204);
    }
    assert_eq!(world.send(preflight()).await.status, 429);
    let sign_in = anonymous(path).method(Method::POST);
    assert_eq!(world.send(sign_in.build()).await.status, 429);
}

#[tokio::test]
async fn the_limits_are_configurable() {
    let mut config = config();
    let hour = Duration::from_secs(3_600);
    config.rates.set(RateKind::Default, 2, hour).unwrap();
    let world = World::with(config);
    let first = world.get(PATH).await;
    assert_eq!(first.header("ratelimit-policy"), "\"default\";q=2;w=3600");
    world.get(PATH).await;
    assert_eq!(world.get(PATH).await.header("retry-after"), "3600");
}

#[tokio::test]
async fn line_11_each_client_has_its_own_window_and_an_ipv6_client_is_its_64_bit_prefix() {
    let world = World::new();
    for n in 0..100 {
        let peer = format!("[2001:db8::{n:x}]:1");
        assert_eq!(
            world
                .send(session_request(PATH).peer(&peer).build())
                .await
                .status,
            200
        );
    }
    let same = session_request(PATH).peer("[2001:db8::ffff]:1");
    assert_eq!(world.send(same.build()).await.status, 429);
    let other = session_request(PATH).peer("[2001:db8:0:1::1]:1");
    assert_eq!(world.send(other.build()).await.status, 200);
}

#[tokio::test]
async fn line_10_only_a_trusted_proxy_can_forward_the_client_address() {
    let mut config = config();
    config.trusted_proxies = vec!["10.0.0.0/8".to_owned()];
    let world = World::with(config);
    for n in 0..100 {
        // The client forges a different first address each time; the proxy appends the address that it sees.
        let request = session_request(PATH)
            .peer("10.0.0.1:1")
            .header("x-forwarded-for", &format!("1.2.3.{n}, 198.51.100.7"));
        assert_eq!(world.send(request.build()).await.status, 200);
    }
    let through_proxy = session_request(PATH)
        .peer("10.0.0.2:1")
        .header("x-forwarded-for", "198.51.100.7");
    assert_eq!(world.send(through_proxy.build()).await.status, 429);
    let lying = session_request(PATH)
        .peer("203.0.113.1:1")
        .header("x-forwarded-for", "198.51.100.7");
    assert_eq!(world.send(lying.build()).await.status, 200);
}

#[tokio::test]
async fn line_06_health_is_not_limited() {
    let world = World::new();
    for _ in 0..150 {
        assert_eq!(world.send(anonymous("/health").build()).await.status, 200);
    }
}

#[tokio::test]
async fn line_14_the_legacy_headers_are_sent_when_configured() {
    let mut config = config();
    config.older_rate_headers = true;
    let answer = World::with(config).get(PATH).await;
    assert_eq!(answer.header("ratelimit-limit"), "100");
    assert_eq!(answer.header("ratelimit-remaining"), "99");
    assert_eq!(answer.header("ratelimit-reset"), "60");
}

/// A rate limiter that is unreachable or, if `hangs` is set, never responds. It counts if `works` is set.
#[derive(Debug, Default)]
struct BrokenRateLimiter {
    hangs: bool,
    works: AtomicBool,
    memory: MemoryRateLimiter,
    calls: AtomicUsize,
}

#[async_trait]
impl RateLimiter for BrokenRateLimiter {
    async fn count_request(
        &self,
        key: RateKey,
        policy: &RatePolicy,
        now: Timestamp,
    ) -> Result<Usage, RateLimiterError> {
        if self.works.load(Ordering::SeqCst) {
            return Ok(self.memory.count(key, policy, now));
        }
        self.fail().await
    }

    async fn uncount_request(
        &self,
        _: RateKey,
        _: &RatePolicy,
        _: Timestamp,
    ) -> Result<bool, RateLimiterError> {
        self.fail().await
    }

    async fn begin_attempt(
        &self,
        _: RateKey,
        _: Timestamp,
    ) -> Result<Option<AttemptRefusal>, RateLimiterError> {
        self.fail().await
    }

    async fn forget_attempts(&self, _: RateKey) -> Result<(), RateLimiterError> {
        self.fail().await
    }
}

impl BrokenRateLimiter {
    async fn fail<T>(&self) -> Result<T, RateLimiterError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if self.hangs {
            std::future::pending::<()>().await;
        }
        let cause = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        Err(RateLimiterError::Unavailable(Box::new(cause)))
    }
}

#[tokio::test]
async fn line_15_a_failing_limiter_falls_back_to_memory() {
    let world = World::with_limiter(config(), Arc::new(BrokenRateLimiter::default()));
    for _ in 0..100 {
        assert_eq!(world.get(PATH).await.status, 200);
    }
    assert_eq!(world.get(PATH).await.status, 429);
}

#[tokio::test]
async fn a_failed_limiter_is_retried_after_a_second() {
    let limiter = Arc::new(BrokenRateLimiter::default());
    let world = World::with_limiter(config(), Arc::clone(&limiter) as _);
    for _ in 0..10 {
        world.get(PATH).await;
    }
    assert_eq!(limiter.calls.load(Ordering::SeqCst), 1);
    world.clock.advance(Duration::from_secs(1));
    world.get(PATH).await;
    assert_eq!(limiter.calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_change_of_the_limiters_state_is_logged_once() {
    captured::start();
    let limiter = Arc::new(BrokenRateLimiter::default());
    let world = World::with_limiter(config(), Arc::clone(&limiter) as _);
    for round in 1..3 {
        limiter.works.store(false, Ordering::SeqCst);
        for _ in 0..5 {
            world.clock.advance(Duration::from_secs(1));
            world.get(PATH).await;
        }
        limiter.works.store(true, Ordering::SeqCst);
        for _ in 0..5 {
            world.clock.advance(Duration::from_secs(1));
            world.get(PATH).await;
        }
        let log = captured_log();
        for message in [
            "the rate limiter failed; counting in memory",
            "the rate limiter works again",
        ] {
            assert_eq!(log.matches(message).count(), round, "{message}: {log}");
        }
    }
}

#[tokio::test]
async fn a_limiter_that_failed_is_used_after_the_clock_was_set_back() {
    let limiter = Arc::new(BrokenRateLimiter::default());
    let world = World::with_limiter(config(), Arc::clone(&limiter) as _);
    world.clock.advance(Duration::from_secs(3_600));
    world.get(PATH).await;
    let earlier = world.clock.now().minus(Duration::from_secs(3_600));
    world.clock.set(earlier);
    world.get(PATH).await;
    assert_eq!(limiter.calls.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn line_15_a_limiter_that_does_not_respond_falls_back_after_its_timeout() {
    let mut config = config();
    config.limiter_timeout = Duration::from_millis(50);
    let limiter = BrokenRateLimiter {
        hangs: true,
        ..BrokenRateLimiter::default()
    };
    let world = World::with_limiter(config, Arc::new(limiter));
    let began = tokio::time::Instant::now();
    for _ in 0..10 {
        assert_eq!(world.get(PATH).await.status, 200);
    }
    assert_eq!(began.elapsed(), Duration::from_millis(50));
}

#[tokio::test]
async fn line_10_an_invalid_forwarded_address_ends_the_walk_at_the_last_trusted_hop() {
    let mut config = config();
    config.trusted_proxies = vec!["10.0.0.0/8".to_owned()];
    let world = World::with(config);
    let through = |forwarded: &str| {
        session_request(PATH)
            .peer("10.0.0.1:1")
            .header("x-forwarded-for", forwarded)
            .build()
    };
    for n in 0..100 {
        let forged = format!("198.51.100.{n}, nonsense, 10.9.9.9");
        let _ = world.send(through(&forged)).await.expect(200);
    }
    let _ = world
        .send(through("1.1.1.1, unknown, 10.9.9.9"))
        .await
        .expect(429);
    let _ = world.send(through("1.1.1.1, 10.9.9.9")).await.expect(200);
}

#[tokio::test]
async fn line_10_by_default_no_proxy_is_trusted() {
    let world = World::new();
    for n in 0..100 {
        let forged = session_request(PATH)
            .peer("127.0.0.1:1")
            .header("x-forwarded-for", &format!("198.51.100.{n}"))
            .header("x-real-ip", &format!("198.51.100.{n}"))
            .header("forwarded", &format!("for=198.51.100.{n}"));
        let _ = world.send(forged.build()).await.expect(200);
    }
    let own = session_request(PATH).peer("127.0.0.1:2");
    let _ = world.send(own.build()).await.expect(429);
}

#[tokio::test]
async fn line_11_a_mapped_ipv6_address_is_the_ipv4_client() {
    let world = World::new();
    for _ in 0..50 {
        for peer in ["[::ffff:198.51.100.7]:1", "198.51.100.7:1"] {
            let request = session_request(PATH).peer(peer);
            let _ = world.send(request.build()).await.expect(200);
        }
    }
    let request = session_request(PATH).peer("[::ffff:198.51.100.7]:9");
    let _ = world.send(request.build()).await.expect(429);
}

#[tokio::test]
async fn line_11_an_encoded_letter_is_no_other_path() {
    let world = World::new();
    for n in 0..100 {
        let path = ["/api/v1/platforms/abc", "/api/v1/platforms/%61b%63/"][n % 2];
        let _ = world.get(path).await.expect(200);
    }
    let _ = world.get("/api/v1/platforms/a%62c?x=1").await.expect(429);
}

#[test]
fn line_12_concurrent_requests_of_a_key_are_all_counted() {
    let limiter = MemoryRateLimiter::new();
    let policy = RatePolicy::new("test", 1_000, Duration::from_secs(60)).unwrap();
    let client = "198.51.100.7".parse().unwrap();
    let key = RateKey::new(&policy, client, RateSubject::Path(PATH));
    let count = || {
        let counted = (0..500).filter(|_| {
            limiter
                .count(key, &policy, Timestamp::from_millis(0))
                .is_allowed
        });
        counted.count()
    };
    let allowed: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(count)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(allowed, 1_000);
}

#[tokio::test]
async fn line_13_the_paths_below_a_prefix_have_own_windows_or_share_one_if_configured() {
    let mut shared = config();
    shared.rate_by_prefix = true;
    for (config, last) in [(config(), 200), (shared, 429)] {
        let world = World::with(config);
        for n in 0..100 {
            let path = format!("/api/v1/platforms/p-{n}");
            let _ = world.get(&path).await.expect(200);
        }
        let another = "/api/v1/platforms/p-100";
        let _ = world.get(another).await.expect(last);
        // The other prefix of the same service and other clients have own windows.
        let _ = world.get("/api/v1/onboarding/start").await.expect(200);
        let neighbour = session_request(another).peer("203.0.113.10:1");
        let _ = world.send(neighbour.build()).await.expect(200);
    }
}

#[tokio::test]
async fn line_14_every_429_says_in_whole_seconds_when_the_window_ends() {
    let mut refusals = Vec::new();
    for (kind, quota) in [
        (RateKind::Default, 1),
        (RateKind::Client, 1),
        (RateKind::FailedAuthentications, 1),
        (RateKind::Strict, 1),
    ] {
        let mut config = config();
        let hour = Duration::from_secs(3_600);
        config.rates.set(kind, quota, hour).unwrap();
        let world = World::with_routes(config, routes());
        let path = match kind {
            RateKind::Strict => "/api/v1/iam/api/auth/magic-link/x",
            _ => PATH,
        };
        let wrong = || anonymous(path).header("authorization", "Bearer wrong");
        let _ = world.send(wrong().build()).await.expect(401);
        // In the last millisecond of the window, the time to wait is still a whole second.
        for (elapsed, wait) in [(0, 3_600), (1_999_500, 1_601), (1_600_499, 1)] {
            world.clock.advance(Duration::from_millis(elapsed));
            let refused = world.send(wrong().build()).await;
            let refused = refused.expect_error(429, "RATE_LIMITED");
            assert_eq!(refused.header("retry-after"), wait.to_string(), "{kind:?}");
            refusals.push((kind, refused));
        }
    }
    for (kind, refused) in refusals {
        let limit = refused.header("ratelimit");
        let (name, values) = limit.split_once(";r=0;t=").unwrap();
        assert_eq!(values, refused.header("retry-after"), "{kind:?}");
        let policy = refused.header("ratelimit-policy");
        assert_eq!(policy, format!("{name};q=1;w=3600"), "{kind:?}");
        let wait: u64 = values.parse().unwrap();
        assert_eq!(refused.json["error"]["details"]["retryAfter"], wait);
    }
}

#[tokio::test]
async fn line_15_a_fixed_window_lets_twice_its_quota_through_at_its_edge_and_no_more() {
    let world = World::new();
    let _ = world.get(PATH).await.expect(200);
    world.clock.advance(Duration::from_millis(59_500));
    let mut allowed = 0;
    for _ in 0..2 {
        while world.get(PATH).await.status == 200 {
            allowed += 1;
        }
        world.clock.advance(Duration::from_millis(500));
    }
    assert_eq!(allowed, 199);
    let _ = world.get(PATH).await.expect(429);
}

#[tokio::test]
async fn line_15_refused_requests_do_not_extend_the_wait() {
    let world = World::new();
    for _ in 0..100 {
        let _ = world.get(PATH).await.expect(200);
    }
    for left in (1..=60).rev() {
        let refused = world.get(PATH).await.expect(429);
        assert_eq!(refused.header("retry-after"), left.to_string());
        world.clock.advance(Duration::from_secs(1));
    }
    let _ = world.get(PATH).await.expect(200);
}

#[tokio::test]
async fn line_16_preflights_do_not_count_if_so_configured() {
    let mut config = config();
    config.count_preflights = false;
    let world = World::with_routes(config, routes());
    let path = "/api/v1/iam/api/auth/sign-in/email";
    for _ in 0..200 {
        let preflight = anonymous(path)
            .method(Method::OPTIONS)
            .header("origin", "https://app.example.com")
            .header("access-control-request-method", "POST");
        let answer = world.send(preflight.build()).await.expect(204);
        assert_eq!(answer.header("ratelimit"), "");
    }
    let sign_in = anonymous(path).method(Method::POST);
    let answer = world.send(sign_in.build()).await.expect(401);
    assert_eq!(answer.header("ratelimit"), "\"strict\";r=9;t=60");
    // Other requests with this method count.
    let options = anonymous(path).method(Method::OPTIONS);
    let answer = world.send(options.build()).await;
    assert_ne!(answer.header("ratelimit"), "");
}

#[tokio::test]
async fn line_10_proxies_that_cannot_be_parsed_are_refused_at_the_start() {
    for wrong in [
        "",
        "*",
        "all",
        "10.0.0.0/33",
        "proxy.example.org",
        "10.0.0.1, 10.0.0.2",
    ] {
        let mut config = config();
        config.trusted_proxies = vec!["10.0.0.1".to_owned(), wrong.to_owned()];
        let error = World::refused_setting(config);
        assert!(error.starts_with("trusted_proxies: "), "{wrong}: {error}");
    }
}
