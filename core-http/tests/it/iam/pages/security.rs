//! The security page, which lists everything with access to an account and revokes it.

use serde_json::json;

use super::super::trusted_devices::{device_of, requires_second_factor, sign_in};
use super::{ADA, EVE, OWN_ORIGIN, PASSWORD, Person, World, location, text};
use crate::iam::{GET_SESSION, ORG_SETUP};
use crate::world::{Answer, Authenticator, ORIGIN};

const PAGE: &str = "/account/security";
const ENDED: &str = "/account/security?notice=ended";

/// Everything with access to Ada's account.
struct AccountAccess {
    ada: Person,
    authenticator: Authenticator,
    /// The session token of another browser.
    other: String,
    /// The device code of a device that she has approved.
    device_code: String,
    /// The cookie of a device that she trusts.
    trusted: String,
    key: String,
}

impl World {
    /// Signs in with the second factor from a browser, which is trusted afterwards.
    async fn trust(&self, authenticator: &Authenticator) -> Answer {
        self.tick(30);
        let cookie = self.begin_sign_in(ADA).await;
        let headers = [
            ("cookie", cookie.as_str()),
            ("origin", ORIGIN),
            ("user-agent", "Mozilla/5.0 (X11; Linux) Firefox/140.0"),
        ];
        let body = json!({ "code": authenticator.code(self), "trustDevice": true });
        let path = "/api/auth/two-factor/verify-totp";
        self.send_unidentified("POST", path, &headers, body)
            .await
            .expect(200)
    }

    /// Creates Ada's account with one of each kind of access.
    async fn create_account_access(&self) -> AccountAccess {
        let ada = self.sign_up(ADA).await;
        let headers = [("cookie", ada.cookie.as_str()), ("origin", ORIGIN)];
        let body = json!({ "name": "Engines", "slug": "engines" });
        let made = self
            .send_unidentified("POST", ORG_SETUP, &headers, body)
            .await
            .expect(201);
        let body = json!({ "organizationId": made.text("orgId"), "name": "Nightly" });
        let key = self.create_api_key(&ada.caller(), body).await.expect(200);
        let authenticator = self.enable_second_factor(&ada).await;
        let trusting = self.trust(&authenticator).await;
        let _ = self.create_passkey(&ada, 1).await;
        let device_code = self.approve_device(&ada).await;
        AccountAccess {
            other: trusting.text("token").to_owned(),
            trusted: device_of(&trusting).unwrap(),
            key: key.text("key").to_owned(),
            ada,
            authenticator,
            device_code,
        }
    }

    /// Returns the values of the checkboxes on the page.
    async fn list_checkbox_values(&self, person: &Person) -> Vec<String> {
        let page = text(&self.page_of(person, PAGE).await, 200);
        let boxes = page
            .split("name=\"item\" type=\"checkbox\" value=\"")
            .skip(1);
        let boxes = boxes.map(|rest| rest.split('"').next().unwrap().to_owned());
        boxes.collect()
    }

    async fn revoke(&self, person: &Person, fields: &[(&str, &str)]) -> String {
        location(&self.form_of(person, PAGE, fields).await).to_owned()
    }

    async fn is_signed_in(&self, token: &str) -> bool {
        let session = self
            .send_with_bearer(token, "GET", GET_SESSION)
            .await
            .expect(200);
        session.json.is_object()
    }
}

#[tokio::test]
async fn the_security_page_lists_everything_with_access() {
    let world = World::new();
    let AccountAccess { ada, .. } = world.create_account_access().await;
    let page = text(&world.page_of(&ada, PAGE).await, 200);
    for words in [
        "This session",
        "Firefox on Linux",
        "from 192.0.2.7",
        "last used about",
        "core-cli",
        "not signed in yet",
        "Nightly",
        "Phone",
        "Codes of your authenticator",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let trusted = page.split("id=\"trusted\"").nth(1).unwrap();
    let trusted = trusted.split("</section>").next().unwrap();
    assert!(trusted.contains("Firefox on Linux") && trusted.contains("from 192.0.2.7"));
    let kinds = world.list_checkbox_values(&ada).await.into_iter();
    let kinds: Vec<_> = kinds
        .map(|item| item.split(':').next().unwrap().to_owned())
        .collect();
    // The current session has no checkbox.
    let expected = [
        "session",
        "approved",
        "trusted",
        "key",
        "passkey",
        "authenticator",
    ];
    assert_eq!(kinds, expected);
    let eve = world.sign_up(EVE).await;
    assert!(world.list_checkbox_values(&eve).await.is_empty());
}

#[tokio::test]
async fn only_ticked_items_are_revoked() {
    let world = World::new();
    let owned = world.create_account_access().await;
    let ada = &owned.ada;
    let boxes = world.list_checkbox_values(ada).await;
    // The sign-in on the trusted device replaces its token.
    let signed_in = sign_in(&world, ADA, PASSWORD, &owned.trusted).await;
    let device = device_of(&signed_in).unwrap();
    for (ticked, verdict) in [("trusted", "VALID"), ("key", "REVOKED")] {
        let item = boxes.iter().find(|item| item.starts_with(ticked)).unwrap();
        assert_eq!(world.revoke(ada, &[("item", item)]).await, ENDED);
        assert_eq!(world.key_verdict(&owned.key).await, verdict);
        assert!(world.is_signed_in(&owned.other).await);
        assert!(requires_second_factor(
            &sign_in(&world, ADA, PASSWORD, &device).await
        ));
    }
    assert_eq!(world.audit("two_factor.device_distrusted").await.len(), 1);
    let others = boxes
        .iter()
        .filter(|item| !item.starts_with("authenticator"));
    let others: Vec<_> = others.map(|item| ("item", item.as_str())).collect();
    // Some of them have ended already.
    assert_eq!(world.revoke(ada, &others).await, ENDED);
    assert!(!world.is_signed_in(&owned.other).await);
    let device = world.poll(&owned.device_code).await;
    device.expect_error(400, "access_denied");
    assert!(world.passkeys_of(ada).await.is_empty());
    assert!(world.is_signed_in(&ada.token).await);
    let cookie = world.begin_sign_in(ADA).await;
    assert!(!cookie.is_empty(), "the authenticator is still required");
    assert_eq!(
        world.revoke(ada, &[("item", "authenticator:")]).await,
        ENDED
    );
    let signed_in = world.sign_in(ADA, PASSWORD).await.expect(200);
    assert!(signed_in.json["token"].is_string());
    let told = world.mails().await.into_iter().rev().take(2);
    let mut told: Vec<_> = told.map(|mail| mail.subject).collect();
    told.sort_unstable();
    let expected = ["A passkey was removed", "Your second factor was disabled"];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn revoking_everything_keeps_the_current_session_and_the_authenticator() {
    let world = World::new();
    let owned = world.create_account_access().await;
    let ada = &owned.ada;
    assert_eq!(world.revoke(ada, &[("everything", "true")]).await, ENDED);
    assert!(world.is_signed_in(&ada.token).await);
    assert!(!world.is_signed_in(&owned.other).await);
    let device = world.poll(&owned.device_code).await;
    device.expect_error(400, "access_denied");
    assert_eq!(world.key_verdict(&owned.key).await, "REVOKED");
    assert!(world.passkeys_of(ada).await.is_empty());
    assert!(requires_second_factor(
        &sign_in(&world, ADA, PASSWORD, &owned.trusted).await
    ));
    assert_eq!(world.list_checkbox_values(ada).await, ["authenticator:"]);
}

#[tokio::test]
async fn revoking_requires_a_fresh_proof_by_the_second_factor() {
    let world = World::new();
    let owned = world.create_account_access().await;
    let ada = &owned.ada;
    let item = world.list_checkbox_values(ada).await.remove(0);
    world.tick(600);
    assert!(world.list_checkbox_values(ada).await.is_empty());
    let page = text(&world.page_of(ada, PAGE).await, 200);
    assert!(page.contains("Confirm that it is you"));
    let confirm = "/account/confirm?next=%2Faccount%2Fsecurity";
    for fields in [[("item", item.as_str())], [("everything", "true")]] {
        assert_eq!(world.revoke(ada, &fields).await, confirm);
    }
    let proof = [("password", PASSWORD), ("next", PAGE)];
    let shown = world.form_of(ada, "/account/confirm", &proof).await;
    assert_eq!(location(&shown), PAGE);
    assert_eq!(world.revoke(ada, &[("item", &item)]).await, confirm);
    assert!(world.is_signed_in(&owned.other).await);
    let code = owned.authenticator.code(&world);
    let proof = [("code", code.as_str()), ("next", PAGE)];
    let shown = world.form_of(ada, "/account/confirm", &proof).await;
    assert_eq!(location(&shown), PAGE);
    assert_eq!(world.revoke(ada, &[("item", &item)]).await, ENDED);
    assert!(!world.is_signed_in(&owned.other).await);
}

#[tokio::test]
async fn people_cannot_revoke_the_access_of_others() {
    let world = World::new();
    let owned = world.create_account_access().await;
    let items = world.list_checkbox_values(&owned.ada).await;
    let eve = world.sign_up(EVE).await;
    for item in &items {
        assert_eq!(world.revoke(&eve, &[("item", item)]).await, ENDED, "{item}");
    }
    assert_eq!(world.list_checkbox_values(&owned.ada).await, items);
    for item in ["session", "nothing:1", "key:", "trusted:yesterday"] {
        let refused = world.form_of(&eve, PAGE, &[("item", item)]).await;
        assert_eq!(refused.status, 400, "{item}");
    }
    let foreign = [("cookie", eve.cookie.as_str())];
    let refused = world.form(PAGE, &[("everything", "true")], &foreign).await;
    assert_eq!(refused.status, 403);
}

#[tokio::test]
async fn the_security_page_requires_a_sign_in_that_then_returns() {
    let world = World::new();
    world.sign_up(ADA).await;
    let sign_in = "/sign-in?next=%2Faccount%2Fsecurity";
    assert_eq!(location(&world.page(PAGE, &[]).await), sign_in);
    let form = world
        .form(PAGE, &[("everything", "true")], &[OWN_ORIGIN])
        .await;
    assert_eq!(location(&form), sign_in);
    let fields = [("email", ADA), ("password", PASSWORD), ("next", PAGE)];
    let signed_in = world.form("/sign-in", &fields, &[OWN_ORIGIN]).await;
    assert_eq!(location(&signed_in), PAGE);
    assert_eq!(world.audit("user.signed_in").await.len(), 1);
}
