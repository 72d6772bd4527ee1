//! Sign-in with a second factor: codes of an authenticator, and recovery codes.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{
    ADA, EVE, GET_SESSION, NEW_PASSWORD, SESSIONS, WRONG_PASSWORD, cookies, without_request_id,
};
use crate::world::{PASSWORD, World, on_every_store, operator, pending_sign_in_cookie};

const TOTP: &str = "verify-totp";
const RECOVERY: &str = "verify-backup-code";

#[tokio::test]
async fn a_second_factor_is_required_after_its_first_right_code() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let authenticator = world.set_up_second_factor(&ada).await;
    let signed_in = world.sign_in(ADA, PASSWORD).await.expect(200);
    assert!(signed_in.json["token"].is_string());
    let code = json!({ "code": authenticator.code(&world) });
    let confirmed = world.call_two_factor(&ada, TOTP, code).await.expect(200);
    assert_eq!(confirmed.json["user"]["id"], ada.user_id.as_str());
    assert!(cookies(&confirmed).is_empty());
    assert_eq!(world.audit("two_factor.enabled").await.len(), 1);
    let cookie = world.begin_sign_in(ADA).await;
    assert_eq!(world.audit("user.signed_in").await.len(), 1);
    world.tick(30);
    let code = authenticator.code(&world);
    let done = world
        .complete_sign_in(&cookie, TOTP, &code)
        .await
        .expect(200);
    assert_eq!(done.json["user"]["id"], ada.user_id.as_str());
    assert_eq!(done.header("cache-control"), "no-store");
    let set = cookies(&done);
    assert!(set[0].starts_with("better-auth.session_token="));
    assert!(set[1].starts_with("core.device="));
    assert!(set[2].starts_with("better-auth.two_factor=; Max-Age=0"));
    let own = world
        .send_with_bearer(done.text("token"), "GET", GET_SESSION)
        .await;
    assert_eq!(own.json["user"]["email"], ADA);
    let entries = world.audit("user.signed_in").await;
    assert_eq!((entries.len(), &entries[0].actor_id), (2, &ada.user_id));
}

#[tokio::test]
async fn there_is_no_session_before_the_second_factor() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    world.enable_second_factor(&ada).await;
    let before = world.send_with_bearer(&ada.token, "GET", SESSIONS).await;
    let cookie = world.begin_sign_in(ADA).await;
    let (_, value) = cookie.split_once('=').unwrap();
    let as_session = format!("better-auth.session_token={value}");
    for cookie in [cookie.as_str(), &as_session] {
        let headers = [("cookie", cookie)];
        let none = world
            .send_unidentified("GET", GET_SESSION, &headers, Value::Null)
            .await;
        assert_eq!(none.expect(200).json, Value::Null);
    }
    let bearer = format!("Bearer {value}");
    let headers = [("authorization", bearer.as_str())];
    let refused = world
        .send_unidentified("GET", SESSIONS, &headers, Value::Null)
        .await;
    refused.expect_error(401, "UNAUTHORIZED");
    let after = world.send_with_bearer(&ada.token, "GET", SESSIONS).await;
    assert_eq!(before.json, after.json);
    let required = world.audit("two_factor.required").await;
    assert_eq!(required[0].actor_id, "anonymous");
}

#[tokio::test]
async fn a_sign_in_link_also_requires_the_second_factor() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    world.confirm(&ada).await;
    let authenticator = world.enable_second_factor(&ada).await;
    for (rest, status) in [("", 200), ("&callbackURL=%2Fdash", 302)] {
        world.tick(30);
        let [token, ..] = world.link_tokens(ADA).await;
        let path = format!("/api/auth/magic-link/verify?token={token}{rest}");
        let asked = world
            .send_unidentified("GET", &path, &[], Value::Null)
            .await;
        let asked = asked.expect(status);
        let cookie = pending_sign_in_cookie(&asked);
        if status == 302 {
            let to = "http://iam.test/dash?twoFactorRedirect=true";
            assert_eq!(asked.header("location"), to);
        } else {
            assert_eq!(asked.json, json!({ "twoFactorRedirect": true }));
        }
        let code = authenticator.code(&world);
        let _ = world
            .complete_sign_in(&cookie, TOTP, &code)
            .await
            .expect(200);
    }
}

#[tokio::test]
async fn a_strangers_second_factor_does_not_lock_out_the_owner_of_the_address() {
    for by_link in [true, false] {
        let world = World::new();
        let mallory = world.sign_up(ADA).await;
        world.enable_second_factor(&mallory).await;
        // Such factors exist from the time before a factor required a confirmed address.
        world.set_confirmed(&mallory, false).await;
        let [magic, reset, _] = world.link_tokens(ADA).await;
        if by_link {
            let done = world.follow_magic_link(&magic).await;
            assert!(done.expect(200).json["token"].is_string());
        } else {
            let body = json!({ "token": reset, "newPassword": NEW_PASSWORD });
            let done = world.post("/api/auth/reset-password", body).await;
            let _ = done.expect(200);
            let done = world.sign_in(ADA, NEW_PASSWORD).await;
            assert!(done.expect(200).json["token"].is_string());
        }
        let removed = world.audit("two_factor.unverified_removed").await;
        assert_eq!(removed.len(), 1);
    }
}

#[tokio::test]
async fn a_code_is_valid_once_in_its_time_step_and_the_adjacent_ones() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let authenticator = world.enable_second_factor(&ada).await;
    let [first, second] = [
        world.begin_sign_in(ADA).await,
        world.begin_sign_in(ADA).await,
    ];
    let code = authenticator.code(&world);
    world.tick(30);
    let _ = world
        .complete_sign_in(&first, TOTP, &code)
        .await
        .expect(200);
    let again = world.complete_sign_in(&first, TOTP, &code).await;
    again.expect_error(401, "INVALID_TWO_FACTOR_COOKIE");
    let elsewhere = world.complete_sign_in(&second, TOTP, &code).await;
    elsewhere.expect_error(401, "INVALID_CODE");
    let old = authenticator.code(&world);
    world.tick(60);
    let too_old = world.complete_sign_in(&second, TOTP, &old).await;
    too_old.expect_error(401, "INVALID_CODE");
    let code = authenticator.code(&world);
    let _ = world
        .complete_sign_in(&second, TOTP, &code)
        .await
        .expect(200);
    let failed = world.audit("two_factor.failed").await;
    let of = (failed.len(), failed[0].entity_id.as_str());
    assert_eq!(of, (2, ada.user_id.as_str()));
}

async fn concurrent_uses_of_one_code_succeed_once(world: World) {
    let ada = world.sign_up(ADA).await;
    let authenticator = world.enable_second_factor(&ada).await;
    let recovery = authenticator.recovery_codes[0].clone();
    for (call, code) in [(TOTP, authenticator.code(&world)), (RECOVERY, recovery)] {
        let mut waiting = Vec::new();
        for _ in 0..3 {
            waiting.push(world.begin_sign_in(ADA).await);
            world.tick(1);
        }
        let rivals = waiting
            .iter()
            .map(|cookie| world.complete_sign_in(cookie, call, &code));
        let answers = join_all(rivals).await;
        let mut statuses: Vec<u16> = answers.iter().map(|a| a.status.as_u16()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 401, 401], "{call}");
        world.tick(600);
    }
    let cookie = &world.begin_sign_in(ADA).await;
    let code = authenticator.code(&world);
    let rivals = (0..3).map(|_| world.complete_sign_in(cookie, TOTP, &code));
    let answers = join_all(rivals).await;
    let done = answers.iter().filter(|a| a.status == 200).count();
    assert_eq!(done, 1, "a pending sign-in is completed once");
}

#[tokio::test]
async fn repeated_wrong_codes_lengthen_the_delay() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let authenticator = world.enable_second_factor(&ada).await;
    let mut waits = Vec::new();
    let mut wrong = 0;
    while wrong < 17 {
        let cookie = &world.begin_sign_in(ADA).await;
        let refused = world.complete_sign_in(cookie, RECOVERY, "wrong").await;
        if refused.status == 401 {
            wrong += 1;
            continue;
        }
        let refused = refused.expect_error(429, "RATE_LIMITED");
        let wait: u64 = refused.header("retry-after").parse().unwrap();
        waits.push(wait);
        world.tick(wait);
    }
    let last = &waits[waits.len() - 4..];
    assert_eq!(last, [256, 512, 900, 900], "{waits:?}");
    world.tick(900);
    let cookie = &world.begin_sign_in(ADA).await;
    let code = authenticator.code(&world);
    let _ = world
        .complete_sign_in(cookie, TOTP, &code)
        .await
        .expect(200);
}

async fn only_five_of_many_concurrent_guesses_are_checked(world: World) {
    let ada = world.sign_up(ADA).await;
    let authenticator = world.enable_second_factor(&ada).await;
    let cookie = &world.begin_sign_in(ADA).await;
    let guesses: Vec<String> = (0..12).map(|n| format!("wrong-{n}")).collect();
    let rivals = guesses
        .iter()
        .map(|code| world.complete_sign_in(cookie, TOTP, code));
    let answers = join_all(rivals).await;
    let looked_at = answers
        .iter()
        .filter(|a| a.code() == "INVALID_CODE")
        .count();
    assert_eq!(looked_at, 5);
    let code = authenticator.code(&world);
    let locked = world.complete_sign_in(cookie, TOTP, &code).await;
    let locked = locked.expect_error(429, "RATE_LIMITED");
    assert_eq!(locked.header("retry-after"), "600");
    let recovery = &authenticator.recovery_codes[0];
    let locked = world.complete_sign_in(cookie, RECOVERY, recovery).await;
    locked.expect_error(429, "RATE_LIMITED");
    let code = json!({ "code": authenticator.code(&world) });
    let locked = world.call_two_factor(&ada, TOTP, code).await;
    locked.expect_error(429, "RATE_LIMITED");
    assert_eq!(world.audit("two_factor.failed").await.len(), 5);
    world.tick(600);
    let cookie = &world.begin_sign_in(ADA).await;
    let code = authenticator.code(&world);
    let _ = world
        .complete_sign_in(cookie, TOTP, &code)
        .await
        .expect(200);
}

on_every_store! {
    concurrent_uses_of_one_code_succeed_once,
    only_five_of_many_concurrent_guesses_are_checked,
}

#[tokio::test]
async fn each_recovery_code_works_once_and_new_codes_replace_the_old() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let authenticator = world.enable_second_factor(&ada).await;
    let old = &authenticator.recovery_codes;
    assert_eq!(old.len(), 10);
    let cookie = world.begin_sign_in(ADA).await;
    let _ = world
        .complete_sign_in(&cookie, RECOVERY, &old[0])
        .await
        .expect(200);
    let cookie = world.begin_sign_in(ADA).await;
    let used = world.complete_sign_in(&cookie, RECOVERY, &old[0]).await;
    used.expect_error(401, "INVALID_BACKUP_CODE");
    let told = world.audit("two_factor.recovery_code_used").await;
    let told = (told.len(), told[0].after.as_ref().unwrap().as_str());
    assert_eq!(told, (1, r#"{"left":9}"#));
    let body = json!({ "password": PASSWORD });
    let new = world
        .call_two_factor(&ada, "generate-backup-codes", body)
        .await;
    let new = new.expect(200);
    assert_eq!(new.json["backupCodes"].as_array().unwrap().len(), 10);
    let ended = world.complete_sign_in(&cookie, RECOVERY, &old[1]).await;
    ended.expect_error(401, "INVALID_BACKUP_CODE");
    let first = new.json["backupCodes"][0].as_str().unwrap();
    let _ = world
        .complete_sign_in(&cookie, RECOVERY, first)
        .await
        .expect(200);
}

#[tokio::test]
async fn a_pending_sign_in_ends_after_ten_minutes_or_a_password_change() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let authenticator = world.enable_second_factor(&ada).await;
    let cookie = world.begin_sign_in(ADA).await;
    world.tick(600);
    let code = authenticator.code(&world);
    let late = world.complete_sign_in(&cookie, TOTP, &code).await;
    late.expect_error(401, "INVALID_TWO_FACTOR_COOKIE");
    let cookie = world.begin_sign_in(ADA).await;
    let change = json!({ "currentPassword": PASSWORD, "newPassword": NEW_PASSWORD });
    let path = "/api/auth/change-password";
    let changed = world.iam.post(&ada.caller(), path, change).await;
    let _ = changed.expect(200);
    let ended = world.complete_sign_in(&cookie, TOTP, &code).await;
    ended.expect_error(401, "INVALID_TWO_FACTOR_COOKIE");
    let forged = "better-auth.two_factor=abc.def";
    let nobody = world.complete_sign_in(forged, TOTP, &code).await;
    nobody.expect_error(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn a_ban_ends_a_pending_sign_in() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let authenticator = world.enable_second_factor(&ada).await;
    let cookie = world.begin_sign_in(ADA).await;
    let path = format!("/api/core/users/{}/ban", ada.user_id);
    let banned = world.iam.post(&operator(), &path, json!({})).await;
    let _ = banned.expect(200);
    let code = authenticator.code(&world);
    let kept_out = world.complete_sign_in(&cookie, TOTP, &code).await;
    kept_out.expect_error(401, "INVALID_TWO_FACTOR_COOKIE");
}

#[tokio::test]
async fn changing_the_second_factor_requires_the_password() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let call = async |call: &str, password: &str| {
        let body = json!({ "password": password });
        world.call_two_factor(&ada, call, body).await
    };
    let all = ["disable", "get-totp-uri", "generate-backup-codes"];
    for name in all {
        let none = call(name, PASSWORD).await;
        none.expect_error(400, "TWO_FACTOR_NOT_ENABLED");
    }
    for (name, code) in [
        (TOTP, "TOTP_NOT_ENABLED"),
        (RECOVERY, "BACKUP_CODES_NOT_ENABLED"),
    ] {
        let body = json!({ "code": "123456" });
        let none = world.call_two_factor(&ada, name, body).await;
        none.expect_error(400, code);
    }
    let authenticator = world.enable_second_factor(&ada).await;
    for name in ["enable"].into_iter().chain(all) {
        let refused = call(name, WRONG_PASSWORD).await;
        refused.expect_error(400, "INVALID_PASSWORD");
    }
    let again = call("enable", PASSWORD).await;
    again.expect_error(400, "TWO_FACTOR_ALREADY_ENABLED");
    let shown = call("get-totp-uri", PASSWORD).await.expect(200);
    let expected = authenticator.secret.uri("iam.test", ADA);
    assert_eq!(shown.text("totpURI"), expected);
    let disabled = call("disable", PASSWORD).await.expect(200);
    assert_eq!(disabled.json, json!({ "status": true }));
    assert_eq!(world.audit("two_factor.disabled").await.len(), 1);
    let signed_in = world.sign_in(ADA, PASSWORD).await.expect(200);
    assert!(signed_in.json["token"].is_string());
}

#[tokio::test]
async fn a_wrong_password_does_not_reveal_a_second_factor() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    world.enable_second_factor(&ada).await;
    let mut refusals = Vec::new();
    for (email, password) in [(ADA, WRONG_PASSWORD), (EVE, PASSWORD)] {
        let refused = world.sign_in(email, password).await;
        let refused = refused.expect_error(401, "INVALID_EMAIL_OR_PASSWORD");
        assert!(cookies(&refused).is_empty());
        refusals.push(without_request_id(refused));
    }
    assert_eq!(refusals[0], refusals[1]);
}

#[tokio::test]
async fn secrets_and_codes_are_never_stored_in_plain_text() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let authenticator = world.enable_second_factor(&ada).await;
    let cookie = world.begin_sign_in(ADA).await;
    let recovery = &authenticator.recovery_codes[0];
    let _ = world
        .complete_sign_in(&cookie, RECOVERY, recovery)
        .await
        .expect(200);
    let mut written = world.two_factor_records().await;
    assert!(written.contains("sealed_secret"));
    for action in [
        "two_factor.set_up",
        "two_factor.enabled",
        "two_factor.required",
        "two_factor.recovery_code_used",
        "session.reauthenticated",
    ] {
        let entries = world.audit(action).await;
        assert_eq!(entries.len(), 1, "{action}");
        written.push_str(&format!("{entries:?}"));
    }
    let secret = authenticator.secret.expose();
    let halves = recovery.split('-');
    for text in [secret].into_iter().chain(halves) {
        assert!(!written.contains(text));
    }
}
