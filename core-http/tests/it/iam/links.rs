//! Mailed links: to sign in, to set a new password, and to confirm an address.

use serde_json::{Value, json};

use super::{ADA, EVE, GET_SESSION, NEW_PASSWORD, cookies};
use crate::world::{ORIGIN, PASSWORD, World, on_every_store};

const SEND: &str = "/api/auth/sign-in/magic-link";
const VERIFY: &str = "/api/auth/magic-link/verify";
const RESET: &str = "/api/auth/reset-password";
const REQUEST_RESET: &str = "/api/auth/request-password-reset";
const CONFIRM: &str = "/api/auth/send-verification-email";

#[tokio::test]
async fn a_sign_in_link_works_once_and_signs_up_new_users() {
    let world = World::new();
    let body = json!({ "email": ADA, "name": "Ada", "callbackURL": "/dash", "newUserCallbackURL": "/new" });
    let sent = world.post(SEND, body).await.expect(200);
    assert_eq!(sent.json, json!({ "status": true }));
    let link = world.mailed_link(ADA).await;
    // Clients of better-auth call the API route with the parameters of the link.
    let (page, query) = link.split_once('?').unwrap();
    assert_eq!(page, "http://iam.test/magic-link");
    let path = &format!("{VERIFY}?{query}");
    // A mail scanner that sends `HEAD` does not use up the link.
    let looked = world
        .send_unidentified("HEAD", path, &[], Value::Null)
        .await;
    assert_eq!(looked.status, 302);
    let first = world.send_unidentified("GET", path, &[], Value::Null).await;
    assert_eq!(
        (first.status.as_u16(), first.header("location")),
        (302, "http://iam.test/new")
    );
    assert!(cookies(&first)[0].starts_with("better-auth.session_token="));
    let token = first.header("set-auth-token").to_owned();
    let session = world
        .send_with_bearer(&token, "GET", GET_SESSION)
        .await
        .expect(200);
    let user = &session.json["user"];
    assert_eq!(
        (&user["email"], &user["name"]),
        (&json!(ADA), &json!("Ada"))
    );
    assert_eq!(user["emailVerified"], true);
    let second = world.send_unidentified("GET", path, &[], Value::Null).await;
    let target = "http://iam.test/dash?error=INVALID_TOKEN";
    assert_eq!(
        (second.status.as_u16(), second.header("location")),
        (302, target)
    );
    assert!(cookies(&second).is_empty());
    assert_eq!(world.audit("user.signed_up").await.len(), 1);
}

#[tokio::test]
async fn a_link_without_a_callback_returns_the_session_and_leaves_a_confirmed_account() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    world.confirm(&ada).await;
    let _ = world.post(SEND, json!({ "email": ADA })).await.expect(200);
    let token = world.mailed_token(ADA).await;
    let signed_in = world
        .send_unidentified("GET", &format!("{VERIFY}?token={token}"), &[], Value::Null)
        .await;
    let signed_in = signed_in.expect(200);
    assert_eq!(signed_in.json["user"]["id"], ada.user_id.as_str());
    assert_eq!(signed_in.json["session"]["token"], signed_in.json["token"]);
    let kept = world
        .send_with_bearer(&ada.token, "GET", GET_SESSION)
        .await
        .expect(200);
    assert!(kept.json.is_object());
    let _ = world.sign_in(ADA, PASSWORD).await.expect(200);
}

#[tokio::test]
async fn a_sign_in_link_ends_the_access_of_a_stranger_who_signed_up_with_the_address() {
    let world = World::new();
    let attacker = world.sign_up(ADA).await;
    let _ = world.post(SEND, json!({ "email": ADA })).await.expect(200);
    let token = world.mailed_token(ADA).await;
    let signed_in = world
        .send_unidentified("GET", &format!("{VERIFY}?token={token}"), &[], Value::Null)
        .await;
    let _ = signed_in.expect(200);
    let ended = world
        .send_with_bearer(&attacker.token, "GET", GET_SESSION)
        .await
        .expect(200);
    assert!(ended.json.is_null());
    world
        .sign_in(ADA, PASSWORD)
        .await
        .expect_error(401, "INVALID_EMAIL_OR_PASSWORD");
}

#[tokio::test]
async fn links_expire_after_five_minutes_and_untrusted_callbacks_are_refused() {
    let world = World::new();
    let _ = world.post(SEND, json!({ "email": ADA })).await.expect(200);
    let token = world.mailed_token(ADA).await;
    world.tick(300);
    let late = world
        .send_unidentified("GET", &format!("{VERIFY}?token={token}"), &[], Value::Null)
        .await;
    assert_eq!(
        (late.status.as_u16(), late.header("location")),
        (302, "http://iam.test/?error=INVALID_TOKEN")
    );
    for field in ["callbackURL", "newUserCallbackURL", "errorCallbackURL"] {
        let mut body = json!({ "email": ADA });
        body[field] = "https://evil.net/".into();
        let refused = world.post(SEND, body).await;
        refused.expect_error(403, "INVALID_CALLBACK_URL");
        let path = format!("{VERIFY}?token=x&{field}=https%3A%2F%2Fevil.net");
        let refused = world
            .send_unidentified("GET", &path, &[], Value::Null)
            .await;
        refused.expect_error(403, "INVALID_CALLBACK_URL");
    }
    let missing = world
        .send_unidentified("GET", VERIFY, &[], Value::Null)
        .await;
    missing.expect_error(400, "VALIDATION_ERROR");
}

/// Eight concurrent uses of one link create one session.
async fn concurrent_uses_of_one_link_create_one_session(world: World) {
    let _ = world.post(SEND, json!({ "email": ADA })).await.expect(200);
    let path = format!("{VERIFY}?token={}", world.mailed_token(ADA).await);
    let uses = (0..8).map(|_| world.send_unidentified("GET", &path, &[], Value::Null));
    let answers = futures_util::future::join_all(uses).await;
    let done = answers.iter().filter(|answer| answer.status == 200).count();
    let refused = answers.iter().filter(|answer| answer.status == 302).count();
    assert_eq!((done, refused), (1, 7));
    assert_eq!(world.audit("user.signed_up").await.len(), 1);
}

/// A hundred concurrent sign-ups with one address create one user.
async fn concurrent_sign_ups_with_one_address_create_one_user(world: World) {
    let ups = (0..100).map(|_| {
        let body = json!({ "name": "Ada", "email": ADA, "password": PASSWORD });
        world.post(super::SIGN_UP, body)
    });
    let answers = futures_util::future::join_all(ups).await;
    let done = answers.iter().filter(|answer| answer.status == 200).count();
    let code = "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL";
    let refused = answers
        .iter()
        .filter(|answer| answer.code() == code)
        .count();
    assert_eq!((done, refused), (1, 99));
}

on_every_store! {
    concurrent_uses_of_one_link_create_one_session,
    concurrent_sign_ups_with_one_address_create_one_user,
}

#[tokio::test]
async fn a_reset_link_works_once_and_ends_every_session() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let body = json!({ "email": ADA, "redirectTo": "/new-password" });
    let _ = world.post(REQUEST_RESET, body).await.expect(200);
    let link = world.mailed_link(ADA).await;
    let path = link.strip_prefix(ORIGIN).unwrap();
    let followed = world.send_unidentified("GET", path, &[], Value::Null).await;
    let target = followed.header("location").to_owned();
    let token = target
        .strip_prefix("http://iam.test/new-password?token=")
        .unwrap();
    let set = |password: &str| json!({ "token": token, "newPassword": password });
    world
        .post(RESET, set("short"))
        .await
        .expect_error(400, "PASSWORD_TOO_SHORT");
    let _ = world.post(RESET, set(NEW_PASSWORD)).await.expect(200);
    world
        .post(RESET, set(NEW_PASSWORD))
        .await
        .expect_error(400, "INVALID_TOKEN");
    let ended = world
        .send_with_bearer(&ada.token, "GET", GET_SESSION)
        .await
        .expect(200);
    assert!(ended.json.is_null());
    world
        .sign_in(ADA, PASSWORD)
        .await
        .expect_error(401, "INVALID_EMAIL_OR_PASSWORD");
    let _ = world.sign_in(ADA, NEW_PASSWORD).await.expect(200);
    let late = world.send_unidentified("GET", path, &[], Value::Null).await;
    assert!(
        late.header("location")
            .ends_with("/new-password?error=INVALID_TOKEN")
    );
}

#[tokio::test]
async fn link_requests_do_not_reveal_which_addresses_have_users() {
    let (world, store) = World::faulty();
    world.sign_up(ADA).await;
    let mails = world.mails().await.len();
    for path in [REQUEST_RESET, CONFIRM, SEND] {
        let mut work = Vec::new();
        for email in [ADA, EVE] {
            let queued = world.queued_mails().await.len();
            drop(store.take_queries());
            let answer = world.post(path, json!({ "email": email })).await;
            let queries = store.take_queries().into_iter();
            let tables: Vec<_> = queries.map(|query| query.table.name).collect();
            let queued = world.queued_mails().await.len() - queued;
            let rows = world.count_link_tokens(email).await;
            work.push((answer.expect(200).json, tables, queued, rows));
        }
        assert_eq!(work[0], work[1], "{path}");
        assert_eq!(work[0].2, 1, "{path}");
    }
    let to_eve = world.mails().await.into_iter().skip(mails);
    let to_eve = to_eve.filter(|mail| mail.to.as_str() == EVE);
    assert_eq!(
        to_eve.count(),
        1,
        "an address without a user gets the sign-in link alone"
    );
}

#[tokio::test]
async fn further_link_requests_leave_the_owners_link_valid() {
    let world = World::new();
    world.sign_up(ADA).await;
    for path in [SEND, REQUEST_RESET] {
        let _ = world.post(path, json!({ "email": ADA })).await.expect(200);
        let owners = world.mailed_token(ADA).await;
        for _ in 0..10 {
            world.tick(1);
            let _ = world.post(path, json!({ "email": ADA })).await.expect(200);
        }
        let used = match path {
            SEND => {
                let path = format!("{VERIFY}?token={owners}");
                world
                    .send_unidentified("GET", &path, &[], Value::Null)
                    .await
            }
            _ => {
                let body = json!({ "token": owners, "newPassword": NEW_PASSWORD });
                world.post(RESET, body).await
            }
        };
        let _ = used.expect(200);
    }
}

#[tokio::test]
async fn an_address_gets_five_links_of_a_kind_per_hour_across_all_clients() {
    let world = World::new();
    world.sign_up(ADA).await;
    for path in [SEND, REQUEST_RESET, CONFIRM] {
        let before = [
            world.count_link_tokens(ADA).await,
            world.count_link_tokens(EVE).await,
        ];
        let first = world.post(path, json!({ "email": ADA })).await.expect(200);
        for client in 0..7 {
            let address = format!("203.0.113.{client}");
            for email in [ADA, EVE] {
                let headers = [("x-forwarded-for", address.as_str())];
                let body = json!({ "email": email });
                let next = world
                    .send_unidentified("POST", path, &headers, body)
                    .await
                    .expect(200);
                assert_eq!(next.json, first.json, "{path}");
            }
        }
        let after = [
            world.count_link_tokens(ADA).await,
            world.count_link_tokens(EVE).await,
        ];
        assert_eq!(after, before.map(|before| before + 5), "{path}");
    }
    let mails = world.mails().await.len();
    world.tick(3_599);
    let _ = world.post(SEND, json!({ "email": ADA })).await.expect(200);
    assert_eq!(world.mails().await.len(), mails);
    world.tick(1);
    let _ = world.post(SEND, json!({ "email": ADA })).await.expect(200);
    assert_eq!(world.mails().await.len(), mails + 1);
}

#[tokio::test]
async fn a_verification_link_works_once_and_then_reports_an_invalid_token() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let body = json!({ "email": ADA, "callbackURL": "/done" });
    let _ = world
        .post("/api/auth/send-verification-email", body)
        .await
        .expect(200);
    let link = world.mailed_link(ADA).await;
    // Clients of better-auth call the API route with the parameters of the link.
    let (page, query) = link.split_once('?').unwrap();
    assert_eq!(page, "http://iam.test/verify-email");
    let path = &format!("/api/auth/verify-email?{query}");
    let headers = [("cookie", ada.cookie.as_str())];
    // A mail scanner that sends `HEAD` does not use up the link.
    let looked = world
        .send_unidentified("HEAD", path, &headers, Value::Null)
        .await;
    assert_eq!(
        (looked.status.as_u16(), looked.header("location")),
        (302, &*link)
    );
    for target in [
        "http://iam.test/done",
        "http://iam.test/done?error=INVALID_TOKEN",
    ] {
        let answer = world
            .send_unidentified("GET", path, &headers, Value::Null)
            .await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("location")),
            (302, target)
        );
    }
    let path = "/api/auth/verify-email?token=nonsense";
    let bare = world
        .send_unidentified("GET", path, &headers, Value::Null)
        .await;
    bare.expect_error(401, "INVALID_TOKEN");
    assert_eq!(world.audit("user.email_verified").await.len(), 1);
}

#[tokio::test]
async fn link_tokens_are_neither_audited_nor_readable_in_the_outbox() {
    let world = World::new();
    world.sign_up(ADA).await;
    let tokens = world.link_tokens(ADA).await;
    let stored = world.everything_stored().await;
    for token in tokens {
        assert!(!stored.contains(&token));
    }
}
