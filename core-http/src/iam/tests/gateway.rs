//! What the gateway learns of a session.

use std::time::Duration;

use core_domain::gateway::{Credential, Secret};
use core_domain::kernel::{Caller, Clock, Role};
use serde_json::json;

use super::super::{IamConfig, SessionAuthority};
use super::world::{PASSWORD, World};
use crate::gateway::{Authority, AuthorityError};

fn authority(world: &World) -> SessionAuthority {
    let config = IamConfig {
        secret: b"a secret of thirty-two bytes ...".to_vec(),
        base_url: super::world::ORIGIN.to_owned(),
        trusted_origins: Vec::new(),
    };
    SessionAuthority::new(world.app.store.clone(), &config)
}

fn bearer(token: &str) -> Credential {
    Credential::Bearer(Secret::new(token))
}

#[tokio::test]
async fn the_gateway_learns_role_platform_and_suspension_and_of_a_sign_out_at_once() {
    let world = World::new();
    let gateway = authority(&world);
    let user = world.sign_up("ada@example.org").await.expect(200).body["user"]["id"].clone();
    world
        .organization("engines", user.as_str().unwrap(), "p-1")
        .await;
    let token = world
        .sign_in("ada@example.org", PASSWORD)
        .await
        .expect(200)
        .token();
    let known = gateway.resolve(&bearer(&token)).await.unwrap();
    assert!(!known.suspended);
    assert_eq!(known.caller.platform_id().unwrap().as_str(), "p-1");
    let Caller::User {
        membership: Some(membership),
        ..
    } = &known.caller
    else {
        panic!()
    };
    assert_eq!(membership.role, Role::Owner);

    let suspend = json!({ "platformId": "p-1", "status": "suspended" });
    world
        .as_service("/internal/platform-status", &suspend)
        .await
        .expect(200);
    assert!(gateway.resolve(&bearer(&token)).await.unwrap().suspended);
    let restore = json!({ "platformId": "p-1", "status": "active" });
    world
        .as_service("/internal/platform-status", &restore)
        .await
        .expect(200);
    assert!(!gateway.resolve(&bearer(&token)).await.unwrap().suspended);

    let header = format!("Bearer {token}");
    world
        .post(
            "/api/auth/sign-out",
            &[("authorization", &header)],
            &json!({}),
        )
        .await
        .expect(200);
    let refused = gateway.resolve(&bearer(&token)).await;
    assert_eq!(refused.unwrap_err(), AuthorityError::Refused);
}

#[tokio::test]
async fn use_through_the_gateway_keeps_a_session_alive() {
    let world = World::new();
    let gateway = authority(&world);
    let token = world.sign_up("ada@example.org").await.expect(200).token();
    for _ in 0..10 {
        world.later(48);
        let known = gateway.resolve(&bearer(&token)).await.unwrap();
        let left = known.expires_at.unwrap().since(world.clock.now());
        assert_eq!(left, Duration::from_secs(7 * 24 * 3_600));
    }
    let key = Credential::ApiKey(Secret::new("core_x"));
    assert_eq!(
        gateway.resolve(&key).await.unwrap_err(),
        AuthorityError::Refused
    );
}
