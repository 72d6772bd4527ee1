//! Sign-up with an address and a password.

use std::sync::Arc;

use core_domain::port::PasswordError;
use core_domain::testing::MockPasswordHasher;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{ADA, GET_SESSION, SIGN_UP, cookies};
use crate::world::{PASSWORD, World, on_every_store};

const NOW: &str = "2027-01-15T08:00:00.000Z";

fn body(email: &str, password: &str) -> Value {
    json!({ "name": "Ada", "email": email, "password": password })
}

#[tokio::test]
async fn a_sign_up_creates_a_user_and_a_session_for_cookie_and_bearer_token() {
    let world = World::new();
    let wanted = json!({ "name": "", "email": " Ada@Example.ORG ", "password": PASSWORD });
    let agent = [("user-agent", &*"x".repeat(10_000))];
    let made = world
        .send_unidentified("POST", SIGN_UP, &agent, wanted)
        .await
        .expect(200);
    let user = json!({
        "id": made.json["user"]["id"], "name": "", "email": ADA, "emailVerified": false,
        "image": null, "createdAt": NOW, "updatedAt": NOW,
    });
    assert_eq!(made.json["user"], user);
    let (token, signed) = (made.text("token"), made.header("set-auth-token"));
    assert_eq!((token.len(), signed.len()), (43, 43 + 1 + 44));
    assert!(signed.starts_with(token));
    let exposed = made.header("access-control-expose-headers");
    assert_eq!(exposed, "set-auth-token");
    assert_eq!(cookies(&made).len(), 2);
    let (cookie, attributes) = cookies(&made)[0].split_once("; ").unwrap();
    assert_eq!(attributes, "Max-Age=604800; Path=/; HttpOnly; SameSite=Lax");

    let [bare, signed] = [token, signed].map(|token| format!("bearer {token}"));
    for shown in [
        ("authorization", &*bare),
        ("authorization", &*signed),
        ("cookie", cookie),
    ] {
        let found = world
            .send_unidentified("GET", GET_SESSION, &[shown], Value::Null)
            .await;
        let session = json!({
            "id": found.json["session"]["id"], "token": token, "userId": user["id"],
            "createdAt": NOW, "updatedAt": NOW, "expiresAt": "2027-01-22T08:00:00.000Z",
            "ipAddress": "192.0.2.7", "userAgent": "x".repeat(512), "activeOrganizationId": null,
        });
        assert_eq!(found.json, json!({ "session": session, "user": user }));
        let uncached = (found.header("cache-control"), found.header("pragma"));
        assert_eq!(uncached, ("no-store", "no-cache"));
        assert!(cookies(&found).is_empty());
    }
    let entries = world.audit("user.signed_up").await;
    assert_eq!(
        (entries.len(), &*entries[0].actor_id),
        (1, user["id"].as_str().unwrap())
    );
    let shown = format!("{entries:?}");
    assert!(!shown.contains(token) && !shown.contains(PASSWORD));
}

#[tokio::test]
async fn refusals_have_the_codes_and_messages_of_better_auth() {
    let world = World::new();
    let evil = json!({ "name": "A", "email": ADA, "password": PASSWORD, "callbackURL": "//evil" });
    for (wanted, status, code) in [
        (body(ADA, "short"), 400, "PASSWORD_TOO_SHORT"),
        // Normalized, these are seven letters.
        (body(ADA, &"e\u{301}".repeat(7)), 400, "PASSWORD_TOO_SHORT"),
        (body(ADA, &"ab".repeat(65)), 400, "PASSWORD_TOO_LONG"),
        (
            body(ADA, &"\u{301}".repeat(100_000)),
            400,
            "PASSWORD_TOO_LONG",
        ),
        (body(ADA, "Password123"), 400, "PASSWORD_TOO_COMMON"),
        (evil, 403, "INVALID_CALLBACK_URL"),
        (json!({ "email": "nobody" }), 400, "VALIDATION_ERROR"),
    ] {
        let refused = world.post(SIGN_UP, wanted).await;
        assert_eq!(refused.text("code"), code);
        refused.expect_error(status, code);
    }
    let invalid = world.post(SIGN_UP, json!({ "email": "nobody", "password": PASSWORD }));
    let message = "[body.name] Invalid input: expected string, received undefined; \
                   [body.email] Invalid email address";
    assert_eq!(invalid.await.text("message"), message);
    let malformed = world.post_text(SIGN_UP, "application/json", "{").await;
    let said = (malformed.text("code"), malformed.text("message"));
    assert_eq!(said, ("BAD_REQUEST", "Invalid JSON in request body"));
    let [unknown, own] = [
        world.post("/api/auth/nothing", json!({})).await,
        world.post("/api/core/nothing", json!({})).await,
    ];
    assert_eq!(unknown.text("code"), "NOT_FOUND");
    assert_eq!(own.json.get("code"), None);
    assert!(world.audit("user.signed_up").await.is_empty());
}

async fn one_address_has_one_user_in_any_letter_case_and_with_concurrent_sign_ups(world: World) {
    let asked = (0..8).map(|_| world.post(SIGN_UP, body(ADA, PASSWORD)));
    let made = join_all(asked).await;
    let made = made.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(made, 1);
    let refused = world.post(SIGN_UP, body("ADA@example.org", PASSWORD)).await;
    let refused = refused.expect_error(422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL");
    let message = "User already exists. Use another email.";
    assert_eq!(refused.text("message"), message);
    assert!(cookies(&refused).is_empty());
    assert_eq!(world.audit("user.sign_up_refused").await.len(), 8);
}

on_every_store! { one_address_has_one_user_in_any_letter_case_and_with_concurrent_sign_ups }

#[tokio::test]
async fn hashing_failures_reveal_whether_to_retry_but_not_the_cause() {
    let busy: fn() -> PasswordError = || PasswordError::Busy;
    let failed: fn() -> PasswordError = || PasswordError::Failed("out of memory".to_owned());
    for (error, status) in [(busy, 503), (failed, 500)] {
        let mut hasher = MockPasswordHasher::new();
        hasher.expect_hash().returning(move |_| Err(error()));
        hasher.expect_verify().returning(move |_, _| Err(error()));
        let world = World::with(|app| app.hasher = Arc::new(hasher));
        for refused in [
            world.post(SIGN_UP, body(ADA, PASSWORD)).await,
            world.sign_in(ADA, PASSWORD).await,
        ] {
            assert!(!refused.expect(status).json.to_string().contains("memory"));
        }
    }
}
