//! The rate limit of each API key.

use std::time::Duration;

use core_domain::gateway::RateKind;

use super::world::{
    API_KEY, World, anonymous, api_key_identity, config, resolves_to, session_request,
};
use crate::world::Answer;

const PATH: &str = "/api/v1/platforms";

/// Returns a gateway with an API key of this limit. The limits of each client are too high to matter.
fn world(requests_per_minute: u32) -> World {
    let mut config = config();
    for kind in [RateKind::Default, RateKind::Client] {
        let window = Duration::from_secs(60);
        config.rates.set(kind, 100_000, window).unwrap();
    }
    let world = World::with(config);
    let program = resolves_to(api_key_identity(requests_per_minute));
    world.iam.reply_to(API_KEY, program);
    world
}

async fn call_from(world: &World, peer: &str, path: &str) -> Answer {
    let request = anonymous(path).peer(peer).header("x-api-key", API_KEY);
    world.send(request.build()).await
}

#[tokio::test(start_paused = true)]
async fn every_request_with_an_api_key_counts_regardless_of_client_and_cache() {
    let world = world(3);
    for (peer, path) in [
        ("203.0.113.9:1", PATH),
        ("203.0.113.9:1", "/api/v1/stacks"),
        ("203.0.113.10:1", PATH),
    ] {
        assert_eq!(call_from(&world, peer, path).await.status, 200);
    }
    assert_eq!(world.iam.lookups(), 1);
    world.clock.advance(Duration::from_millis(20_500));
    let refused = call_from(&world, "203.0.113.11:1", PATH).await;
    let refused = refused.expect_error(429, "RATE_LIMITED");
    assert_eq!(refused.header("retry-after"), "40");
    assert_eq!(refused.header("ratelimit-policy"), "\"api-key\";q=3;w=60");
    assert_eq!(refused.header("ratelimit"), "\"api-key\";r=0;t=40");
    assert_eq!(refused.json["error"]["details"]["retryAfter"], 40);
    // The limit does not apply to other credentials of the same client.
    let session = session_request(PATH).peer("203.0.113.11:1").build();
    assert_eq!(world.send(session).await.status, 200);
    world.clock.advance(Duration::from_secs(40));
    let again = call_from(&world, "203.0.113.11:1", PATH).await;
    assert_eq!(again.status, 200);
    assert_eq!(world.received_requests().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn an_api_key_over_its_limit_is_not_a_failed_authentication() {
    let world = world(1);
    for n in 0..30 {
        let expected = if n == 0 { 200 } else { 429 };
        let answer = call_from(&world, "203.0.113.9:1", PATH).await;
        assert_eq!(answer.status, expected);
        let policy = answer.header("ratelimit-policy");
        assert!(!policy.contains("authentication"), "{policy}");
    }
}
