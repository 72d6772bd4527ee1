//! People: their profile, password and sessions, and bans.

use serde_json::{Value, json};

use super::{ADA, EVE, GET_SESSION, NEW_PASSWORD, WRONG_PASSWORD, cookies};
use crate::world::{PASSWORD, Person, World, operator};

const CHANGE: &str = "/api/auth/change-password";

async fn as_person(
    world: &World,
    person: &Person,
    path: &str,
    body: Value,
) -> crate::world::Answer {
    let bearer = format!("Bearer {}", person.token);
    let headers = [("authorization", bearer.as_str())];
    world.send_unidentified("POST", path, &headers, body).await
}

async fn is_alive(world: &World, token: &str) -> bool {
    let found = world
        .send_with_bearer(token, "GET", GET_SESSION)
        .await
        .expect(200);
    found.json.is_object()
}

#[tokio::test]
async fn a_password_change_ends_other_sessions_and_the_callers_on_request() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let other = world.sign_in(ADA, PASSWORD).await.expect(200);
    let other = other.text("token").to_owned();
    let body = json!({ "currentPassword": PASSWORD, "newPassword": NEW_PASSWORD });
    let changed = as_person(&world, &ada, CHANGE, body).await.expect(200);
    assert_eq!(changed.json["token"], Value::Null);
    assert_eq!(changed.json["user"]["id"], ada.user_id.as_str());
    assert!(is_alive(&world, &ada.token).await && !is_alive(&world, &other).await);
    let body = json!({ "currentPassword": NEW_PASSWORD, "newPassword": PASSWORD, "revokeOtherSessions": true });
    let renewed = as_person(&world, &ada, CHANGE, body).await.expect(200);
    assert!(!is_alive(&world, &ada.token).await);
    assert!(is_alive(&world, renewed.text("token")).await);
    assert!(cookies(&renewed)[0].starts_with("better-auth.session_token="));
    let _ = world.sign_in(ADA, PASSWORD).await.expect(200);
    world
        .sign_in(ADA, NEW_PASSWORD)
        .await
        .expect_error(401, "INVALID_EMAIL_OR_PASSWORD");
}

#[tokio::test]
async fn wrong_current_passwords_change_nothing_and_are_limited() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let body = json!({ "currentPassword": WRONG_PASSWORD, "newPassword": NEW_PASSWORD });
    for _ in 0..4 {
        let refused = as_person(&world, &ada, CHANGE, body.clone()).await;
        refused.expect_error(400, "INVALID_PASSWORD");
    }
    let mut last = as_person(&world, &ada, CHANGE, body.clone()).await;
    for _ in 0..10 {
        if last.status == 429 {
            break;
        }
        last = as_person(&world, &ada, CHANGE, body.clone()).await;
    }
    last.expect_error(429, "RATE_LIMITED");
    assert!(
        is_alive(&world, &ada.token).await,
        "the owner's session is still valid"
    );
}

#[tokio::test]
async fn verifying_a_password_requires_a_session() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let verify = "/api/auth/verify-password";
    let right = as_person(&world, &ada, verify, json!({ "password": PASSWORD })).await;
    assert_eq!(right.expect(200).json, json!({ "status": true }));
    let wrong = as_person(&world, &ada, verify, json!({ "password": WRONG_PASSWORD })).await;
    wrong.expect_error(400, "INVALID_PASSWORD");
    let nobody = world.post(verify, json!({ "password": PASSWORD })).await;
    nobody.expect_error(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn people_change_their_name_and_picture_but_not_their_address() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let update = "/api/auth/update-user";
    let body =
        json!({ "name": "Ada L.", "image": "https://example.org/ada.png", "emailVerified": true });
    let changed = as_person(&world, &ada, update, body).await.expect(200);
    assert!(cookies(&changed)[0].starts_with(&ada.cookie));
    let found = world
        .send_with_bearer(&ada.token, "GET", GET_SESSION)
        .await
        .expect(200);
    let user = &found.json["user"];
    assert_eq!(
        (&user["name"], &user["emailVerified"]),
        (&json!("Ada L."), &json!(false))
    );
    assert_eq!(user["image"], "https://example.org/ada.png");
    let _ = as_person(&world, &ada, update, json!({ "image": null }))
        .await
        .expect(200);
    let profile = world
        .send_with_bearer(&ada.token, "GET", "/api/auth/profile")
        .await
        .expect(200);
    assert_eq!(
        (&profile.json["name"], &profile.json["image"]),
        (&json!("Ada L."), &Value::Null)
    );
    let refused = as_person(&world, &ada, update, json!({ "email": EVE })).await;
    refused.expect_error(400, "EMAIL_CAN_NOT_BE_UPDATED");
    let nothing = as_person(&world, &ada, update, json!({})).await;
    let nothing = nothing.expect_error(400, "BAD_REQUEST");
    assert_eq!(nothing.json["message"], "No fields to update");
}

#[tokio::test]
async fn accounts_and_sessions_are_listed_and_a_session_is_ended_by_token_or_id() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let eve = world.sign_up(EVE).await;
    let accounts = world
        .send_with_bearer(&ada.token, "GET", "/api/auth/list-accounts")
        .await
        .expect(200);
    let account = &accounts.json[0];
    assert_eq!(account["providerId"], "credential");
    assert_eq!(
        (&account["accountId"], &account["scopes"]),
        (&json!(ada.user_id), &json!([]))
    );
    let mut others = Vec::new();
    for _ in 0..2 {
        world.tick(1);
        let other = world.sign_in(ADA, PASSWORD).await.expect(200);
        others.push(other.text("token").to_owned());
    }
    let list = world
        .send_with_bearer(&ada.token, "GET", "/api/auth/list-sessions")
        .await
        .expect(200);
    let shown = list.json.as_array().unwrap();
    assert_eq!(shown.len(), 3);
    assert_eq!(shown[2]["token"], ada.token.as_str());
    let id = shown[0]["token"].as_str().unwrap();
    assert_eq!(
        shown[0]["id"], id,
        "another session is listed with its id in place of its token"
    );
    let revoke = "/api/auth/revoke-session";
    for name in [id, others[0].as_str(), eve.token.as_str(), "unknown"] {
        let revoked = as_person(&world, &ada, revoke, json!({ "token": name })).await;
        assert_eq!(revoked.expect(200).json, json!({ "status": true }));
    }
    for (token, alive) in [
        (&others[0], false),
        (&others[1], false),
        (&ada.token, true),
        (&eve.token, true),
    ] {
        assert_eq!(is_alive(&world, token).await, alive);
    }
    let other = world.sign_in(ADA, PASSWORD).await.expect(200);
    let _ = as_person(&world, &ada, "/api/auth/revoke-other-sessions", json!({}))
        .await
        .expect(200);
    assert!(!is_alive(&world, other.text("token")).await && is_alive(&world, &ada.token).await);
    let _ = as_person(&world, &ada, "/api/auth/revoke-sessions", json!({}))
        .await
        .expect(200);
    assert!(!is_alive(&world, &ada.token).await);
}

#[tokio::test]
async fn a_ban_ends_sessions_and_blocks_sign_ins_until_it_is_lifted() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let path = |what: &str| format!("/api/core/users/{}/{what}", ada.user_id);
    let reason = json!({ "reason": "Spam" });
    let banned = world
        .iam
        .post(&operator(), &path("ban"), reason.clone())
        .await
        .expect(200);
    assert_eq!(banned.json["banReason"], "Spam");
    assert!(!is_alive(&world, &ada.token).await);
    world
        .sign_in(ADA, PASSWORD)
        .await
        .expect_error(403, "BANNED_USER");
    world
        .sign_in(ADA, WRONG_PASSWORD)
        .await
        .expect_error(401, "INVALID_EMAIL_OR_PASSWORD");
    let _ = world
        .post("/api/auth/sign-in/magic-link", json!({ "email": ADA }))
        .await
        .expect(200);
    let token = world.mailed_token(ADA).await;
    let followed = world.follow_magic_link(&token).await;
    assert!(followed.header("location").ends_with("error=BANNED_USER"));
    let _ = world
        .iam
        .post(&operator(), &path("unban"), json!({}))
        .await
        .expect(200);
    let _ = world.sign_in(ADA, PASSWORD).await;
    assert_eq!(world.audit("user.banned").await.len(), 1);
}

#[tokio::test]
async fn an_ended_session_gets_401_and_its_cookies_are_cleared() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let headers = [
        ("cookie", ada.cookie.as_str()),
        ("origin", crate::world::ORIGIN),
    ];
    let _ = world
        .send_unidentified("POST", "/api/auth/sign-out", &headers, Value::Null)
        .await
        .expect(200);
    let dead = world
        .send_unidentified("GET", "/api/auth/list-sessions", &headers, Value::Null)
        .await;
    let dead = dead.expect_error(401, "UNAUTHORIZED");
    assert_eq!(dead.json["message"], "Unauthorized");
    assert_eq!(cookies(&dead).len(), 3);
    let nobody = world
        .send_unidentified("GET", "/api/auth/list-sessions", &[], Value::Null)
        .await;
    assert!(cookies(&nobody.expect_error(401, "UNAUTHORIZED")).is_empty());
}

#[tokio::test]
async fn people_see_their_own_audit_entries_and_operators_see_all() {
    let world = World::new();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    let events = "/api/audit/events";
    let own = world
        .send_with_bearer(&ada.token, "GET", events)
        .await
        .expect(200);
    let data = own.json["data"].as_array().unwrap();
    assert!(
        !data.is_empty()
            && data
                .iter()
                .all(|entry| entry["actorId"] == ada.user_id.as_str())
    );
    let id = data[0]["id"].as_str().unwrap();
    let one = world
        .send_with_bearer(&ada.token, "GET", &format!("{events}/{id}"))
        .await
        .expect(200);
    assert_eq!(one.json["action"], data[0]["action"]);
    let foreign = world
        .send_with_bearer(&eve.token, "GET", &format!("{events}/{id}"))
        .await;
    foreign.expect_error(404, "NOT_FOUND");
    let all = world
        .iam
        .get(&operator(), &format!("{events}?eventType=user.signed_up"))
        .await;
    assert_eq!(all.expect(200).json["pagination"]["total"], 2);
    let named = format!("{events}?actorId={}", eve.user_id);
    let still_own = world
        .send_with_bearer(&ada.token, "GET", &named)
        .await
        .expect(200);
    let data = still_own.json["data"].as_array().unwrap();
    assert!(
        data.iter()
            .all(|entry| entry["actorId"] == ada.user_id.as_str())
    );
}
