//! A mailed link confirms an address only together with a session or the password of the account. The link alone is not
//! enough, because a stranger may have created the account.

use core_http::iam::IamOptions;
use serde_json::{Value, json};

use super::pages::{ACCEPT_HTML, OWN_ORIGIN, location, text};
use super::{ADA, EVE, GET_SESSION, NEW_PASSWORD, WRONG_PASSWORD, cookies};
use crate::world::{Answer, ORIGIN, PASSWORD, Person, World};

const VERIFY: &str = "/api/auth/verify-email";
const TAKE_OVER: &str = "/verify-email/take-over";
const DELETE: &str = "/verify-email/delete";

impl World {
    /// Requests a confirmation link and returns its token. Advances the clock by a second.
    async fn confirmation(&self, email: &str) -> String {
        let path = "/api/auth/send-verification-email";
        let _ = self.post(path, json!({ "email": email })).await.expect(200);
        self.tick(1);
        self.mailed_token(email).await
    }

    async fn follow_confirmation_link(
        &self,
        token: &str,
        rest: &str,
        person: Option<&Person>,
    ) -> Answer {
        let path = format!("{VERIFY}?token={token}{rest}");
        let cookie = person.map(|person| ("cookie", person.cookie.as_str()));
        self.send_unidentified("GET", &path, cookie.as_slice(), Value::Null)
            .await
    }

    async fn confirm_with(&self, body: Value, person: Option<&Person>) -> Answer {
        let bearer = person.map(|person| format!("Bearer {}", person.token));
        let bearer = bearer
            .as_ref()
            .map(|value| ("authorization", value.as_str()));
        self.send_unidentified("POST", VERIFY, bearer.as_slice(), body)
            .await
    }

    async fn is_confirmed(&self, person: &Person) -> bool {
        let path = "/api/auth/profile";
        let profile = self.iam.get(&person.caller(), path).await.expect(200);
        profile.json["emailVerified"] == true
    }
}

#[tokio::test]
async fn a_link_alone_confirms_nothing_and_stays_valid() {
    let world = World::new();
    let (mallory, eve) = (world.sign_up(ADA).await, world.sign_up(EVE).await);
    let token = &world.confirmation(ADA).await;
    for stranger in [None, Some(&eve)] {
        let refused = world.follow_confirmation_link(token, "", stranger).await;
        refused.expect_error(401, "UNAUTHORIZED");
        let refused = world
            .confirm_with(json!({ "token": token }), stranger)
            .await;
        refused.expect_error(401, "UNAUTHORIZED");
        let page = world
            .follow_confirmation_link(token, "&callbackURL=%2Fdone", stranger)
            .await;
        let page = page.expect(302);
        let expected = format!("{ORIGIN}/verify-email?token={token}&callbackURL=%2Fdone");
        assert_eq!(page.header("location"), expected);
        let page = world
            .page(expected.strip_prefix(ORIGIN).unwrap(), &[])
            .await;
        assert!(text(&page, 200).contains("name=\"password\""));
    }
    assert!(!world.is_confirmed(&mallory).await);
    assert!(world.audit("user.email_verified").await.is_empty());
    let confirmed = world.confirm_with(json!({ "token": token }), Some(&mallory));
    let confirmed = confirmed.await.expect(200);
    assert_eq!(confirmed.json, json!({ "status": true, "user": null }));
    assert!(world.is_confirmed(&mallory).await);
    let used = world
        .confirm_with(json!({ "token": token }), Some(&mallory))
        .await;
    used.expect_error(401, "INVALID_TOKEN");
}

#[tokio::test]
async fn an_api_key_does_not_confirm_the_address() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let made = world.set_up_organization(&ada, "engines").await.expect(201);
    let body = json!({ "organizationId": made.text("orgId") });
    let key = world.create_api_key(&ada.caller(), body).await.expect(200);
    let body = json!({ "token": world.confirmation(ADA).await });
    let headers = [("x-api-key", key.text("key"))];
    let refused = world
        .send_unidentified("POST", VERIFY, &headers, body)
        .await;
    refused.expect_error(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn the_password_confirms_the_address_and_signs_in_if_the_option_is_set() {
    for auto_sign_in_after_verification in [false, true] {
        let world = World::new().with_iam(IamOptions {
            auto_sign_in_after_verification,
            ..IamOptions::default()
        });
        let ada = world.sign_up(ADA).await;
        let body = json!({ "token": world.confirmation(ADA).await, "password": PASSWORD });
        let confirmed = world.confirm_with(body.clone(), None).await.expect(200);
        assert_eq!(
            !cookies(&confirmed).is_empty(),
            auto_sign_in_after_verification
        );
        assert!(world.is_confirmed(&ada).await);
        let used = world.confirm_with(body, None).await;
        used.expect_error(401, "INVALID_TOKEN");
    }
}

#[tokio::test]
async fn a_wrong_password_with_a_link_counts_as_a_failed_sign_in() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let token = &world.confirmation(ADA).await;
    let wrong = json!({ "token": token, "password": WRONG_PASSWORD });
    for _ in 0..5 {
        let refused = world.confirm_with(wrong.clone(), None).await;
        refused.expect_error(401, "INVALID_EMAIL_OR_PASSWORD");
    }
    assert_eq!(world.audit("user.sign_in_failed").await.len(), 5);
    let right = json!({ "token": token, "password": PASSWORD });
    let waits = world.confirm_with(right.clone(), None).await;
    waits.expect_error(429, "RATE_LIMITED");
    let waits = world.sign_in(ADA, PASSWORD).await;
    waits.expect_error(429, "RATE_LIMITED");
    world.tick(1);
    let _ = world.confirm_with(right, None).await.expect(200);
    assert!(world.is_confirmed(&ada).await);
}

#[tokio::test]
async fn the_confirmation_page_accepts_a_session_or_the_password_and_redirects() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let path = format!(
        "/verify-email?token={}&callbackURL=%2Fdone",
        world.confirmation(ADA).await
    );
    let own = text(&world.page_of(&ada, &path).await, 200);
    assert!(own.contains("Is <strong>ada@example.org</strong> your address?"));
    assert!(!own.contains("name=\"password\""));
    for method in ["GET", "HEAD"] {
        let looked = world
            .send_unidentified(method, &path, &[ACCEPT_HTML], Value::Null)
            .await;
        assert_eq!(looked.status, 200);
    }
    let page = text(&world.page(&path, &[]).await, 200);
    assert!(page.contains("Enter the password of your account"));
    assert!(page.contains("This account is not mine"));
    let token = world.mailed_token(ADA).await;
    let link = [("token", token.as_str()), ("callbackURL", "/done")];
    let wrong = [&link[..], &[("password", WRONG_PASSWORD)]].concat();
    let refused = world.form("/verify-email", &wrong, &[OWN_ORIGIN]).await;
    assert!(text(&refused, 401).contains("The password is wrong."));
    let without = world.form("/verify-email", &link, &[OWN_ORIGIN]).await;
    assert!(text(&without, 200).contains("Enter the password of your account"));
    assert!(!world.is_confirmed(&ada).await);
    let confirmed = world.form_of(&ada, "/verify-email", &link).await;
    assert_eq!(location(&confirmed), "http://iam.test/done");
    assert!(world.is_confirmed(&ada).await);
    let used = world.page(&path, &[]).await;
    assert_eq!(location(&used), "http://iam.test/done?error=INVALID_TOKEN");
}

#[tokio::test]
async fn the_owner_of_an_address_takes_over_an_account_with_a_new_password() {
    let world = World::new();
    let mallory = world.sign_up(ADA).await;
    let device = world.approve_device(&mallory).await;
    let token = world.confirmation(ADA).await;
    let set = async |password| {
        let fields = [("token", token.as_str()), ("newPassword", password)];
        world.form(TAKE_OVER, &fields, &[OWN_ORIGIN]).await
    };
    let short = text(&set("short").await, 400);
    assert!(short.contains("newPassword-error") && !short.contains("password-error\""));
    assert_eq!(
        location(&set(NEW_PASSWORD).await),
        "/sign-in?notice=password-changed"
    );
    let ended = world
        .send_with_bearer(&mallory.token, "GET", GET_SESSION)
        .await;
    assert_eq!(ended.expect(200).json, Value::Null);
    world.poll(&device).await.expect_error(400, "access_denied");
    let old = world.sign_in(ADA, PASSWORD).await;
    old.expect_error(401, "INVALID_EMAIL_OR_PASSWORD");
    let ada = world.sign_in(ADA, NEW_PASSWORD).await.expect(200);
    assert_eq!(ada.json["user"]["id"], mallory.user_id.as_str());
    assert_eq!(ada.json["user"]["emailVerified"], true);
    let again = set(PASSWORD).await;
    assert_eq!(location(&again), "http://iam.test/?error=INVALID_TOKEN");
}

#[tokio::test]
async fn the_owner_of_an_address_deletes_an_account_and_all_its_access() {
    let world = World::new();
    let mallory = world.sign_up(ADA).await;
    let device = world.approve_device(&mallory).await;
    let token = world.confirmation(ADA).await;
    let delete = async |sure| {
        let fields = [("token", token.as_str()), ("sure", sure)];
        world.form(DELETE, &fields, &[OWN_ORIGIN]).await
    };
    let unsure = text(&delete("false").await, 200);
    assert!(unsure.contains("Delete the account permanently"));
    let page = location(&delete("true").await).to_owned();
    assert!(text(&world.page(&page, &[]).await, 200).contains("The account was deleted."));
    let ended = world
        .send_with_bearer(&mallory.token, "GET", GET_SESSION)
        .await;
    assert_eq!(ended.expect(200).json, Value::Null);
    world.poll(&device).await.expect_error(400, "access_denied");
    let old = world.sign_in(ADA, PASSWORD).await;
    old.expect_error(401, "INVALID_EMAIL_OR_PASSWORD");
    assert_eq!(
        world.audit("user.deleted").await[0].entity_id,
        mallory.user_id
    );
    let ada = world.sign_up(ADA).await;
    assert_ne!(ada.user_id, mallory.user_id);
}

#[tokio::test]
async fn a_link_cannot_delete_a_member_of_an_organization() {
    let world = World::new();
    let mallory = world.sign_up(ADA).await;
    world.create_organization(&mallory, "engines").await;
    let token = world.confirmation(ADA).await;
    let path = format!("/verify-email?token={token}");
    let page = text(&world.page(&path, &[]).await, 200);
    assert!(page.contains("cannot be deleted here") && !page.contains(DELETE));
    let fields = [("token", token.as_str()), ("sure", "true")];
    let refused = world.form(DELETE, &fields, &[OWN_ORIGIN]).await;
    assert!(text(&refused, 409).contains("Take it over instead."));
    let kept = world
        .send_with_bearer(&mallory.token, "GET", GET_SESSION)
        .await;
    assert!(kept.expect(200).json.is_object());
}

#[tokio::test]
async fn older_links_neither_take_over_nor_delete_a_confirmed_account() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let older = world.confirmation(ADA).await;
    world.confirm(&ada).await;
    let authenticator = world.enable_second_factor(&ada).await;
    let over = "http://iam.test/?error=INVALID_TOKEN";
    let token = ("token", older.as_str());
    for (path, field) in [
        (TAKE_OVER, ("newPassword", NEW_PASSWORD)),
        (DELETE, ("sure", "true")),
    ] {
        let refused = world.form(path, &[token, field], &[OWN_ORIGIN]).await;
        assert_eq!(location(&refused), over, "{path}");
    }
    let cookie = world.begin_sign_in(ADA).await;
    let code = authenticator.code(&world);
    let done = world.complete_sign_in(&cookie, "verify-totp", &code).await;
    let _ = done.expect(200);
    // The page reveals nothing about an account that is confirmed already.
    let page = world
        .page(&format!("/verify-email?token={older}"), &[])
        .await;
    assert_eq!(location(&page), "http://iam.test/");
}

#[tokio::test]
async fn untrusted_callback_urls_are_refused() {
    let world = World::new();
    world.sign_up(ADA).await;
    let token = world.confirmation(ADA).await;
    let foreign = format!("/verify-email?token={token}&callbackURL=https%3A%2F%2Fevil.net");
    assert_eq!(world.page(&foreign, &[]).await.status, 403);
    let fields = [
        ("token", token.as_str()),
        ("callbackURL", "https://evil.net"),
        ("password", PASSWORD),
        ("newPassword", NEW_PASSWORD),
        ("sure", "true"),
    ];
    for path in ["/verify-email", TAKE_OVER, DELETE] {
        assert_eq!(
            world.form(path, &fields, &[OWN_ORIGIN]).await.status,
            403,
            "{path}"
        );
    }
}
