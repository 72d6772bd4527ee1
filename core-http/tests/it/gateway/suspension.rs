//! Requests of a suspended platform.

use super::world::{API_KEY, KEY, SESSION, World, anonymous, owner, resolves_to};
use core_http::gateway::ResolvedCredential;

fn suspended_world() -> World {
    let world = World::new();
    for secret in [SESSION, API_KEY] {
        let suspended = ResolvedCredential {
            suspended: true,
            ..owner()
        };
        world.iam.reply_to(secret, resolves_to(suspended));
    }
    world
}

#[tokio::test]
async fn line_26_a_suspended_platforms_sessions_and_keys_get_451_on_every_route() {
    let world = suspended_world();
    for path in [
        "/api/v1/platforms/p-1",
        "/api/v1/iam/api/auth/get-session",
        "/api/v1/cli/whoami",
        "/api/v1/nothing-here",
    ] {
        let by_key = anonymous(path).header("x-api-key", API_KEY);
        for answer in [world.get(path).await, world.send(by_key.build()).await] {
            let refused = answer.expect_error(451, "PLATFORM_SUSPENDED");
            let message = &refused.json["error"]["message"];
            assert_eq!(message, "This platform has been suspended.");
        }
    }
    assert!(
        world.received_requests().is_empty(),
        "no service may be called"
    );
}

#[tokio::test]
async fn line_26_the_service_key_is_never_suspended() {
    let world = suspended_world();
    let request =
        anonymous("/api/v1/platforms/p-1").header("authorization", &format!("Bearer {KEY}"));
    assert_eq!(world.send(request.build()).await.status, 200);
}
