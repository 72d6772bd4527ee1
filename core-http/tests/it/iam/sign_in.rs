//! Sign-in with an address and a password.

use std::sync::{Arc, Mutex};

use core_domain::access::PublicScope;
use core_domain::iam::PasswordHash;
use core_domain::kernel::{Code, Context, Email};
use core_domain::port::{HashForm, Mode};
use core_domain::testing::MockPasswordHasher;
use core_domain::use_case::iam::user::{PasswordCredential, SignIn, password_credential, sign_in};
use serde_json::{Value, json};

use super::{
    ADA, DAY, EVE, FORM_CONTENT_TYPE, GET_SESSION, SIGN_IN, SIGN_UP, WRONG_PASSWORD, cookies,
    without_request_id,
};
use crate::world::{PASSWORD, World};

#[tokio::test]
async fn each_sign_in_gets_its_own_token_and_redirects_on_request() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let plain = world.sign_in("Ada@example.org", PASSWORD).await.expect(200);
    assert_ne!(ada.token, plain.text("token"));
    let user = &plain.json["user"];
    assert_eq!(user["id"], ada.user_id.as_str());
    let answer = json!({ "redirect": false, "token": plain.text("token"), "user": user });
    assert_eq!((&plain.json, plain.header("location")), (&answer, ""));
    let to = |url: &str| json!({ "email": ADA, "password": PASSWORD, "callbackURL": url });
    let sent_on = world.post(SIGN_IN, to("/dash")).await.expect(200);
    assert_eq!(sent_on.json["redirect"], true);
    let target = (sent_on.text("url"), sent_on.header("location"));
    assert_eq!(target, ("/dash", "/dash"));
    let refused = world.post(SIGN_IN, to("https://evil.net")).await;
    refused.expect_error(403, "INVALID_CALLBACK_URL");
    let entries = world.audit("user.signed_in").await;
    assert_eq!((entries.len(), &entries[0].actor_id), (2, &ada.user_id));
}

#[tokio::test]
async fn wrong_passwords_and_unknown_addresses_are_refused_alike_and_audited() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let mut refusals = Vec::new();
    for (email, password) in [(ADA, WRONG_PASSWORD), (EVE, PASSWORD), (ADA, "")] {
        let refused = world.sign_in(email, password).await;
        let refused = refused.expect_error(401, "INVALID_EMAIL_OR_PASSWORD");
        assert_eq!(refused.text("message"), "Invalid email or password");
        assert!(cookies(&refused).is_empty());
        refusals.push(without_request_id(refused));
    }
    for refusal in &refusals {
        assert_eq!(*refusal, refusals[0]);
    }
    let no_address = world.sign_in("nobody", PASSWORD).await;
    no_address.expect_error(400, "INVALID_EMAIL");
    let entries = world.audit("user.sign_in_failed").await;
    let mut of_whom: Vec<&str> = entries.iter().map(|e| e.entity_id.as_str()).collect();
    // All entries have the same time, and the audit log guarantees no order among them.
    of_whom.sort_unstable();
    assert_eq!(of_whom, [&*ada.user_id, &*ada.user_id, "unknown"]);
    let shown = format!("{entries:?}");
    assert!(shown.contains(EVE) && !shown.contains("horse"));
}

#[tokio::test]
async fn forms_sign_in_and_sessions_not_remembered_get_cookies_without_max_age() {
    let world = World::new();
    let send = async |path, text: &str| {
        let text = format!("{text}&email=ada%40example.org");
        world.post_text(path, FORM_CONTENT_TYPE, &text).await
    };
    let up = send(SIGN_UP, "name=Ada&password=correct+horse+battery").await;
    let _ = up.expect(200);
    let refused = send(SIGN_IN, "password=wrong+horse+battery").await;
    refused.expect_error(401, "INVALID_EMAIL_OR_PASSWORD");
    let signed_in = send(SIGN_IN, "password=correct+horse+battery&rememberMe=false").await;
    let (token, set) = (signed_in.text("token"), cookies(&signed_in));
    assert_eq!(set.len(), 3);
    assert!(set[1].starts_with("better-auth.dont_remember=true."));
    assert!(set[2].starts_with("core.device="));
    for cookie in set {
        let attributes = "%3D; Path=/; HttpOnly; SameSite=Lax";
        assert!(cookie.ends_with(attributes), "{cookie}");
    }
    world.tick(DAY - 1);
    let last = world.send_with_bearer(token, "GET", GET_SESSION).await;
    let end = "2027-01-16T08:00:00.000Z";
    assert_eq!(last.json["session"]["expiresAt"], end);
    world.tick(1);
    let over = world
        .send_with_bearer(token, "GET", GET_SESSION)
        .await
        .expect(200);
    assert_eq!(over.json, Value::Null);
}

#[tokio::test]
async fn passwords_match_in_composed_and_decomposed_unicode_form() {
    let world = World::new();
    let up = json!({ "name": "A", "email": ADA, "password": "caf\u{e9} au lait" });
    let _ = world.post(SIGN_UP, up).await.expect(200);
    for (password, status) in [("cafe\u{301} au lait", 200), ("cafe au lait", 401)] {
        let _ = world.sign_in(ADA, password).await.expect(status);
    }
}

#[tokio::test]
async fn every_sign_in_checks_one_hash_even_for_unknown_addresses_and_overlong_passwords() {
    let checked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&checked);
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_hash().returning(|_| Ok("hash".to_owned()));
    hasher.expect_verify().returning(move |password, hash| {
        let known = hash.is_some();
        seen.lock().unwrap().push((password.len(), known));
        Ok(true)
    });
    hasher.expect_form().return_const(HashForm::Current);
    let world = World::with(|app| app.hasher = Arc::new(hasher));
    world.sign_up(ADA).await;
    for (email, length, status) in [
        (ADA, 512, 200),
        (ADA, 513, 401),
        (EVE, 512, 401),
        (EVE, 100_000, 401),
    ] {
        let password = "x".repeat(length);
        let _ = world.sign_in(email, &password).await.expect(status);
    }
    let expected = [(512, true), (0, true), (512, false), (0, false)];
    assert_eq!(*checked.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_password_that_changes_during_its_check_does_not_sign_in() {
    let world = World::new();
    world.sign_up(ADA).await;
    let mut uow = world.app.store.begin(Mode::Write).await.unwrap();
    let found = password_credential(uow.as_mut(), &Email::parse(ADA).unwrap()).await;
    let on_file = found.unwrap().unwrap();
    let before = PasswordHash::new("before".to_owned());
    let cx = Context::system(Arc::clone(&world.app.entropy));
    let refused = Some(Code::InvalidEmailOrPassword);
    for (hash, expected) in [(before, refused), (on_file.hash.clone(), None)] {
        let checked = PasswordCredential {
            hash,
            ..on_file.clone()
        };
        let remembered = true;
        let input = SignIn {
            checked,
            remembered,
            require_verified_email: false,
            device: None,
        };
        let done = sign_in(&cx, &PublicScope::open(), uow.as_mut(), &input).await;
        assert_eq!(done.err().map(|error| error.code()), expected);
    }
}
