//! Sign-up, sign-in, look-up, sign-out: the wire.

use std::net::SocketAddr;

use http::Request;
use serde_json::{Value, json};

use super::world::{Answer, KEY, PASSWORD, World};
use crate::kernel::{PeerAddr, bytes_body};

#[tokio::test]
async fn signing_up_makes_a_user_and_a_session_that_cookie_and_bearer_both_show() {
    let world = World::new();
    let body = json!({
        "name": "", "email": " Ada@Example.ORG ", "password": PASSWORD,
        "emailVerified": true, "id": "mine", "role": "owner",
    });
    let answer = world
        .post(
            "/api/auth/sign-up/email",
            &[("user-agent", "test/1")],
            &body,
        )
        .await
        .expect(200);
    let user = &answer.body["user"];
    assert_eq!(user["email"], "ada@example.org");
    assert_eq!(user["emailVerified"], false);
    assert_eq!(user["image"], Value::Null);
    assert_eq!(user["createdAt"], "2027-01-15T08:00:00.000Z");
    assert_ne!(user["id"], "mine");
    let token = answer.token();
    assert_eq!(token.len(), 43);
    let [cookie] = answer.cookies()[..] else {
        panic!("one cookie")
    };
    assert!(
        cookie.ends_with("; Max-Age=604800; Path=/; HttpOnly; SameSite=Lax"),
        "{cookie}"
    );
    let signed = answer.headers["set-auth-token"].to_str().unwrap();
    assert!(signed.starts_with(&format!("{token}.")) && signed.len() == 43 + 1 + 44);
    assert_eq!(
        answer.headers["access-control-expose-headers"],
        "set-auth-token"
    );

    let bearers = [token.clone(), signed.to_owned()].map(|t| format!("Bearer {t}"));
    let cookie = answer.cookie();
    for header in [
        ("authorization", &bearers[0]),
        ("authorization", &bearers[1]),
        ("cookie", &cookie),
    ] {
        let found = world
            .get("/api/auth/get-session", &[(header.0, header.1)])
            .await
            .expect(200);
        assert_eq!(found.body["user"]["id"], *user.get("id").unwrap());
        assert_eq!(found.body["session"]["token"], token.as_str());
        assert_eq!(found.body["session"]["userAgent"], "test/1");
        assert_eq!(found.body["session"]["ipAddress"], "");
        assert_eq!(
            found.body["session"]["expiresAt"],
            "2027-01-22T08:00:00.000Z"
        );
        assert_eq!(found.headers["cache-control"], "no-store");
        assert!(found.cookies().is_empty());
    }
    assert_eq!(world.audit("user.signed_up").await.len(), 1);
}

#[tokio::test]
async fn what_is_wrong_with_a_sign_up_is_said_as_better_auth_and_as_the_suite_say_it() {
    let world = World::new();
    let up = "/api/auth/sign-up/email";
    let answer = world
        .post(up, &[], &json!({ "email": "nobody" }))
        .await
        .expect(400);
    let message = answer.body["message"].as_str().unwrap();
    assert!(
        message.contains("[body.name] Invalid input: expected string, received undefined"),
        "{message}"
    );
    assert!(
        message.contains("[body.email] Invalid email address"),
        "{message}"
    );
    assert!(message.contains("; "), "{message}");
    assert_eq!(answer.body["code"], "VALIDATION_ERROR");
    assert_eq!(answer.body["error"]["code"], "VALIDATION_ERROR");
    assert_eq!(
        answer.body["error"]["details"]["issues"]
            .as_array()
            .unwrap()
            .len(),
        3
    );

    for (password, code) in [
        ("short", "PASSWORD_TOO_SHORT"),
        (&*"ab".repeat(65), "PASSWORD_TOO_LONG"),
        ("Password123", "PASSWORD_TOO_COMMON"),
    ] {
        let body = json!({ "name": "Ada", "email": "ada@example.org", "password": password });
        assert_eq!(
            world.post(up, &[], &body).await.expect(400).body["code"],
            code
        );
    }
    let bad = world
        .send("POST", up, &[("content-type", "application/json")], "{")
        .await
        .expect(400);
    assert_eq!(bad.body["code"], "BAD_REQUEST");
    assert_eq!(bad.body["message"], "Invalid JSON in request body");
    let text = world
        .send("POST", up, &[("content-type", "text/plain")], "hello")
        .await
        .expect(415);
    assert_eq!(text.body["code"], "UNSUPPORTED_MEDIA_TYPE");
    let body = json!({ "name": "A", "email": "a@b.org", "password": PASSWORD, "callbackURL": "https://evil.net" });
    assert_eq!(
        world.post(up, &[], &body).await.expect(403).body["code"],
        "INVALID_CALLBACK_URL"
    );
    world.get("/api/auth/nothing", &[]).await.expect(404);
}

#[tokio::test]
async fn an_address_has_one_user_in_whatever_case_and_however_many_ask_at_once() {
    let world = World::new();
    let asked = (0..8).map(|_| world.sign_up("ada@example.org"));
    let answers = futures_util::future::join_all(asked).await;
    let made = answers.iter().filter(|a| a.status == 200).count();
    assert_eq!(made, 1);
    let refused = world.sign_up("ADA@example.org").await.expect(422);
    assert_eq!(
        refused.body["code"],
        "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"
    );
    assert_eq!(
        refused.body["message"],
        "User already exists. Use another email."
    );
    assert!(refused.cookies().is_empty());
    assert_eq!(world.audit("user.sign_up_refused").await.len(), 8);
}

#[tokio::test]
async fn forms_are_taken_and_refused_in_the_same_words() {
    let world = World::new();
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let body = "name=Ada&email=ada%40example.org&password=correct+horse+battery";
    world
        .send("POST", "/api/auth/sign-up/email", &form, body)
        .await
        .expect(200);
    let body = "email=ada%40example.org&password=correct+horse+battery&rememberMe=false";
    let answer = world
        .send("POST", "/api/auth/sign-in/email", &form, body)
        .await
        .expect(200);
    assert!(
        answer
            .cookies()
            .iter()
            .any(|c| c.starts_with("better-auth.dont_remember=true."))
    );
    let body = "email=ada%40example.org&password=wrong+horse+battery";
    let answer = world
        .send("POST", "/api/auth/sign-in/email", &form, body)
        .await
        .expect(401);
    assert_eq!(answer.body["code"], "INVALID_EMAIL_OR_PASSWORD");
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_address_are_refused_alike_and_both_recorded() {
    let world = World::new();
    world.sign_up("ada@example.org").await.expect(200);
    let mut wrong = world
        .sign_in("ada@example.org", "wrong horse battery")
        .await
        .expect(401)
        .body;
    let mut unknown = world
        .sign_in("eve@example.org", PASSWORD)
        .await
        .expect(401)
        .body;
    for body in [&mut wrong, &mut unknown] {
        assert_eq!(body["message"], "Invalid email or password");
        body["error"]["requestId"] = Value::Null;
    }
    assert_eq!(wrong, unknown);
    let answer = world.sign_in("nobody", PASSWORD).await.expect(400);
    assert_eq!(answer.body["code"], "INVALID_EMAIL");
    let failures = world.audit("user.sign_in_failed").await;
    assert_eq!(failures.len(), 2);
    assert!(!format!("{failures:?}").contains("horse"));
}

#[tokio::test]
async fn each_sign_in_has_a_token_of_its_own_and_a_redirect_where_asked_for() {
    let world = World::new();
    let first = world.sign_up("ada@example.org").await.expect(200).token();
    let second = world.sign_in("Ada@example.org", PASSWORD).await.expect(200);
    assert_ne!(first, second.token());
    assert_eq!(second.body["redirect"], false);
    assert!(second.body.get("url").is_none());
    let body = json!({ "email": "ada@example.org", "password": PASSWORD, "callbackURL": "/dash" });
    let third = world
        .post("/api/auth/sign-in/email", &[], &body)
        .await
        .expect(200);
    assert_eq!(
        (&third.body["redirect"], &third.body["url"]),
        (&json!(true), &json!("/dash"))
    );
    assert_eq!(third.headers["location"], "/dash");
}

#[tokio::test]
async fn signing_out_is_immediate_and_takes_the_cookies_away() {
    let world = World::new();
    let answer = world.sign_up("ada@example.org").await.expect(200);
    let bearer = format!("Bearer {}", answer.token());
    let bearer = [("authorization", bearer.as_str())];
    let out = world
        .post("/api/auth/sign-out", &bearer, &json!({}))
        .await
        .expect(200);
    assert_eq!(out.body, json!({ "success": true }));
    assert_eq!(out.cookies().len(), 3);
    assert!(out.cookies().iter().all(|c| c.contains("=; Max-Age=0;")));
    let gone = world
        .get("/api/auth/get-session", &bearer)
        .await
        .expect(200);
    assert_eq!(gone.body, Value::Null);
    assert_eq!(gone.cookies().len(), 3);
    world.get("/api/core/session", &bearer).await.expect(401);
    world
        .send("POST", "/api/auth/sign-out", &[], "")
        .await
        .expect(200);
    assert_eq!(world.audit("session.signed_out").await.len(), 1);
}

#[tokio::test]
async fn a_used_session_slides_once_a_day_and_ends_after_thirty_days() {
    let world = World::new();
    let answer = world.sign_up("ada@example.org").await.expect(200);
    let bearer = format!("Bearer {}", answer.token());
    let bearer = [("authorization", bearer.as_str())];
    world.later(25);
    let kept = world
        .get("/api/auth/get-session?disableRefresh=true", &bearer)
        .await
        .expect(200);
    assert_eq!(
        kept.body["session"]["expiresAt"],
        "2027-01-22T08:00:00.000Z"
    );
    let slid = world
        .get("/api/auth/get-session", &bearer)
        .await
        .expect(200);
    assert_eq!(
        slid.body["session"]["expiresAt"],
        "2027-01-23T09:00:00.000Z"
    );
    assert_eq!(slid.cookies().len(), 1);
    world.later(1);
    assert!(
        world
            .get("/api/auth/get-session", &bearer)
            .await
            .expect(200)
            .cookies()
            .is_empty()
    );
    for _ in 0..29 {
        world.later(24);
        world
            .get("/api/auth/get-session", &bearer)
            .await
            .expect(200);
    }
    let end = world
        .get("/api/auth/get-session", &bearer)
        .await
        .expect(200);
    assert_eq!(end.body, Value::Null);
    assert_eq!(end.cookies().len(), 3);
}

#[tokio::test]
async fn no_answer_and_no_audit_entry_holds_a_secret() {
    let world = World::new();
    let answer = world.sign_up("ada@example.org").await.expect(200);
    let entries = format!("{:?}", world.audit("user.signed_up").await);
    for secret in [&*answer.token(), PASSWORD, KEY, "$worthless$"] {
        assert!(!entries.contains(secret));
    }
}

#[tokio::test]
async fn a_password_fits_however_the_keyboard_writes_its_letters() {
    let world = World::new();
    let composed =
        json!({ "name": "A", "email": "ada@example.org", "password": "caf\u{e9} au lait" });
    world
        .post("/api/auth/sign-up/email", &[], &composed)
        .await
        .expect(200);
    let decomposed = "cafe\u{301} au lait";
    world
        .sign_in("ada@example.org", decomposed)
        .await
        .expect(200);
    let short =
        json!({ "name": "E", "email": "eve@example.org", "password": "e\u{301}".repeat(7) });
    let short = world
        .post("/api/auth/sign-up/email", &[], &short)
        .await
        .expect(400);
    assert_eq!(short.body["code"], "PASSWORD_TOO_SHORT");
}

/// Signs in from a client behind the proxy that is trusted here.
async fn sign_in_from(world: &World, client: &str, email: &str, password: &str) -> Answer {
    let body = json!({ "email": email, "password": password });
    let request = Request::post("/api/auth/sign-in/email")
        .extension(PeerAddr(SocketAddr::from(([192, 0, 2, 1], 4_000))))
        .header("x-forwarded-for", format!("6.6.6.6, {client}"))
        .body(bytes_body(body.to_string()));
    Answer::of(world.iam.answer(request.unwrap()).await).await
}

#[tokio::test]
async fn nobody_tries_passwords_without_end_and_nobody_else_is_held_up_by_it() {
    let world = World::new();
    let (ada, client) = ("ada@example.org", "203.0.113.9");
    world.sign_up(ada).await.expect(200);
    for _ in 0..40 {
        sign_in_from(&world, client, ada, PASSWORD)
            .await
            .expect(200);
    }
    for _ in 0..30 {
        sign_in_from(&world, client, ada, "wrong horse battery")
            .await
            .expect(401);
    }
    let refused = sign_in_from(&world, client, "ADA@example.org", PASSWORD)
        .await
        .expect(429);
    assert_eq!(refused.body["code"], "RATE_LIMITED");
    assert_eq!(
        refused.body["message"],
        "Too many requests. Please try again later."
    );
    assert_eq!(refused.headers["retry-after"], "60");
    assert_eq!(refused.headers["x-retry-after"], "60");
    sign_in_from(&world, "203.0.113.10", ada, PASSWORD)
        .await
        .expect(200);
    sign_in_from(&world, client, "eve@example.org", PASSWORD)
        .await
        .expect(401);
    world.clock.advance(std::time::Duration::from_secs(60));
    sign_in_from(&world, client, ada, PASSWORD)
        .await
        .expect(200);
}
