//! Security notices: mails to the owner of an account about changes to it.

use serde_json::{Value, json};

use super::{ADA, NEW_PASSWORD, WRONG_PASSWORD};
use crate::world::{PASSWORD, Person, World};

/// Returns the subjects and texts of the mails since the last call. Advances the clock by a second.
async fn take_new_mails(world: &World, mails_read: &mut usize) -> Vec<(String, String)> {
    let mails = world.mails().await;
    let new = mails[*mails_read..].iter().map(|mail| {
        assert_eq!(mail.to.as_str(), ADA);
        assert!(mail.text.contains("\nhttp://iam.test/account/security\n"));
        assert!(
            mail.html
                .contains("href=\"http://iam.test/account/security\"")
        );
        for secret in [PASSWORD, NEW_PASSWORD, "token="] {
            assert!(!mail.text.contains(secret) && !mail.html.contains(secret));
        }
        (mail.subject.clone(), mail.text.clone())
    });
    let new = new.collect();
    *mails_read = mails.len();
    world.tick(1);
    new
}

async fn subjects(world: &World, mails_read: &mut usize) -> Vec<String> {
    take_new_mails(world, mails_read)
        .await
        .into_iter()
        .map(|(subject, _)| subject)
        .collect()
}

async fn post_as(world: &World, person: &Person, path: &str, body: Value) {
    let path = format!("/api/auth/{path}");
    let done = world.iam.post(&person.caller(), &path, body).await;
    let _ = done.expect(200);
}

#[tokio::test]
async fn password_changes_and_resets_send_a_notice() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let mut mails_read = 0;
    let wrong = json!({ "currentPassword": WRONG_PASSWORD, "newPassword": NEW_PASSWORD });
    let path = "/api/auth/change-password";
    let refused = world.iam.post(&ada.caller(), path, wrong).await;
    refused.expect_error(400, "INVALID_PASSWORD");
    assert!(subjects(&world, &mut mails_read).await.is_empty());
    let change = json!({ "currentPassword": PASSWORD, "newPassword": NEW_PASSWORD });
    post_as(&world, &ada, "change-password", change).await;
    let [(subject, text)] = &take_new_mails(&world, &mut mails_read).await[..] else {
        panic!("expected one mail");
    };
    assert_eq!(subject, "Your password was changed");
    assert!(text.contains("Your other sessions have ended."));
    let ask = json!({ "email": ADA });
    let _ = world
        .post("/api/auth/request-password-reset", ask)
        .await
        .expect(200);
    let token = world.mailed_token(ADA).await;
    mails_read += 1;
    world.tick(1);
    let body = json!({ "token": token, "newPassword": PASSWORD });
    let _ = world
        .post("/api/auth/reset-password", body.clone())
        .await
        .expect(200);
    assert_eq!(
        subjects(&world, &mut mails_read).await,
        ["Your password was changed"]
    );
    let again = world.post("/api/auth/reset-password", body).await;
    again.expect_error(400, "INVALID_TOKEN");
    assert!(subjects(&world, &mut mails_read).await.is_empty());
}

#[tokio::test]
async fn confirming_an_address_sends_one_notice() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let send = json!({ "email": ADA });
    post_as(&world, &ada, "send-verification-email", send).await;
    let path = format!(
        "/api/auth/verify-email?token={}",
        world.mailed_token(ADA).await
    );
    let mut mails_read = 1;
    world.tick(1);
    let _ = world.iam.get(&ada.caller(), &path).await.expect(200);
    assert_eq!(
        subjects(&world, &mut mails_read).await,
        ["Your e-mail address is confirmed"]
    );
    let again = world.iam.get(&ada.caller(), &path).await;
    again.expect_error(401, "INVALID_TOKEN");
    assert!(subjects(&world, &mut mails_read).await.is_empty());
}

#[tokio::test]
async fn second_factor_changes_and_used_recovery_codes_send_a_notice() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let authenticator = world.enable_second_factor(&ada).await;
    let mut mails_read = 0;
    assert_eq!(
        subjects(&world, &mut mails_read).await,
        ["A second factor was enabled"]
    );
    for (used, left) in [
        (0, "9 are left."),
        (8, "One is left"),
        (9, "It was the last one"),
    ] {
        // The codes in between are used within the session.
        let before = if used == 8 { 1..8 } else { 0..0 };
        for code in &authenticator.recovery_codes[before.clone()] {
            post_as(
                &world,
                &ada,
                "two-factor/verify-backup-code",
                json!({ "code": code }),
            )
            .await;
            world.tick(1);
        }
        mails_read += before.len();
        let cookie = world.begin_sign_in(ADA).await;
        let code = &authenticator.recovery_codes[used];
        let done = world
            .complete_sign_in(&cookie, "verify-backup-code", code)
            .await;
        let _ = done.expect(200);
        let [(subject, text)] = &take_new_mails(&world, &mut mails_read).await[..] else {
            panic!("expected one mail");
        };
        assert_eq!(subject, "A recovery code was used");
        assert!(text.contains(left) && !text.contains(code), "{text}");
    }
    post_as(
        &world,
        &ada,
        "two-factor/disable",
        json!({ "password": PASSWORD }),
    )
    .await;
    assert_eq!(
        subjects(&world, &mut mails_read).await,
        ["Your second factor was disabled"]
    );
}

#[tokio::test]
async fn removing_an_unconfirmed_second_factor_sends_no_notice() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    world.set_up_second_factor(&ada).await;
    let password = json!({ "password": PASSWORD });
    post_as(&world, &ada, "two-factor/disable", password).await;
    assert_eq!(world.audit("two_factor.disabled").await.len(), 1);
    assert!(world.mails().await.is_empty());
}

#[tokio::test]
async fn added_passkeys_send_a_notice_and_refused_ones_do_not() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let mut mails_read = 0;
    let begun = world.begin_passkey(&ada).await;
    let refused = world.finish_passkey(&ada, &begun.cookie, &json!({})).await;
    refused.expect_error(400, "FAILED_TO_VERIFY_REGISTRATION");
    assert!(subjects(&world, &mut mails_read).await.is_empty());
    let _ = world.create_passkey(&ada, 1).await;
    assert_eq!(
        subjects(&world, &mut mails_read).await,
        ["A passkey was added"]
    );
}

#[tokio::test]
async fn shown_secrets_renewed_codes_and_removed_passkeys_send_a_notice() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let password = json!({ "password": PASSWORD });
    world.set_up_second_factor(&ada).await;
    let mut mails_read = 0;
    for call in ["get-totp-uri", "generate-backup-codes"] {
        // This factor is not confirmed yet.
        post_as(
            &world,
            &ada,
            &format!("two-factor/{call}"),
            password.clone(),
        )
        .await;
    }
    assert!(subjects(&world, &mut mails_read).await.is_empty());
    let _ = world.enable_second_factor(&ada).await;
    let _ = world.create_passkey(&ada, 1).await;
    mails_read = 2;
    world.tick(1);
    let passkey = json!({ "id": world.passkeys_of(&ada).await[0]["id"] });
    for (path, body, subject) in [
        (
            "two-factor/get-totp-uri",
            &password,
            "Your authenticator's secret was shown",
        ),
        (
            "two-factor/generate-backup-codes",
            &password,
            "Your recovery codes were renewed",
        ),
        ("passkey/delete-passkey", &passkey, "A passkey was removed"),
    ] {
        post_as(&world, &ada, path, body.clone()).await;
        assert_eq!(subjects(&world, &mut mails_read).await, [subject]);
    }
}
