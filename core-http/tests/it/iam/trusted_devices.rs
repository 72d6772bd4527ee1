//! Devices on which the password signs in without the second factor.

use core_domain::iam::MAX_TRUSTED_DEVICES;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{ADA, DAY, EVE, NEW_PASSWORD, SIGN_IN, cookies};
use crate::world::{Answer, Authenticator, ORIGIN, PASSWORD, Person, World, on_every_store};

const NAME: &str = "better-auth.trust_device=";

/// Returns the trust cookie that an answer sets, if any.
pub(super) fn device_of(answer: &Answer) -> Option<String> {
    let set = cookies(answer).into_iter().find(|c| c.starts_with(NAME))?;
    let (pair, attributes) = set.split_once("; ").unwrap();
    assert_eq!(
        attributes,
        "Max-Age=2592000; Path=/; HttpOnly; SameSite=Lax"
    );
    Some(pair.to_owned())
}

/// Signs in with a password on the device with this trust cookie. Advances the clock by a second.
pub(super) async fn sign_in(world: &World, email: &str, password: &str, device: &str) -> Answer {
    let headers = [("cookie", device), ("origin", ORIGIN)];
    let body = json!({ "email": email, "password": password });
    world.tick(1);
    world
        .send_unidentified("POST", SIGN_IN, &headers, body)
        .await
        .expect(200)
}

/// Signs in with the second factor and trusts the device. Returns its cookie. Advances the clock by a minute.
pub(super) async fn trust_device(
    world: &World,
    email: &str,
    authenticator: &Authenticator,
) -> String {
    world.tick(30);
    let cookie = world.begin_sign_in(email).await;
    let headers = [("cookie", cookie.as_str()), ("origin", ORIGIN)];
    let body = json!({ "code": authenticator.code(world), "trustDevice": true });
    let path = "/api/auth/two-factor/verify-totp";
    let done = world
        .send_unidentified("POST", path, &headers, body)
        .await
        .expect(200);
    world.tick(30);
    device_of(&done).unwrap()
}

/// Returns whether a sign-in requires the second factor. Asserts that only a complete sign-in sets a trust cookie.
pub(super) fn requires_second_factor(answer: &Answer) -> bool {
    assert_eq!(
        device_of(answer).is_some(),
        answer.json["token"].is_string()
    );
    answer.json == json!({ "twoFactorRedirect": true })
}

/// Creates Ada with a confirmed address, an authenticator and the cookie of a trusted device.
pub(super) async fn ada_with_device(world: &World) -> (Person, Authenticator, String) {
    let ada = world.sign_up(ADA).await;
    world.confirm(&ada).await;
    let authenticator = world.enable_second_factor(&ada).await;
    let device = trust_device(world, ADA, &authenticator).await;
    (ada, authenticator, device)
}

async fn device_trust_is_optional_and_lasts_thirty_days_after_the_last_sign_in(world: World) {
    let (ada, authenticator, mut device) = ada_with_device(&world).await;
    let told = world.audit("two_factor.device_trusted").await;
    assert_eq!((told.len(), &told[0].actor_id), (1, &ada.user_id));
    for pause in [0, 29 * DAY, 29 * DAY] {
        world.tick(pause);
        let signed_in = sign_in(&world, ADA, PASSWORD, &device).await;
        assert!(!requires_second_factor(&signed_in));
        let next = device_of(&signed_in).unwrap();
        assert!(
            requires_second_factor(&sign_in(&world, ADA, PASSWORD, &device).await),
            "a trust token works once"
        );
        device = next;
    }
    let entries = world.audit("user.signed_in").await;
    let details = entries[0].after.as_ref().unwrap().as_str();
    assert!(details.contains(r#""trustedDevice":true"#), "{details}");
    world.tick(30 * DAY);
    assert!(requires_second_factor(
        &sign_in(&world, ADA, PASSWORD, &device).await
    ));
    // Without `trustDevice` the sign-in sets no trust cookie.
    let cookie = world.begin_sign_in(ADA).await;
    let code = authenticator.code(&world);
    let done = world
        .complete_sign_in(&cookie, "verify-totp", &code)
        .await
        .expect(200);
    assert_eq!(device_of(&done), None);
}

async fn one_trust_token_skips_the_second_factor_in_one_of_two_concurrent_sign_ins(world: World) {
    let (_, _, device) = ada_with_device(&world).await;
    let rivals = (0..2).map(|_| sign_in(&world, ADA, PASSWORD, &device));
    let answers = join_all(rivals).await;
    let (asked, signed_in): (Vec<_>, Vec<_>) =
        answers.iter().partition(|one| requires_second_factor(one));
    assert_eq!((asked.len(), signed_in.len()), (1, 1));
    let next = device_of(signed_in[0]).unwrap();
    assert!(!requires_second_factor(
        &sign_in(&world, ADA, PASSWORD, &next).await
    ));
}

async fn the_twenty_first_trusted_device_replaces_the_oldest(world: World) {
    let eve = world.sign_up(EVE).await;
    let of_eve = world.enable_second_factor(&eve).await;
    let of_eve = trust_device(&world, EVE, &of_eve).await;
    let (_, authenticator, first) = ada_with_device(&world).await;
    let mut devices = vec![first];
    for _ in 1..MAX_TRUSTED_DEVICES {
        devices.push(trust_device(&world, ADA, &authenticator).await);
    }
    assert_eq!(devices.len(), 20);
    // A sign-in does not make a device newer, so the first stays the oldest.
    let first = sign_in(&world, ADA, PASSWORD, &devices[0]).await;
    devices[0] = device_of(&first).unwrap();
    devices.push(trust_device(&world, ADA, &authenticator).await);
    for (at, device) in devices.iter().enumerate() {
        let signed_in = sign_in(&world, ADA, PASSWORD, device).await;
        assert_eq!(requires_second_factor(&signed_in), at == 0, "{at}");
    }
    assert!(!requires_second_factor(
        &sign_in(&world, EVE, PASSWORD, &of_eve).await
    ));
}

on_every_store! {
    device_trust_is_optional_and_lasts_thirty_days_after_the_last_sign_in,
    one_trust_token_skips_the_second_factor_in_one_of_two_concurrent_sign_ins,
    the_twenty_first_trusted_device_replaces_the_oldest,
}

#[tokio::test]
async fn expired_devices_are_replaced_before_trusted_ones() {
    let world = World::new();
    let (_, authenticator, first) = ada_with_device(&world).await;
    for _ in 1..MAX_TRUSTED_DEVICES {
        trust_device(&world, ADA, &authenticator).await;
    }
    world.tick(29 * DAY);
    let renewed = sign_in(&world, ADA, PASSWORD, &first).await;
    let renewed = device_of(&renewed).unwrap();
    world.tick(2 * DAY);
    trust_device(&world, ADA, &authenticator).await;
    let signed_in = sign_in(&world, ADA, PASSWORD, &renewed).await;
    assert!(!requires_second_factor(&signed_in));
}

#[tokio::test]
async fn device_trust_requires_its_own_user_and_a_valid_signature() {
    let world = World::new();
    let (_, _, device) = ada_with_device(&world).await;
    let eve = world.sign_up(EVE).await;
    let other = world.enable_second_factor(&eve).await;
    assert!(requires_second_factor(
        &sign_in(&world, EVE, PASSWORD, &device).await
    ));
    let (_, value) = device.split_once('=').unwrap();
    let (token, _) = value.split_once('.').unwrap();
    for forged in [token, "", "a.b"] {
        let forged = format!("{NAME}{forged}");
        assert!(requires_second_factor(
            &sign_in(&world, ADA, PASSWORD, &forged).await
        ));
    }
    let of_eve = trust_device(&world, EVE, &other).await;
    assert!(requires_second_factor(
        &sign_in(&world, ADA, PASSWORD, &of_eve).await
    ));
    assert!(!requires_second_factor(
        &sign_in(&world, ADA, PASSWORD, &device).await
    ));
}

#[tokio::test]
async fn sign_in_links_require_the_second_factor_even_on_trusted_devices() {
    let world = World::new();
    let (_, _, device) = ada_with_device(&world).await;
    let [token, ..] = world.link_tokens(ADA).await;
    let path = format!("/api/auth/magic-link/verify?token={token}");
    let headers = [("cookie", device.as_str())];
    let asked = world
        .send_unidentified("GET", &path, &headers, Value::Null)
        .await;
    assert!(requires_second_factor(&asked.expect(200)));
}

#[tokio::test]
async fn a_new_password_a_sign_out_everywhere_and_a_new_factor_end_device_trust() {
    for (path, body, password) in [
        (
            "change-password",
            json!({ "currentPassword": PASSWORD, "newPassword": NEW_PASSWORD }),
            NEW_PASSWORD,
        ),
        ("revoke-sessions", json!({}), PASSWORD),
        (
            "two-factor/disable",
            json!({ "password": PASSWORD }),
            PASSWORD,
        ),
    ] {
        let world = World::new();
        let (ada, _, device) = ada_with_device(&world).await;
        let called = format!("/api/auth/{path}");
        let _ = world
            .iam
            .post(&ada.caller(), &called, body)
            .await
            .expect(200);
        if path == "two-factor/disable" {
            world.enable_second_factor(&ada).await;
        }
        let signed_in = sign_in(&world, ADA, password, &device).await;
        assert!(requires_second_factor(&signed_in), "{path}");
    }
}

#[tokio::test]
async fn a_password_reset_ends_device_trust() {
    let world = World::new();
    let (_, _, device) = ada_with_device(&world).await;
    let _ = world.reset_password(ADA, NEW_PASSWORD).await.expect(200);
    assert!(requires_second_factor(
        &sign_in(&world, ADA, NEW_PASSWORD, &device).await
    ));
}

#[tokio::test]
async fn a_sign_in_on_a_trusted_device_is_not_a_fresh_proof() {
    let world = World::new();
    let (ada, authenticator, device) = ada_with_device(&world).await;
    // An API key needs an organization.
    world.create_organization(&ada, "acme").await;
    let signed_in = sign_in(&world, ADA, PASSWORD, &device).await;
    let bearer = format!("Bearer {}", signed_in.text("token"));
    let headers = [("authorization", bearer.as_str())];
    let key = json!({ "name": "ci" });
    let path = "/api/auth/api-key/create";
    let refused = world
        .send_unidentified("POST", path, &headers, key.clone())
        .await;
    refused.expect_error(403, "STEP_UP_REQUIRED");
    let password = json!({ "password": PASSWORD });
    let own = "/api/auth/verify-password";
    let _ = world
        .send_unidentified("POST", own, &headers, password)
        .await
        .expect(200);
    let refused = world
        .send_unidentified("POST", path, &headers, key.clone())
        .await;
    refused.expect_error(403, "STEP_UP_REQUIRED");
    world.tick(30);
    let code = json!({ "code": authenticator.code(&world) });
    let shown = "/api/auth/two-factor/verify-totp";
    let shown = world
        .send_unidentified("POST", shown, &headers, code)
        .await
        .expect(200);
    assert_eq!(shown.json["user"]["id"], ada.user_id.as_str());
    // The proof is accepted. The request fails because the organization has no platform.
    let proved = world.send_unidentified("POST", path, &headers, key).await;
    proved.expect_error(409, "CONFLICT");
}
