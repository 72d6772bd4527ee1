//! Tests of the rate limits.

use core_stripe_fake::{RateLimit, Settings};

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn requests_above_the_limits_are_refused_until_a_second_has_passed() {
    let settings = Settings {
        rate_limit: Some(RateLimit {
            account: 8,
            endpoint: 5,
        }),
        ..Settings::default()
    };
    let world = World::start_with(settings).await;
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(world.get("/v1/customers").await.status);
    }
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429]);
    let refused = world.get("/v1/customers/cus_1").await;
    assert_eq!(refused.status, 404);
    world.get("/v1/events").await.object();
    let refused = world.get("/v1/events").await;
    assert_eq!(refused.failure().2, "rate_limit");
    assert_eq!(
        refused.header("stripe-rate-limited-reason"),
        Some("global-rate")
    );
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    world.get("/v1/customers").await.object();
    world.fake.set_rate_limit(None);
    for _ in 0..20 {
        world.get("/v1/customers").await.object();
    }
}
