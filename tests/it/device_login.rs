//! Signing in from the command line, through the gateway.

use core_suite::Suite;
use http::Method;
use serde_json::{Value, json};

use crate::world::{Call, Fresh, Installation, SERVICE_KEY, on_every_store, sign_up};

on_every_store! { Fresh: a_signed_in_device_can_use_the_gateway_until_its_session_is_revoked }

const WHOAMI: &str = "/api/v1/cli/whoami";

/// Signs a device in with the approval of a user. Returns its tokens.
async fn logged_in(suite: &Suite, person: &str) -> Value {
    let client = json!({ "client_id": "core-cli" });
    let path = "/api/v1/iam/oauth/device/code";
    let codes = suite.post(SERVICE_KEY, path, client).await.expect(200);
    let decision = json!({ "user_code": codes.text("user_code") });
    let path = "/api/v1/iam/oauth/device/authorize";
    let _ = suite.post(person, path, decision).await.expect(200);
    let poll = json!({
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        "device_code": codes.text("device_code"), "client_id": "core-cli",
    });
    let path = "/api/v1/iam/oauth/token";
    suite.post(SERVICE_KEY, path, poll).await.expect(200).json
}

async fn a_signed_in_device_can_use_the_gateway_until_its_session_is_revoked(fresh: Fresh) {
    let suite = fresh.suite().await;
    let person = sign_up(&suite, "engines", "Engines").await;
    let tokens = logged_in(&suite, &person.token).await;
    let access = tokens["access_token"].as_str().unwrap();
    let known = suite.post(access, WHOAMI, json!({})).await.expect(200);
    assert_eq!(known.text("platformId"), person.platform);
    assert_eq!(known.text("role"), "owner");
    let _ = suite.get(access, &person.at("")).await.expect(200);

    let sessions = "/api/v1/iam/api/sessions";
    let list = suite.get(access, sessions).await.expect(200);
    let own = list.json["data"].as_array().unwrap();
    let own = own
        .iter()
        .find(|session| session["current"] == true)
        .unwrap();
    let path = format!("{sessions}/{}", own["id"].as_str().unwrap());
    let revoke = Call::new(Method::DELETE, path).bearer(&person.token);
    let _ = revoke.to(suite.gateway()).await.expect(200);
    suite
        .get(access, &person.at(""))
        .await
        .expect_error(401, "UNAUTHORIZED");
    suite
        .post(access, WHOAMI, json!({}))
        .await
        .expect_error(401, "UNAUTHORIZED");
    suite.shutdown().await;
}
