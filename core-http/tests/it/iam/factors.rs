//! Changes of second factors: the proof that they require, and their removal by operators.

use core_domain::kernel::Caller;
use serde_json::{Value, json};

use super::trusted_devices::{ada_with_device, sign_in};
use super::{ADA, EVE, GET_SESSION, NEW_PASSWORD, SIGN_IN};
use crate::world::{Answer, PASSWORD, Person, World, operator, pending_sign_in_cookie};

/// The routes that show, renew, add or remove an authenticator, all of which take the password.
const OF_AUTHENTICATOR: [&str; 4] = ["get-totp-uri", "generate-backup-codes", "disable", "enable"];

/// Asserts that a refusal requires a fresh proof by one of these methods.
#[track_caller]
fn assert_step_up_required(refused: Answer, methods: Value) {
    let refused = refused.expect_error(403, "STEP_UP_REQUIRED");
    assert_eq!(refused.json["error"]["details"]["methods"], methods);
}

impl World {
    /// Signs a person in with the password alone. Returns them with the new session.
    async fn session_by_password(&self, person: &Person) -> Person {
        let body = json!({ "email": person.email, "password": PASSWORD });
        let signed_in = self.post(SIGN_IN, body).await.expect(200);
        self.with_session(person, signed_in.text("token")).await
    }

    async fn with_session(&self, person: &Person, token: &str) -> Person {
        Person {
            session_id: self.session_of(token).await,
            token: token.to_owned(),
            ..person.clone()
        }
    }

    async fn passkey_options(&self, person: &Person) -> Answer {
        let path = "/api/auth/passkey/generate-register-options";
        self.iam.get(&person.caller(), path).await
    }

    async fn delete_passkey(&self, person: &Person, id: &Value) -> Answer {
        let path = "/api/auth/passkey/delete-passkey";
        self.iam
            .post(&person.caller(), path, json!({ "id": id }))
            .await
    }

    async fn remove_factors(&self, caller: &Caller, user: &str) -> Answer {
        let path = format!("/api/core/users/{user}/factors");
        self.iam.delete(caller, &path).await
    }
}

#[tokio::test]
async fn the_password_alone_changes_no_factor_on_a_trusted_device() {
    let world = World::new();
    let (ada, authenticator, device) = ada_with_device(&world).await;
    let signed_in = sign_in(&world, ADA, PASSWORD, &device).await;
    let trusted = world.with_session(&ada, signed_in.text("token")).await;
    let proofs = json!(["totp", "backup-code"]);
    let body = json!({ "password": PASSWORD });
    for call in OF_AUTHENTICATOR {
        let refused = world.call_two_factor(&trusted, call, body.clone()).await;
        assert_step_up_required(refused, proofs.clone());
        let refused = world.call_two_factor(&trusted, call, json!({})).await;
        assert_step_up_required(refused, proofs.clone());
    }
    assert_step_up_required(world.passkey_options(&trusted).await, proofs.clone());
    // Another check of the password is not a proof either.
    let (caller, path) = (&trusted.caller(), "/api/auth/verify-password");
    let shown = world.iam.post(caller, path, body.clone()).await;
    let _ = shown.expect(200);
    let refused = world
        .call_two_factor(&trusted, "disable", body.clone())
        .await;
    assert_step_up_required(refused, proofs);
    let code = json!({ "code": authenticator.code(&world) });
    let _ = world
        .call_two_factor(&trusted, "verify-totp", code)
        .await
        .expect(200);
    let _ = world.passkey_options(&trusted).await.expect(200);
    for call in &OF_AUTHENTICATOR[..3] {
        let _ = world
            .call_two_factor(&trusted, call, body.clone())
            .await
            .expect(200);
    }
}

#[tokio::test]
async fn a_registered_passkey_is_a_second_factor_and_the_only_fresh_proof() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    world.confirm(&ada).await;
    let mut authenticator = world.create_passkey(&ada, 1).await;
    // The registration was a proof, so another one needs none.
    let _ = world.passkey_options(&ada).await.expect(200);
    let id = &world.passkeys_of(&ada).await[0]["id"];
    let by_password = world.session_by_password(&ada).await;
    let body = json!({ "password": PASSWORD });
    assert_step_up_required(
        world.passkey_options(&by_password).await,
        json!(["passkey"]),
    );
    assert_step_up_required(
        world.delete_passkey(&by_password, id).await,
        json!(["passkey"]),
    );
    let refused = world.call_two_factor(&by_password, "enable", body).await;
    assert_step_up_required(refused, json!(["passkey"]));
    let signed_in = world.sign_in_by_passkey(&mut authenticator).await;
    let token = signed_in.expect(200).json["session"]["token"].clone();
    let by_passkey = world.with_session(&ada, token.as_str().unwrap()).await;
    world.tick(599);
    let _ = world.passkey_options(&by_passkey).await.expect(200);
    world.tick(1);
    assert_step_up_required(world.passkey_options(&by_passkey).await, json!(["passkey"]));
    let asked = world.begin_passkey_sign_in().await;
    let shown = authenticator.get(&asked.options);
    let caller = by_password.caller();
    let proved = world
        .finish_passkey_sign_in(&caller, &asked.cookie, &shown)
        .await;
    let _ = proved.expect(200);
    let _ = world.delete_passkey(&by_password, id).await.expect(200);
}

#[tokio::test]
async fn older_sessions_require_a_newly_enrolled_factor_at_once() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    world.confirm(&ada).await;
    let older = world.session_by_password(&ada).await;
    let _ = world.passkey_options(&older).await.expect(200);
    let authenticator = world.enable_second_factor(&ada).await;
    let proofs = json!(["totp", "backup-code"]);
    assert_step_up_required(world.passkey_options(&older).await, proofs);
    // The first code was a proof for the session that sent it.
    let _ = world.create_passkey(&ada, 1).await;
    let proofs = json!(["totp", "backup-code", "passkey"]);
    assert_step_up_required(world.passkey_options(&older).await, proofs);
    for code in &authenticator.recovery_codes {
        let body = json!({ "code": code });
        let _ = world
            .call_two_factor(&ada, "verify-backup-code", body)
            .await
            .expect(200);
    }
    // After all recovery codes are used, they are no longer offered.
    assert_step_up_required(
        world.passkey_options(&older).await,
        json!(["totp", "passkey"]),
    );
}

#[tokio::test]
async fn a_pending_authenticator_needs_the_proof_of_a_passkey_registered_later() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    world.confirm(&ada).await;
    let mallory = world.session_by_password(&ada).await;
    let of_mallory = world.set_up_second_factor(&mallory).await;
    let _ = world.create_passkey(&ada, 1).await;
    let code = json!({ "code": of_mallory.code(&world) });
    let refused = world.call_two_factor(&mallory, "verify-totp", code).await;
    assert_step_up_required(refused, json!(["passkey"]));
    assert!(world.audit("two_factor.enabled").await.is_empty());
}

#[tokio::test]
async fn people_without_a_factor_enrol_with_their_password_or_in_a_fresh_session() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    world.confirm(&ada).await;
    let set_up = world.call_two_factor(&ada, "enable", json!({})).await;
    let _ = set_up.expect(200);
    world.tick(600);
    let stale = world.call_two_factor(&ada, "enable", json!({})).await;
    assert_step_up_required(stale, json!(["password"]));
    assert_step_up_required(world.passkey_options(&ada).await, json!(["password"]));
    let _ = world.enable_second_factor(&ada).await;
}

#[tokio::test]
async fn a_session_renewed_by_a_password_change_keeps_the_proofs_of_the_former_one() {
    let world = World::new();
    let (ada, _, device) = ada_with_device(&world).await;
    let change = async |person: &Person| {
        let body = json!({
            "currentPassword": PASSWORD, "newPassword": PASSWORD, "revokeOtherSessions": true,
        });
        let path = "/api/auth/change-password";
        let changed = world
            .iam
            .post(&person.caller(), path, body)
            .await
            .expect(200);
        world.with_session(person, changed.text("token")).await
    };
    let signed_in = sign_in(&world, ADA, PASSWORD, &device).await;
    let trusted = world.with_session(&ada, signed_in.text("token")).await;
    let renewed = change(&trusted).await;
    let proofs = json!(["totp", "backup-code"]);
    assert_step_up_required(world.passkey_options(&renewed).await, proofs);
}

#[tokio::test]
async fn operators_remove_the_lost_factors_of_a_person() {
    let world = World::new();
    let (ada, _, device) = ada_with_device(&world).await;
    let _ = world.create_passkey(&ada, 1).await;
    let eve = world.sign_up(EVE).await;
    let refused = world.remove_factors(&eve.caller(), &ada.user_id).await;
    refused.expect_error(403, "FORBIDDEN");
    let missing = world.remove_factors(&operator(), "nobody").await;
    missing.expect_error(404, "NOT_FOUND");
    let mails = world.mails().await.len();
    // Mails with the same time have no order.
    world.tick(1);
    let removed = world.remove_factors(&operator(), &ada.user_id).await;
    assert_eq!(removed.expect(200).json["id"], ada.user_id.as_str());
    let ended = world
        .send_with_bearer(&ada.token, "GET", GET_SESSION)
        .await
        .expect(200);
    assert_eq!(ended.json, Value::Null);
    for action in [
        "two_factor.removed_by_operator",
        "passkey.removed_by_operator",
    ] {
        assert_eq!(world.audit(action).await.len(), 1, "{action}");
    }
    let told = world.mails().await.split_off(mails);
    let told: Vec<_> = told.iter().map(|mail| mail.subject.as_str()).collect();
    assert_eq!(told, ["Your second factors were removed"]);
    // The device is no longer trusted. The password alone signs in, and is a fresh proof.
    let signed_in = sign_in(&world, ADA, PASSWORD, &device).await;
    assert!(super::trusted_devices::device_of(&signed_in).is_none());
    let ada = world.with_session(&ada, signed_in.text("token")).await;
    let _ = world.passkey_options(&ada).await.expect(200);
    // A second removal changes nothing.
    let again = world.remove_factors(&operator(), &ada.user_id).await;
    let _ = again.expect(200);
    assert_eq!(world.mails().await.len(), mails + 1);
    let kept = world
        .send_with_bearer(&ada.token, "GET", GET_SESSION)
        .await
        .expect(200);
    assert!(kept.json.is_object());
}

#[tokio::test]
async fn removing_factors_requires_a_fresh_proof_of_the_operator() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let (ada, eve) = (world.sign_up(ADA).await, world.sign_up(EVE).await);
    let mut eve = eve.member_of(&platform, core_domain::kernel::Role::OWNER);
    if let Caller::User {
        membership: Some(membership),
        ..
    } = &mut eve
    {
        membership.is_operator = true;
    }
    world.tick(600);
    assert_step_up_required(
        world.remove_factors(&eve, &ada.user_id).await,
        json!(["password"]),
    );
}

#[tokio::test]
async fn enrolling_a_factor_requires_a_confirmed_address() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let password = json!({ "password": PASSWORD });
    let refused = world.call_two_factor(&ada, "enable", password).await;
    refused.expect_error(403, "EMAIL_NOT_VERIFIED");
    let refused = world.passkey_options(&ada).await;
    refused.expect_error(403, "EMAIL_NOT_VERIFIED");
    // An enrolment that began earlier cannot be completed either.
    let authenticator = world.set_up_second_factor(&ada).await;
    let begun = world.begin_passkey(&ada).await;
    world.set_confirmed(&ada, false).await;
    let made = world.authenticator(1).create(&begun.options);
    let refused = world.finish_passkey(&ada, &begun.cookie, &made).await;
    refused.expect_error(403, "EMAIL_NOT_VERIFIED");
    let code = json!({ "code": authenticator.code(&world) });
    let refused = world
        .call_two_factor(&ada, "verify-totp", code.clone())
        .await;
    refused.expect_error(403, "EMAIL_NOT_VERIFIED");
    world.set_confirmed(&ada, true).await;
    let _ = world
        .call_two_factor(&ada, "verify-totp", code)
        .await
        .expect(200);
}

#[tokio::test]
async fn a_password_reset_keeps_the_authenticator_and_the_sign_in_requires_it() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let authenticator = world.enable_second_factor(&ada).await;
    let _ = world.reset_password(ADA, NEW_PASSWORD).await.expect(200);
    let body = json!({ "email": ADA, "password": NEW_PASSWORD });
    let asked = world.post(SIGN_IN, body).await.expect(200);
    let cookie = pending_sign_in_cookie(&asked);
    let code = authenticator.code(&world);
    let done = world.complete_sign_in(&cookie, "verify-totp", &code).await;
    let _ = done.expect(200);
}
