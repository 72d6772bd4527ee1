//! Tests of the rate limit.

use std::time::Duration;

use core_cloudflare_fake::RateLimit;

use super::world::{Reply, World};

const LIMIT: RateLimit = RateLimit {
    requests: 3,
    window: Duration::from_mins(5),
};

fn header(reply: &Reply, name: &str) -> String {
    reply.headers[name].to_str().unwrap().to_owned()
}

/// Creates a world with a rate limit, in which time advances only manually, for the fake and for its client.
async fn world_with_rate_limit() -> World {
    tokio::time::pause();
    let world = World::start().await;
    world.fake.set_rate_limit(LIMIT);
    world
}

#[tokio::test]
async fn client_above_the_limit_is_blocked_for_a_window() {
    let world = world_with_rate_limit().await;
    for remaining in (0..3).rev() {
        let reply = world.get("/user").await;
        assert_eq!(
            header(&reply, "ratelimit"),
            format!("\"default\";r={remaining};t=300")
        );
        assert_eq!(header(&reply, "ratelimit-policy"), "\"burst\";q=3;w=300");
    }
    let blocked = world.get("/user").await;
    assert_eq!(blocked.failure(), (429, 10429));
    assert_eq!(header(&blocked, "retry-after"), "300");
    tokio::time::advance(Duration::from_secs(299)).await;
    assert_eq!(world.get("/user").await.status, 429);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(world.get("/user").await.status, 200);
}

#[tokio::test]
async fn requests_of_earlier_windows_do_not_count() {
    let world = world_with_rate_limit().await;
    for _ in 0..3 {
        assert_eq!(world.get("/user").await.status, 200);
    }
    tokio::time::advance(LIMIT.window).await;
    assert_eq!(world.get("/user").await.status, 200);
}
