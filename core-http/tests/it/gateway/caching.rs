//! The cache of the identities that IAM resolves.

use core_http::kernel::testing::session_of;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use core_domain::gateway::RateKind;
use core_domain::kernel::{ApiKeyId, Caller, Clock, PlatformId, SessionId};

use super::world::{
    API_KEY, FakeReply, SESSION, World, anonymous, config, owner, resolves_to, session_request,
};
use core_http::gateway::ResolvedCredential;
use core_http::kernel::Body;
use futures_util::future::BoxFuture;
use http::Response;
use tower::ServiceExt;

const PATH: &str = "/api/v1/platforms";

/// The session of [`owner`].
fn session() -> SessionId {
    session_of("olga")
}

/// The platform of [`owner`].
fn platform() -> PlatformId {
    PlatformId::parse("p-1").unwrap()
}

fn suspended_owner() -> ResolvedCredential {
    ResolvedCredential {
        suspended: true,
        ..owner()
    }
}

#[tokio::test(start_paused = true)]
async fn line_25_an_identity_is_cached_for_a_second() {
    let world = World::new();
    for _ in 0..3 {
        assert_eq!(world.get(PATH).await.status, 200);
    }
    assert_eq!(world.iam.lookups(), 1);
    tokio::time::advance(Duration::from_millis(1_000)).await;
    world.get(PATH).await;
    assert_eq!(world.iam.lookups(), 2);
}

#[tokio::test(start_paused = true)]
async fn line_25_an_invalidated_session_is_looked_up_again_at_once() {
    let world = World::new();
    assert_eq!(world.get(PATH).await.status, 200);
    world.iam.forget(SESSION);
    assert_eq!(world.get(PATH).await.status, 200);
    world.gateway.invalidate().session(&session());
    assert_eq!(world.get(PATH).await.status, 401);
}

#[tokio::test(start_paused = true)]
async fn line_25_without_invalidation_a_sign_out_takes_effect_within_a_second() {
    let world = World::new();
    world.get(PATH).await;
    world.iam.forget(SESSION);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(world.get(PATH).await.status, 401);
}

#[tokio::test(start_paused = true)]
async fn line_25_an_invalidated_platform_is_looked_up_again_at_once() {
    let world = World::new();
    assert_eq!(world.get(PATH).await.status, 200);
    world.iam.reply_to(SESSION, resolves_to(suspended_owner()));
    world.gateway.invalidate().platform(&platform());
    assert_eq!(world.get(PATH).await.status, 451);
    world.iam.reply_to(SESSION, resolves_to(owner()));
    world.gateway.invalidate().platform(&platform());
    assert_eq!(world.get(PATH).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn line_25_an_identity_requested_before_an_invalidation_is_not_used_after_it() {
    let world = World::new();
    // The first request has received its identity but has not used it yet when the platform is invalidated.
    let first = world.get(PATH);
    let mut first = std::pin::pin!(first);
    assert!(futures_util::poll!(&mut first).is_pending());
    world.iam.reply_to(SESSION, resolves_to(suspended_owner()));
    world.gateway.invalidate().platform(&platform());
    assert_eq!(world.get(PATH).await.status, 451);
    assert_eq!(first.await.status, 451);
    assert_eq!(world.get(PATH).await.status, 451);
}

#[tokio::test(start_paused = true)]
async fn an_identity_that_arrives_after_its_session_was_invalidated_is_looked_up_again() {
    let world = World::new();
    let first = world.get(PATH);
    let mut first = std::pin::pin!(first);
    assert!(futures_util::poll!(&mut first).is_pending());
    world.iam.forget(SESSION);
    world.gateway.invalidate().session(&session());
    assert_eq!(first.await.status, 401);
    assert_eq!(world.iam.lookups(), 2);
}

#[tokio::test(start_paused = true)]
async fn invalidating_a_session_key_or_platform_leaves_other_identities_cached() {
    let world = World::new();
    let other = ResolvedCredential {
        caller: Arc::new(crate::world::admin("p-2")),
        ..owner()
    };
    let by_key = ResolvedCredential {
        caller: Arc::new(Caller::ApiKey {
            key_id: ApiKeyId::parse("k-1").unwrap(),
            user_id: None,
            membership: other.caller.membership().cloned(),
        }),
        ..owner()
    };
    world.iam.reply_to("other-session", resolves_to(other));
    world.iam.reply_to(API_KEY, resolves_to(by_key));
    let bearer = |token: &str| {
        let request = anonymous(PATH).header("authorization", &format!("Bearer {token}"));
        world.send(request.build())
    };
    let ask_all = async || {
        let before = world.iam.lookups();
        assert_eq!(world.get(PATH).await.status, 200);
        assert_eq!(bearer("other-session").await.status, 200);
        let key = anonymous(PATH).header("x-api-key", API_KEY).build();
        assert_eq!(world.send(key).await.status, 200);
        world.iam.lookups() - before
    };
    let invalidate = world.gateway.invalidate();
    assert_eq!(ask_all().await, 3);
    assert_eq!(ask_all().await, 0);
    invalidate.session(&session());
    assert_eq!(ask_all().await, 1);
    invalidate.platform(&platform());
    assert_eq!(ask_all().await, 1);
    invalidate.api_key(&ApiKeyId::parse("k-1").unwrap());
    assert_eq!(ask_all().await, 1);
    invalidate.session(&SessionId::parse("somebody-elses").unwrap());
    invalidate.platform(&PlatformId::parse("somebody-elses").unwrap());
    assert_eq!(ask_all().await, 0);
    invalidate.all();
    assert_eq!(ask_all().await, 3);
}

// Boxed because the compiler cannot prove `Send` for the body's error type inside an async block.
fn send_boxed(
    world: &World,
    request: super::world::Req,
) -> BoxFuture<'static, Result<Response<Body>, Infallible>> {
    Box::pin(world.gateway.clone().oneshot(request.build()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn line_25_under_concurrent_requests_no_identity_outlives_an_acknowledged_invalidation() {
    let mut config = config();
    config.session_cache = Duration::from_secs(5);
    for kind in [RateKind::Default, RateKind::Client] {
        let minute = Duration::from_secs(60);
        config.rates.set(kind, u32::MAX, minute).unwrap();
    }
    let world = Arc::new(World::with(config));
    for round in 0..100 {
        let token = format!("session-token-{round}");
        world.iam.reply_to(&token, resolves_to(owner()));
        let acknowledged = Arc::new(AtomicBool::new(false));
        let readers: Vec<_> = (0..4)
            .map(|_| {
                let (world, acknowledged) = (Arc::clone(&world), Arc::clone(&acknowledged));
                let token = token.clone();
                tokio::spawn(async move {
                    loop {
                        let revoked = acknowledged.load(Ordering::SeqCst);
                        let request = anonymous(PATH)
                            .header("authorization", &format!("Bearer {token}"))
                            // Without a peer address, a rejected credential does not lock out the other readers.
                            .without_peer();
                        let status = send_boxed(&world, request).await.unwrap().status();
                        let status = status.as_u16();
                        if revoked {
                            return status;
                        }
                        assert!(status == 200 || status == 401, "{status}");
                    }
                })
            })
            .collect();
        tokio::task::yield_now().await;
        world.iam.forget(&token);
        world.gateway.invalidate().session(&session());
        acknowledged.store(true, Ordering::SeqCst);
        for reader in readers {
            assert_eq!(reader.await.unwrap(), 401, "in round {round}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_requests_share_a_failed_lookup() {
    let world = World::new();
    world.iam.reply_to(SESSION, FakeReply::Unavailable);
    let requests = (0..20).map(|_| world.get(PATH));
    let answers = futures_util::future::join_all(requests).await;
    assert!(answers.iter().all(|answer| answer.status == 503));
    assert_eq!(world.iam.lookups(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_shared_lookup_survives_the_client_that_started_it() {
    let world = World::new();
    let first = world.get(PATH);
    let second = world.get(PATH);
    let mut second = std::pin::pin!(second);
    {
        let mut first = std::pin::pin!(first);
        assert!(futures_util::poll!(&mut first).is_pending());
        assert!(futures_util::poll!(&mut second).is_pending());
    }
    assert_eq!(second.await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn line_25_an_identity_is_not_cached_beyond_the_expiry_of_the_session() {
    let world = World::new();
    let ends = world.clock.now().plus(Duration::from_millis(300));
    world.iam.reply_to(
        SESSION,
        resolves_to(ResolvedCredential {
            expires_at: Some(ends),
            ..owner()
        }),
    );
    assert_eq!(world.get(PATH).await.status, 200);
    world.clock.advance(Duration::from_millis(300));
    assert_eq!(world.get(PATH).await.status, 401);
}

#[tokio::test(start_paused = true)]
async fn line_25_concurrent_requests_with_one_token_share_a_lookup() {
    let world = World::new();
    let requests = (0..20).map(|_| world.get(PATH));
    let answers = futures_util::future::join_all(requests).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!(world.iam.lookups(), 1);
}

#[tokio::test(start_paused = true)]
async fn line_25_rejections_are_cached_and_failures_are_not() {
    let world = World::new();
    for _ in 0..2 {
        let wrong = anonymous(PATH).header("authorization", "Bearer wrong");
        assert_eq!(world.send(wrong.build()).await.status, 401);
    }
    assert_eq!(world.iam.lookups(), 1);
    world.iam.reply_to(SESSION, FakeReply::Unavailable);
    assert_eq!(world.get(PATH).await.status, 503);
    world.iam.reply_to(SESSION, resolves_to(owner()));
    assert_eq!(world.get(PATH).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn line_25_the_same_text_as_bearer_and_as_api_key_is_looked_up_twice() {
    let world = World::new();
    world
        .send(anonymous(PATH).header("x-api-key", API_KEY).build())
        .await;
    let bearer = anonymous(PATH).header("authorization", &format!("Bearer {API_KEY}"));
    world.send(bearer.build()).await;
    assert_eq!(world.iam.lookups(), 2);
}

#[tokio::test(start_paused = true)]
async fn line_25_a_ttl_of_zero_disables_the_cache() {
    let mut config = config();
    config.session_cache = Duration::ZERO;
    let world = World::with(config);
    for _ in 0..3 {
        assert_eq!(world.send(session_request(PATH).build()).await.status, 200);
    }
    assert_eq!(world.iam.lookups(), 3);
}

#[tokio::test(start_paused = true)]
async fn line_25_a_rejection_is_cached_for_a_second_and_a_failure_never_even_with_a_longer_ttl() {
    let mut config = config();
    config.session_cache = Duration::from_secs(5);
    let world = World::with(config);
    world.iam.forget(SESSION);
    let _ = world.get(PATH).await.expect(401);
    world.iam.reply_to(SESSION, resolves_to(owner()));
    tokio::time::advance(Duration::from_millis(999)).await;
    let _ = world.get(PATH).await.expect(401);
    assert_eq!(world.iam.lookups(), 1);
    tokio::time::advance(Duration::from_millis(1)).await;
    let _ = world.get(PATH).await.expect(200);
    world.iam.reply_to(API_KEY, FakeReply::Unavailable);
    for lookups in 3..6 {
        let by_key = anonymous(PATH).header("x-api-key", API_KEY);
        let _ = world.send(by_key.build()).await.expect(503);
        assert_eq!(world.iam.lookups(), lookups);
    }
}

#[tokio::test(start_paused = true)]
async fn line_25_without_invalidation_a_suspension_and_its_end_take_effect_within_the_ttl() {
    let world = World::new();
    let _ = world.get(PATH).await.expect(200);
    for (identity, status) in [(suspended_owner(), 451), (owner(), 200)] {
        world.iam.reply_to(SESSION, resolves_to(identity));
        tokio::time::advance(Duration::from_secs(1)).await;
        let _ = world.get(PATH).await.expect(status);
    }
}

#[tokio::test]
async fn line_25_the_cache_contains_no_token() {
    let world = World::new();
    let _ = world.get(PATH).await.expect(200);
    let by_key = anonymous(PATH).header("x-api-key", API_KEY);
    let _ = world.send(by_key.build()).await.expect(200);
    let state = format!("{:?}", world.gateway);
    // The fake IAM, which knows the tokens, is written before the cache.
    let (_, cache) = state.split_once("entries: {(").unwrap();
    assert!(
        !cache.contains(SESSION) && !cache.contains(API_KEY),
        "{cache}"
    );
}

#[test]
fn line_25_the_default_ttl_is_a_second() {
    // At most 5 seconds are accepted, see `line_56_invalid_settings_are_refused_by_name`.
    let config = core_http::gateway::GatewayConfig::default();
    assert_eq!(config.session_cache, Duration::from_secs(1));
}
