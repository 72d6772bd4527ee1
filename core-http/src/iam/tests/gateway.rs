//! What the gateway learns of a session.

use std::time::Duration;

use core_domain::gateway::{Credential, Secret, TrustedProxies};
use core_domain::kernel::{Caller, Clock, Role};
use http::Request;
use serde_json::json;

use super::super::{IamConfig, SessionAuthority};
use super::world::{PASSWORD, World};
use crate::gateway::{Authority, AuthorityError};
use crate::kernel::empty_body;

fn authority(world: &World) -> SessionAuthority {
    let config = IamConfig {
        secret: b"a secret of thirty-two bytes ...".to_vec(),
        base_url: super::world::ORIGIN.to_owned(),
        trusted_origins: Vec::new(),
        trusted_proxies: TrustedProxies::default(),
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

#[tokio::test]
async fn whom_the_gateway_did_not_ask_is_known_by_the_session_and_whom_it_knows_is_not() {
    let world = World::new();
    let session = world.sign_up("ada@example.org").await.expect(200);
    let bearer = format!("Bearer {}", session.token());
    let service = |name: &str| Caller::Service {
        name: name.to_owned(),
    };
    for (said, header, expected) in [
        (Caller::Anonymous, Some(("cookie", session.cookie())), 200),
        (
            Caller::Anonymous,
            Some(("authorization", bearer.clone())),
            200,
        ),
        (Caller::Anonymous, None, 401),
        (
            service("unauthenticated"),
            Some(("cookie", session.cookie())),
            200,
        ),
        (service("unauthenticated"), None, 401),
        (
            service("service-key"),
            Some(("cookie", session.cookie())),
            401,
        ),
    ] {
        let mut request = Request::get("/api/core/session").extension(said.clone());
        if let Some((name, value)) = &header {
            request = request.header(*name, value);
        }
        let answer = world.iam.answer(request.body(empty_body()).unwrap()).await;
        assert_eq!(answer.status(), expected, "{said:?} {header:?}");
    }
}
