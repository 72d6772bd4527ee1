//! Passkeys, with software authenticators that make real keys and signatures.

use core_domain::iam::TokenHash;
use core_domain::kernel::{Caller, UserId};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{ADA, EVE, GET_SESSION, cookies};
use crate::world::{World, on_every_store, operator};

const NOBODY: &Caller = &Caller::Anonymous;

async fn a_registered_passkey_signs_in(world: World) {
    let ada = world.sign_up(ADA).await;
    let mut phone = world.create_passkey(&ada, 1).await;
    let own = world.passkeys_of(&ada).await;
    assert_eq!(own.len(), 1);
    assert_eq!(own[0]["name"], "Phone");
    assert_eq!(own[0]["credentialID"], phone.id());
    assert_eq!(own[0]["userId"], ada.user_id.as_str());
    assert_eq!(own[0]["deviceType"], "singleDevice");
    assert_eq!(own[0]["transports"], "internal");
    assert_eq!(
        (&own[0]["counter"], &own[0]["lastUsedAt"]),
        (&json!(1), &Value::Null)
    );
    assert_eq!(world.audit("passkey.added").await.len(), 1);
    world.tick(60);
    let done = world.sign_in_by_passkey(&mut phone).await.expect(200);
    assert_eq!(done.json["user"]["id"], ada.user_id.as_str());
    assert_eq!(done.header("cache-control"), "no-store");
    let set = cookies(&done);
    assert!(
        set.iter()
            .any(|c| c.starts_with("better-auth.session_token=") && !c.contains("=;"))
    );
    assert!(
        set.iter()
            .any(|c| c.starts_with("better-auth.better-auth-passkey=; Max-Age=0"))
    );
    let token = done.json["session"]["token"].as_str().unwrap();
    let session = world.send_with_bearer(token, "GET", GET_SESSION).await;
    assert_eq!(session.json["user"]["email"], ADA);
    let own = world.passkeys_of(&ada).await;
    assert_eq!(own[0]["counter"], 2);
    assert!(own[0]["lastUsedAt"].is_string());
    let told = world.audit("user.signed_in").await;
    let entry = told.first().unwrap();
    assert_eq!(entry.actor_id, ada.user_id);
    assert!(
        entry
            .after
            .as_ref()
            .unwrap()
            .as_str()
            .contains(r#""method":"passkey""#)
    );
    assert_eq!(world.audit("passkey.used").await.len(), 1);
}

async fn a_challenge_works_once_even_for_concurrent_answers(world: World) {
    let ada = world.sign_up(ADA).await;
    let begun = &world.begin_passkey(&ada).await;
    let mut made = [1, 2, 3].map(|seed| world.authenticator(seed));
    let made = made.each_mut().map(|one| one.create(&begun.options));
    let rivals = made
        .iter()
        .map(|made| world.finish_passkey(&ada, &begun.cookie, made));
    let answers = join_all(rivals).await;
    let kept = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!((kept, world.passkeys_of(&ada).await.len()), (1, 1));
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!(refused.code(), "CHALLENGE_NOT_FOUND");
    }
    // This authenticator does not count, so only the used challenge makes the second answer fail.
    let mut phone = world.authenticator(9);
    phone.counts = false;
    world.register_passkey(&ada, &mut phone).await;
    let asked = &world.begin_passkey_sign_in().await;
    let shown = &phone.get(&asked.options);
    let rivals = (0..3).map(|_| world.finish_passkey_sign_in(NOBODY, &asked.cookie, shown));
    let answers = join_all(rivals).await;
    let (done, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!((done.len(), refused.len()), (1, 2));
    for refused in refused {
        assert_eq!(refused.code(), "CHALLENGE_NOT_FOUND");
    }
    let replayed = world
        .finish_passkey_sign_in(NOBODY, &asked.cookie, shown)
        .await;
    replayed.expect_error(400, "CHALLENGE_NOT_FOUND");
    // A wrong answer uses up the challenge as well.
    let asked = world.begin_passkey_sign_in().await;
    let mut elsewhere = phone.clone();
    elsewhere.origin = "https://evil.example.net".to_owned();
    let wrong = elsewhere.get(&asked.options);
    let wrong = world
        .finish_passkey_sign_in(NOBODY, &asked.cookie, &wrong)
        .await;
    wrong.expect_error(401, "AUTHENTICATION_FAILED");
    let right = phone.get(&asked.options);
    let late = world
        .finish_passkey_sign_in(NOBODY, &asked.cookie, &right)
        .await;
    late.expect_error(400, "CHALLENGE_NOT_FOUND");
}

async fn a_decreasing_counter_is_refused_and_audited(world: World) {
    let ada = world.sign_up(ADA).await;
    let mut phone = world.create_passkey(&ada, 1).await;
    let mut copy = phone.clone();
    let _ = world.sign_in_by_passkey(&mut phone).await.expect(200);
    let refused = world.sign_in_by_passkey(&mut copy).await;
    refused.expect_error(401, "AUTHENTICATION_FAILED");
    let told = world.audit("passkey.counter_went_back").await;
    assert_eq!((told.len(), told[0].actor_id.as_str()), (1, "anonymous"));
    let own = world.passkeys_of(&ada).await;
    assert_eq!(told[0].entity_id, own[0]["id"].as_str().unwrap());
    assert_eq!(own[0]["counter"], 2);
    let _ = world.sign_in_by_passkey(&mut phone).await.expect(200);
}

on_every_store! {
    a_registered_passkey_signs_in,
    a_challenge_works_once_even_for_concurrent_answers,
    a_decreasing_counter_is_refused_and_audited,
}

#[tokio::test]
async fn a_passkey_replaces_password_and_second_factor() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    world.enable_second_factor(&ada).await;
    let mut phone = world.create_passkey(&ada, 1).await;
    let waiting = world.begin_sign_in(ADA).await;
    let asked = world.begin_passkey_sign_in().await;
    let shown = phone.get(&asked.options);
    let both = format!("{waiting}; {}", asked.cookie);
    let done = world
        .finish_passkey_sign_in(NOBODY, &both, &shown)
        .await
        .expect(200);
    assert!(done.json["session"]["token"].is_string());
    let set = cookies(&done);
    assert!(
        set.iter()
            .any(|c| c.starts_with("better-auth.two_factor=; Max-Age=0"))
    );
}

#[tokio::test]
async fn unverified_users_wrong_origins_and_forged_keys_are_refused() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let mut phone = world.create_passkey(&ada, 1).await;
    let mut careless = phone.clone();
    careless.verifies_user = false;
    let mut elsewhere = phone.clone();
    elsewhere.origin = "http://iam.test.evil.net".to_owned();
    let mut forged = world.authenticator(2);
    forged.credential_id.clone_from(&phone.credential_id);
    forged.user_handle.clone_from(&phone.user_handle);
    forged.counter = 100;
    for wrong in [&mut careless, &mut elsewhere, &mut forged] {
        let refused = world.sign_in_by_passkey(wrong).await;
        refused.expect_error(401, "AUTHENTICATION_FAILED");
    }
    assert_eq!(world.audit("passkey.failed").await.len(), 3);
    let _ = world.sign_in_by_passkey(&mut phone).await.expect(200);
    let begun = world.begin_passkey(&ada).await;
    let mut careless = world.authenticator(3);
    careless.verifies_user = false;
    let made = careless.create(&begun.options);
    let refused = world.finish_passkey(&ada, &begun.cookie, &made).await;
    refused.expect_error(400, "FAILED_TO_VERIFY_REGISTRATION");
    assert_eq!(world.audit("passkey.registration_failed").await.len(), 1);
}

#[tokio::test]
async fn a_passkey_authenticates_only_its_owner() {
    let world = World::new();
    let (ada, eve) = (world.sign_up(ADA).await, world.sign_up(EVE).await);
    let phone = world.create_passkey(&ada, 1).await;
    let mut hers = world.create_passkey(&eve, 2).await;
    // Eve's credential comes with Ada's user handle, and then with none.
    hers.user_handle.clone_from(&phone.user_handle);
    let refused = world.sign_in_by_passkey(&mut hers).await;
    refused.expect_error(401, "AUTHENTICATION_FAILED");
    hers.user_handle = None;
    let refused = world.sign_in_by_passkey(&mut hers).await;
    refused.expect_error(401, "AUTHENTICATION_FAILED");
    // A challenge belongs to the person who began. Eve cannot complete Ada's, and cannot register Ada's passkey for
    // herself.
    let begun = world.begin_passkey(&ada).await;
    let made = world.authenticator(3).create(&begun.options);
    let foreign = world.finish_passkey(&eve, &begun.cookie, &made).await;
    foreign.expect_error(400, "CHALLENGE_NOT_FOUND");
    let begun = world.begin_passkey(&eve).await;
    let same = world.authenticator(1).create(&begun.options);
    let taken = world.finish_passkey(&eve, &begun.cookie, &same).await;
    taken.expect_error(400, "PREVIOUSLY_REGISTERED");
    let nobody = world.finish_passkey(&eve, "", &made).await;
    nobody.expect_error(400, "CHALLENGE_NOT_FOUND");
    // A registration challenge does not sign in, and a sign-in challenge does not register.
    let begun = world.begin_passkey(&ada).await;
    let shown = phone.clone().get(&json!({
        "rpId": "iam.test", "challenge": begun.options["challenge"],
    }));
    let mixed = world
        .finish_passkey_sign_in(NOBODY, &begun.cookie, &shown)
        .await;
    mixed.expect_error(400, "CHALLENGE_NOT_FOUND");
    let asked = world.begin_passkey_sign_in().await;
    let mixed = world.finish_passkey(&ada, &asked.cookie, &made).await;
    mixed.expect_error(400, "CHALLENGE_NOT_FOUND");
}

#[tokio::test]
async fn sign_in_options_reveal_no_credentials() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    world.create_passkey(&ada, 1).await;
    let asked = world.begin_passkey_sign_in().await;
    assert_eq!(asked.options["allowCredentials"], json!([]));
    assert_eq!(asked.options["userVerification"], "required");
    let begun = world.begin_passkey(&ada).await;
    let excluded = begun.options["excludeCredentials"].as_array().unwrap();
    assert_eq!(excluded.len(), 1);
}

#[tokio::test]
async fn only_the_owner_renames_and_removes_a_passkey() {
    let world = World::new();
    let (ada, eve) = (world.sign_up(ADA).await, world.sign_up(EVE).await);
    let mut phone = world.create_passkey(&ada, 1).await;
    let id = world.passkeys_of(&ada).await[0]["id"].clone();
    let (rename, remove) = (json!({ "id": id, "name": "Laptop" }), json!({ "id": id }));
    let call = async |person: &crate::world::Person, call: &str, body: &Value| {
        world
            .call_passkey(&person.caller(), call, "", body.clone())
            .await
    };
    call(&eve, "update-passkey", &rename)
        .await
        .expect_error(404, "PASSKEY_NOT_FOUND");
    call(&eve, "delete-passkey", &remove)
        .await
        .expect_error(404, "PASSKEY_NOT_FOUND");
    let renamed = call(&ada, "update-passkey", &rename).await.expect(200);
    assert_eq!(renamed.json["passkey"]["name"], "Laptop");
    world.tick(600);
    let stale = call(&ada, "delete-passkey", &remove).await;
    let stale = stale.expect_error(403, "STEP_UP_REQUIRED");
    assert!(stale.bytes.windows(9).any(|part| part == b"\"passkey\""));
    let asked = world.begin_passkey_sign_in().await;
    let shown = phone.get(&asked.options);
    let proved = world
        .finish_passkey_sign_in(&ada.caller(), &asked.cookie, &shown)
        .await;
    let proved = proved.expect(200);
    assert_eq!(proved.json["session"]["id"], ada.session_id.as_str());
    assert!(
        cookies(&proved)
            .iter()
            .all(|c| !c.contains("session_token"))
    );
    let told = world.audit("session.reauthenticated").await;
    assert_eq!((told.len(), &told[0].entity_id), (1, &ada.session_id));
    let removed = call(&ada, "delete-passkey", &remove).await.expect(200);
    assert_eq!(removed.json, json!({ "status": true }));
    let gone = world.sign_in_by_passkey(&mut phone).await;
    gone.expect_error(401, "PASSKEY_NOT_FOUND");
    assert_eq!(world.audit("passkey.removed").await.len(), 1);
}

#[tokio::test]
async fn adding_a_passkey_requires_a_fresh_proof() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let begun = world.begin_passkey(&ada).await;
    let made = world.authenticator(1).create(&begun.options);
    world.tick(300);
    let late = world.finish_passkey(&ada, &begun.cookie, &made).await;
    late.expect_error(400, "CHALLENGE_NOT_FOUND");
    world.tick(299);
    let begun = world.begin_passkey(&ada).await;
    world.tick(1);
    let made = world.authenticator(1).create(&begun.options);
    let stale = world.finish_passkey(&ada, &begun.cookie, &made).await;
    stale.expect_error(403, "STEP_UP_REQUIRED");
    let call = "generate-register-options";
    let caller = ada.caller();
    let stale = world.call_passkey(&caller, call, "", Value::Null);
    stale.await.expect_error(403, "STEP_UP_REQUIRED");
    let nobody = world.call_passkey(NOBODY, call, "", Value::Null).await;
    nobody.expect_error(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn a_passkey_does_not_reauthenticate_the_session_of_another_person() {
    let world = World::new();
    let (ada, eve) = (world.sign_up(ADA).await, world.sign_up(EVE).await);
    let mut phone = world.create_passkey(&ada, 1).await;
    let asked = world.begin_passkey_sign_in().await;
    let shown = phone.get(&asked.options);
    let done = world
        .finish_passkey_sign_in(&eve.caller(), &asked.cookie, &shown)
        .await;
    let done = done.expect(200);
    assert_eq!(done.json["user"]["id"], ada.user_id.as_str());
    assert_ne!(done.json["session"]["id"], eve.session_id.as_str());
    assert!(world.audit("session.reauthenticated").await.is_empty());
}

#[tokio::test]
async fn a_banned_person_cannot_sign_in_by_passkey() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let mut phone = world.create_passkey(&ada, 1).await;
    let path = format!("/api/core/users/{}/ban", ada.user_id);
    let banned = world.iam.post(&operator(), &path, json!({})).await;
    let _ = banned.expect(200);
    let kept_out = world.sign_in_by_passkey(&mut phone).await;
    kept_out.expect_error(403, "BANNED_USER");
    assert_eq!(world.audit("passkey.failed").await.len(), 1);
}

#[tokio::test]
async fn a_sign_in_link_removes_passkeys_added_before_the_confirmation() {
    let world = World::new();
    let mallory = world.sign_up(ADA).await;
    let mut hers = world.create_passkey(&mallory, 1).await;
    // Such passkeys exist from the time before a passkey required a confirmed address.
    world.set_confirmed(&mallory, false).await;
    let [magic, ..] = world.link_tokens(ADA).await;
    let _ = world.follow_magic_link(&magic).await.expect(200);
    let gone = world.sign_in_by_passkey(&mut hers).await;
    gone.expect_error(401, "PASSKEY_NOT_FOUND");
    assert_eq!(world.audit("passkey.unverified_removed").await.len(), 1);
}

#[tokio::test]
async fn challenges_are_stored_without_their_token_and_passkeys_shown_without_their_key() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    world.create_passkey(&ada, 1).await;
    for (begun, user) in [
        (world.begin_passkey(&ada).await, Some(ada.user_id.as_str())),
        (world.begin_passkey_sign_in().await, None),
    ] {
        let stored = world.passkey_challenges().await;
        let hash = TokenHash::of(begun.token());
        let of_token = stored.iter().find(|one| one.token_hash == hash).unwrap();
        assert_eq!(of_token.user_id.as_ref().map(UserId::as_str), user);
        let stored = format!("{stored:?}");
        assert!(!stored.contains(begun.token()), "{stored}");
        // The stored state does contain the challenge that the authenticator signs.
        let challenge = begun.options["challenge"].as_str().unwrap();
        assert!(stored.contains(challenge), "{stored}");
    }
    let own = world.passkeys_of(&ada).await;
    assert_eq!(own[0].get("credential"), None);
    let told = world.audit("passkey.added").await;
    let after = told[0].after.as_ref().unwrap().as_str();
    assert!(
        after.contains("credentialID") && !after.contains("\"credential\""),
        "{after}"
    );
}

#[tokio::test]
async fn disabled_passkeys_cannot_be_registered_or_used_but_can_be_removed() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let mut phone = world.create_passkey(&ada, 1).await;
    let (registering, signing_in) = (
        world.begin_passkey(&ada).await,
        world.begin_passkey_sign_in().await,
    );
    let made = world.authenticator(2).create(&registering.options);
    let shown = phone.get(&signing_in.options);
    let world = world.without_passkeys();
    let caller = &ada.caller();
    for (caller, call) in [
        (caller, "generate-register-options"),
        (NOBODY, "generate-authenticate-options"),
    ] {
        let refused = world.call_passkey(caller, call, "", Value::Null).await;
        refused.expect_error(400, "PASSKEYS_DISABLED");
    }
    let refused = world.finish_passkey(&ada, &registering.cookie, &made).await;
    refused.expect_error(400, "PASSKEYS_DISABLED");
    let refused = world
        .finish_passkey_sign_in(NOBODY, &signing_in.cookie, &shown)
        .await;
    refused.expect_error(400, "PASSKEYS_DISABLED");
    let own = world.passkeys_of(&ada).await;
    assert_eq!(own.len(), 1);
    let body = json!({ "id": own[0]["id"] });
    let removed = world.call_passkey(caller, "delete-passkey", "", body).await;
    let _ = removed.expect(200);
    assert_eq!(world.passkeys_of(&ada).await, [Value::Null; 0]);
}
