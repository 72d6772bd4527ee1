//! The rate limit of a key that calls IAM itself.

use std::time::Duration;

use core_domain::gateway::RateKind;
use serde_json::{Value, json};

use super::{OrganizationOwner, ROLES};
use crate::world::World;

#[tokio::test]
async fn calls_to_iam_and_validations_share_one_limit_per_minute() {
    let world = World::with(|app| {
        let minute = Duration::from_secs(60);
        app.options
            .rates
            .set(RateKind::Default, 1_000, minute)
            .unwrap();
    });
    let ada = OrganizationOwner::create_in(&world).await;
    let (_, secret) = ada.key(&world, json!({ "requestsPerMinute": 3 })).await;
    let (_, other) = ada.key(&world, json!({ "requestsPerMinute": 3 })).await;
    let path = format!("{ROLES}?orgId={}", ada.org);
    let used = world
        .send_with_key(&secret, "GET", &path, Value::Null)
        .await;
    let _ = used.expect(200);
    world.tick(10);
    for remaining in [1, 0] {
        let found = world.validate_key(&secret).await;
        let limit = &found["rateLimit"];
        assert_eq!(
            (&limit["remaining"], &limit["resetAfter"]),
            (&json!(remaining), &json!(50))
        );
    }
    assert_eq!(world.key_verdict(&secret).await, "RATE_LIMITED");
    let refused = world
        .send_with_key(&secret, "GET", &path, Value::Null)
        .await;
    let refused = refused.expect_error(429, "RATE_LIMITED");
    assert_eq!(refused.header("retry-after"), "50");
    assert_eq!(world.key_verdict(&other).await, "VALID");
    world.tick(50);
    assert_eq!(world.key_verdict(&secret).await, "VALID");
}
