//! A person who can read the mail of an address takes over the account that someone else may have created with it.

use serde_json::{Value, json};

use super::{ADA, GET_SESSION, NEW_PASSWORD};
use crate::world::{PASSWORD, Person, World, on_every_store};

/// The credentials of Mallory, who signed up with Ada's address. The second factor is from a time when it did not
/// require a confirmed address.
struct Access {
    session: String,
    device_code: String,
    half_signed_in: String,
    key: String,
    codes: Vec<String>,
}

async fn set_up(world: &World, mallory: &Person) -> Access {
    let made = world
        .set_up_organization(mallory, "engines")
        .await
        .expect(201);
    let body = json!({ "organizationId": made.text("orgId") });
    let key = world
        .create_api_key(&mallory.caller(), body)
        .await
        .expect(200);
    let second_factor = world.enable_second_factor(mallory).await;
    let half_signed_in = world.begin_sign_in(ADA).await;
    Access {
        session: mallory.token.clone(),
        device_code: world.approve_device(mallory).await,
        half_signed_in,
        key: key.text("key").to_owned(),
        codes: second_factor.recovery_codes,
    }
}

/// Asserts that none of the credentials gives access any more.
async fn assert_ended(world: &World, access: &Access) {
    let session = world
        .send_with_bearer(&access.session, "GET", GET_SESSION)
        .await;
    assert_eq!(session.expect(200).json, Value::Null);
    let device = world.poll(&access.device_code).await;
    device.expect_error(400, "access_denied");
    let code = &access.codes[0];
    let completed = world
        .complete_sign_in(&access.half_signed_in, "verify-backup-code", code)
        .await;
    completed.expect_error(401, "INVALID_TWO_FACTOR_COOKIE");
    assert_eq!(world.key_verdict(&access.key).await, "NOT_FOUND");
}

on_every_store! { a_sign_in_link_ends_all_access_from_before_the_confirmation }

async fn a_sign_in_link_ends_all_access_from_before_the_confirmation(world: World) {
    let mallory = world.sign_up(ADA).await;
    let access = set_up(&world, &mallory).await;
    world.set_confirmed(&mallory, false).await;
    let [magic, ..] = world.link_tokens(ADA).await;
    let ada = world.follow_magic_link(&magic).await.expect(200);
    assert_eq!(ada.json["user"]["id"], mallory.user_id.as_str());
    assert_ended(&world, &access).await;
    let refused = world.sign_in(ADA, PASSWORD).await;
    refused.expect_error(401, "INVALID_EMAIL_OR_PASSWORD");
}

on_every_store! { a_password_reset_ends_all_access_from_before_the_confirmation }

async fn a_password_reset_ends_all_access_from_before_the_confirmation(world: World) {
    let mallory = world.sign_up(ADA).await;
    let access = set_up(&world, &mallory).await;
    world.set_confirmed(&mallory, false).await;
    let _ = world.reset_password(ADA, NEW_PASSWORD).await.expect(200);
    assert_ended(&world, &access).await;
    let signed_in = world.sign_in(ADA, NEW_PASSWORD).await.expect(200);
    assert_eq!(signed_in.json["user"]["id"], mallory.user_id.as_str());
}

on_every_store! { a_sign_in_link_keeps_keys_and_factors_of_a_confirmed_account }

async fn a_sign_in_link_keeps_keys_and_factors_of_a_confirmed_account(world: World) {
    let ada = world.sign_up(ADA).await;
    world.confirm(&ada).await;
    let access = set_up(&world, &ada).await;
    let [magic, ..] = world.link_tokens(ADA).await;
    let asked = world.follow_magic_link(&magic).await.expect(200);
    assert_eq!(asked.json["twoFactorRedirect"], true);
    let session = world
        .send_with_bearer(&access.session, "GET", GET_SESSION)
        .await;
    assert_eq!(session.expect(200).json["user"]["id"], ada.user_id.as_str());
    let _ = world.poll(&access.device_code).await.expect(200);
    assert_eq!(world.key_verdict(&access.key).await, "VALID");
}
