//! Access tokens: the routes that accept them, their lifetime and their end.

use std::sync::Arc;
use std::time::Duration;

use core_domain::gateway::Credential;
use core_domain::kernel::Clock;
use core_domain::kernel::Secret;
use core_http::gateway::{Authority, AuthorityError};
use core_http::iam::SessionAuthority;
use serde_json::{Value, json};

use crate::iam::{ADA, CORE_SESSION, GET_SESSION, SESSIONS, SIGN_OUT, cookies};
use crate::world::{World, iam_config};

fn bearer(token: &str) -> Credential {
    Credential::Bearer(Secret::new(token))
}

fn gateway(world: &World) -> SessionAuthority {
    SessionAuthority::new(Arc::clone(&world.app.store), &iam_config())
}

#[tokio::test]
async fn access_tokens_work_like_sessions_for_fifteen_minutes() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let made = world.set_up_organization(&ada, "engines").await.expect(201);
    let tokens = world.device_login(&ada).await;
    let token = tokens.text("access_token");
    let known = gateway(&world).resolve(&bearer(token)).await.unwrap();
    assert_eq!(
        known.caller.platform_id().unwrap().as_str(),
        made.text("platformId")
    );
    let left = known.expires_at.unwrap().since(world.clock.now());
    assert_eq!(left, Duration::from_secs(900));
    let session = known.caller.session_id().unwrap().to_string();
    let core = world
        .send_with_bearer(token, "GET", CORE_SESSION)
        .await
        .expect(200);
    assert_eq!(core.json["session"]["id"], session.as_str());
    assert_eq!(core.json["session"]["clientId"], "core-cli");
    let found = world
        .send_with_bearer(token, "GET", GET_SESSION)
        .await
        .expect(200);
    assert_eq!(found.json["user"]["email"], ADA);
    assert!(cookies(&found).is_empty());
    let body = json!({ "token": token });
    let told = world
        .post_with_service_key("/api/validate-session", &body)
        .await
        .expect(200);
    assert_eq!(told.json["valid"], true);
    let list = world
        .send_with_bearer(token, "GET", SESSIONS)
        .await
        .expect(200);
    let current = list.json["data"]
        .as_array()
        .unwrap()
        .iter()
        .find(|s| s["current"] == true);
    assert_eq!(current.unwrap()["id"], session.as_str());

    world.tick(899);
    assert!(gateway(&world).resolve(&bearer(token)).await.is_ok());
    world.tick(1);
    let refused = gateway(&world).resolve(&bearer(token)).await;
    assert_eq!(refused.unwrap_err(), AuthorityError::Refused);
    world
        .send_with_bearer(token, "GET", CORE_SESSION)
        .await
        .expect_error(401, "UNAUTHORIZED");
    // The session itself is still valid.
    let fresh = world
        .refresh(tokens.text("refresh_token"))
        .await
        .expect(200);
    let _ = world
        .send_with_bearer(fresh.text("access_token"), "GET", CORE_SESSION)
        .await
        .expect(200);
}

#[tokio::test]
async fn signing_out_or_revoking_ends_a_device_session_at_once() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    for by_itself in [true, false] {
        let tokens = world.device_login(&ada).await;
        let token = tokens.text("access_token");
        let known = gateway(&world).resolve(&bearer(token)).await.unwrap();
        let path = format!("{SESSIONS}/{}", known.caller.session_id().unwrap());
        let ended = if by_itself {
            world.send_with_bearer(token, "POST", SIGN_OUT).await
        } else {
            world.send_with_bearer(&ada.token, "DELETE", &path).await
        };
        let _ = ended.expect(200);
        let refused = gateway(&world).resolve(&bearer(token)).await;
        assert_eq!(refused.unwrap_err(), AuthorityError::Refused);
        let refused = world.refresh(tokens.text("refresh_token")).await;
        refused.expect_error(400, "invalid_grant");
    }
    let still = world
        .send_with_bearer(&ada.token, "GET", CORE_SESSION)
        .await;
    let _ = still.expect(200);
    assert_eq!(world.audit("session.signed_out").await.len(), 1);
    assert_eq!(world.audit("session.revoked").await.len(), 1);
}

#[tokio::test]
async fn refresh_tokens_and_device_codes_are_not_accepted_as_credentials() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let tokens = world.device_login(&ada).await;
    let codes = world.device_codes().await;
    for other in [
        tokens.text("refresh_token"),
        codes.text("device_code"),
        "cat_",
        "cat_unknown",
    ] {
        world
            .send_with_bearer(other, "GET", CORE_SESSION)
            .await
            .expect_error(401, "UNAUTHORIZED");
        let refused = gateway(&world).resolve(&bearer(other)).await;
        assert_eq!(refused.unwrap_err(), AuthorityError::Refused);
    }
    let cookie = format!("better-auth.session_token={}", tokens.text("access_token"));
    let shown = world
        .send_unidentified("GET", CORE_SESSION, &[("cookie", &cookie)], Value::Null)
        .await;
    shown.expect_error(401, "UNAUTHORIZED");
}
