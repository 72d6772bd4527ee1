//! OAuth responses: JSON callers get the error envelope, form callers the errors of RFC 6749. Nothing is cached.

use serde_json::{Value, json};

use crate::iam::{ADA, FORM_CONTENT_TYPE};
use crate::world::{ORIGIN, World, operator};

const GRANT: &str = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code";

#[tokio::test]
async fn form_callers_get_rfc_6749_errors_and_json_callers_the_envelope() {
    let world = World::new();
    let codes = world.device_codes().await;
    let pending = codes.text("device_code");
    let poll = format!("grant_type={GRANT}&client_id=core-cli&device_code={pending}");
    for (path, form, json, word) in [
        (
            "/oauth/device/token",
            poll.as_str(),
            json!({}),
            "authorization_pending",
        ),
        (
            "/oauth/device/code",
            "client_id=other",
            json!({ "client_id": "other" }),
            "invalid_client",
        ),
        (
            "/oauth/token",
            "grant_type=refresh_token&client_id=other&refresh_token=x",
            json!({ "grant_type": "refresh_token", "client_id": "other", "refresh_token": "x" }),
            "invalid_client",
        ),
        (
            "/oauth/token",
            "grant_type=password&client_id=core-cli",
            json!({ "grant_type": "password", "client_id": "core-cli" }),
            "unsupported_grant_type",
        ),
        (
            "/oauth/device/token",
            "grant_type=refresh_token&client_id=core-cli&device_code=x",
            json!({ "grant_type": "refresh_token", "client_id": "core-cli", "device_code": "x" }),
            "unsupported_grant_type",
        ),
        (
            "/oauth/token",
            "grant_type=refresh_token&client_id=core-cli&refresh_token=x",
            json!({ "grant_type": "refresh_token", "client_id": "core-cli", "refresh_token": "x" }),
            "invalid_grant",
        ),
    ] {
        let refused = world
            .post_text(path, FORM_CONTENT_TYPE, form)
            .await
            .expect(400);
        let fields: Vec<&String> = refused.json.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["error", "error_description"], "{path} {form}");
        assert_eq!(refused.json["error"], word, "{path} {form}");
        assert_eq!(refused.header("cache-control"), "no-store");
        if json != json!({}) {
            let refused = world.post(path, json).await;
            assert_eq!(refused.header("cache-control"), "no-store");
            assert_eq!(refused.json["error"]["details"], json!({}));
            refused.expect_error(400, word);
        }
    }
}

#[tokio::test]
async fn invalid_forms_get_invalid_request_and_the_name_of_the_field() {
    let world = World::new();
    for (path, form, field) in [
        ("/oauth/device/code", "", "client_id"),
        ("/oauth/token", "client_id=core-cli", "grant_type"),
        (
            "/oauth/token",
            "grant_type=refresh_token&client_id=core-cli",
            "refresh_token",
        ),
    ] {
        let refused = world
            .post_text(path, FORM_CONTENT_TYPE, form)
            .await
            .expect(400);
        assert_eq!(refused.json["error"], "invalid_request");
        assert!(
            refused.text("error_description").contains(field),
            "{}",
            refused.json
        );
    }
    let refused = world
        .post("/oauth/token", json!({ "client_id": "core-cli" }))
        .await;
    assert_eq!(refused.issues(), ["grant_type: required"]);
    refused.expect_error(400, "VALIDATION_ERROR");
}

#[tokio::test]
async fn the_token_endpoint_accepts_both_grant_types_as_forms() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let approved = world.approve_device(&ada).await;
    let form = format!("grant_type={GRANT}&client_id=core-cli&device_code={approved}&scope=x");
    let first = world
        .post_text("/oauth/token", FORM_CONTENT_TYPE, &form)
        .await
        .expect(200);
    let refresh = first.text("refresh_token");
    let form = format!("grant_type=refresh_token&client_id=core-cli&refresh_token={refresh}");
    let second = world
        .post_text("/oauth/token", FORM_CONTENT_TYPE, &form)
        .await
        .expect(200);
    assert_ne!(second.text("refresh_token"), refresh);
    assert_eq!(second.text("token_type"), "bearer");
}

#[tokio::test]
async fn the_authorization_server_metadata_lists_the_endpoints() {
    let world = World::new();
    let path = "/.well-known/oauth-authorization-server";
    let told = world
        .send_unidentified("GET", path, &[], Value::Null)
        .await
        .expect(200);
    let expected = json!({
        "issuer": "http://iam.test",
        "device_authorization_endpoint": "http://iam.test/oauth/device/code",
        "token_endpoint": "http://iam.test/oauth/token",
        "jwks_uri": "http://iam.test/.well-known/jwks.json",
        "grant_types_supported": [
            "urn:ietf:params:oauth:grant-type:device_code", "refresh_token",
        ],
        "response_types_supported": [],
        "token_endpoint_auth_methods_supported": ["none"],
    });
    assert_eq!(told.json, expected);
}

#[tokio::test]
async fn banned_people_get_no_tokens_and_an_rfc_error_code_in_both_encodings() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let login = world.device_login(&ada).await;
    let refresh = login.text("refresh_token");
    let approved = world.approve_device(&ada).await;
    let undecided = world.device_codes().await;
    let ban = format!("/api/core/users/{}/ban", ada.user_id);
    let banned = world.iam.post(&operator(), &ban, json!({})).await;
    let _ = banned.expect(200);
    for (path, form, json, word) in [
        (
            "/oauth/token",
            format!("grant_type=refresh_token&client_id=core-cli&refresh_token={refresh}"),
            world.refresh(refresh).await,
            "invalid_grant",
        ),
        (
            "/oauth/device/token",
            format!("grant_type={GRANT}&client_id=core-cli&device_code={approved}"),
            world.poll(&approved).await,
            "access_denied",
        ),
    ] {
        json.expect_error(400, word);
        let refused = world
            .post_text(path, FORM_CONTENT_TYPE, &form)
            .await
            .expect(400);
        assert_eq!(refused.json["error"], word, "{path}");
    }
    let access = world.whoami(login.text("access_token")).await;
    access.expect_error(401, "UNAUTHORIZED");
    let code = undecided.text("user_code");
    let decided = world.decide(&ada, code, "approve").await;
    decided.expect_error(401, "UNAUTHORIZED");
    let waits = world.poll(undecided.text("device_code")).await;
    waits.expect_error(400, "authorization_pending");
}

#[tokio::test]
async fn remaining_sessions_of_banned_people_approve_and_refresh_nothing() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let login = world.device_login(&ada).await;
    world.ban_in_store(&ada).await;
    let code = world.device_codes().await;
    let code = code.text("user_code");
    let denied = world.decide(&ada, code, "approve").await;
    denied.expect_error(400, "access_denied");
    let form = format!("user_code={code}");
    let headers = [
        ("cookie", ada.cookie.as_str()),
        ("origin", ORIGIN),
        ("content-type", FORM_CONTENT_TYPE),
    ];
    let path = "/oauth/device/authorize";
    let denied = world.post_with(path, &headers, &form).await;
    // The cookie of a banned person identifies no caller.
    assert_eq!(denied.expect(401).json["error"], "access_denied");
    let refreshed = world.refresh(login.text("refresh_token")).await;
    refreshed.expect_error(400, "invalid_grant");
}
