//! Pages of mailed links: to sign in, and to set a new password.

use core_domain::kernel::Caller;
use serde_json::{Value, json};

use super::{ADA, EVE, Headers, OWN_ORIGIN, PASSWORD, World, cookies, location, text};
use crate::iam::NEW_PASSWORD;
use crate::world::{Answer, ORIGIN, pending_sign_in_cookie};

/// The target of the form on the page of a sign-in link.
const SIGN_IN: &str = "/magic-link/sign-in";

/// Returns the path and query of a link.
fn path(link: &str) -> &str {
    link.strip_prefix(ORIGIN).unwrap()
}

/// Returns the hidden fields of the form on the page of a link.
fn hidden_fields(page: &str) -> Vec<(String, String)> {
    let tags = page.split("<input type=\"hidden\" ").skip(1);
    let fields = tags.map(|tag| {
        let value = |name: &str| {
            let (_, rest) = tag.split_once(&format!("{name}=\"")).unwrap();
            rest.split('"').next().unwrap().replace("&amp;", "&")
        };
        (value("name"), value("value"))
    });
    fields.collect()
}

impl World {
    /// Opens the page of a link and presses its button.
    pub(super) async fn press(&self, link: &str, action: &str, headers: Headers<'_>) -> Answer {
        let page = text(&self.page(path(link), headers).await, 200);
        assert!(page.contains(&format!("action=\"{action}\"")), "{page}");
        let fields = hidden_fields(&page);
        let fields = fields.iter().map(|(name, value)| (&**name, &**value));
        let fields: Vec<_> = fields.collect();
        self.form(action, &fields, &[&[OWN_ORIGIN], headers].concat())
            .await
    }

    async fn magic_link(&self, body: Value) -> String {
        let sent = self.post("/api/auth/sign-in/magic-link", body.clone());
        let _ = sent.await.expect(200);
        self.tick(1);
        self.mailed_link(body["email"].as_str().unwrap()).await
    }
}

#[tokio::test]
async fn a_sign_in_link_works_once_and_the_page_reports_an_invalid_link() {
    let world = World::new();
    world.sign_up(ADA).await;
    let fields = [("email", ADA), ("next", "/device?user_code=BCDF-GHJK")];
    let sent = world.form("/magic-link", &fields, &[OWN_ORIGIN]).await;
    let said = text(&world.page(location(&sent), &[]).await, 200);
    assert!(said.contains("Look into your mail"));
    let link = world.mailed_link(ADA).await;
    let page = text(&world.page(path(&link), &[]).await, 200);
    assert!(page.contains("Sign in as <strong>ada@example.org</strong>"));
    let signed_in = world.press(&link, SIGN_IN, &[]).await;
    let target = format!("{ORIGIN}/device?user_code=BCDF-GHJK");
    assert_eq!(location(&signed_in), target);
    assert_eq!(cookies(&signed_in).len(), 2);
    let again = world.page(path(&link), &[]).await;
    let asked = world.page(path(location(&again)), &[]).await;
    let page = text(&asked, 200);
    assert!(page.contains("role=\"alert\"") && page.contains("not valid any more"));
    assert!(page.contains("value=\"/device?user_code=BCDF-GHJK\""));
}

#[tokio::test]
async fn opening_a_link_without_its_button_changes_nothing_and_keeps_it_valid() {
    let world = World::new();
    world.sign_up(ADA).await;
    let magic = world.magic_link(json!({ "email": ADA })).await;
    let _ = world
        .form("/reset-password", &[("email", ADA)], &[OWN_ORIGIN])
        .await;
    let reset = world.mailed_link(ADA).await;
    let before = world.count_link_tokens(ADA).await;
    let nobody = Caller::Anonymous;
    for link in [&magic, &reset] {
        for method in ["GET", "HEAD", "GET"] {
            let looked = world
                .iam
                .send(&nobody, method, path(link), &[], Value::Null);
            let looked = looked.await.expect(200);
            assert!(cookies(&looked).is_empty());
        }
    }
    assert_eq!(world.count_link_tokens(ADA).await, before);
    assert!(world.audit("user.signed_in").await.is_empty());
    let signed_in = world.press(&magic, SIGN_IN, &[]).await;
    assert_eq!(location(&signed_in), "http://iam.test/");
    let token = world.mailed_token(ADA).await;
    let fields = [("token", token.as_str()), ("password", NEW_PASSWORD)];
    let set = world
        .form("/reset-password/new", &fields, &[OWN_ORIGIN])
        .await;
    assert_eq!(
        location(&set),
        "/sign-in?notice=password-changed&next=%2Faccount%2Fsecurity"
    );
}

#[tokio::test]
async fn sign_in_links_have_targets_for_new_users_known_users_and_errors() {
    let world = World::new();
    let body = json!({
        "email": ADA, "callbackURL": "/known", "newUserCallbackURL": "/new", "errorCallbackURL": "/failed",
    });
    for (round, target) in ["/new", "/known"].into_iter().enumerate() {
        let link = world.magic_link(body.clone()).await;
        let signed_in = world.press(&link, SIGN_IN, &[]).await;
        assert_eq!(location(&signed_in), format!("{ORIGIN}{target}"), "{round}");
        let failed = "http://iam.test/failed?error=INVALID_TOKEN";
        assert_eq!(location(&world.page(path(&link), &[]).await), failed);
    }
    // Without a target, the sign-in page shows the error.
    let bare = world.page("/magic-link?token=nonsense", &[]).await;
    assert_eq!(location(&bare), "http://iam.test/?error=INVALID_TOKEN");
    let home = world.page("/?error=INVALID_TOKEN", &[]).await;
    let page = text(&world.page(location(&home), &[]).await, 200);
    assert!(page.contains("This link is not valid any more."));
    for name in ["callbackURL", "newUserCallbackURL", "errorCallbackURL"] {
        let foreign = format!("/magic-link?token=x&{name}=https%3A%2F%2Fevil.net");
        assert_eq!(world.page(&foreign, &[]).await.status, 403);
        let fields = [("token", "x"), (name, "https://evil.net")];
        assert_eq!(
            world.form(SIGN_IN, &fields, &[OWN_ORIGIN]).await.status,
            403
        );
    }
    let foreign = "/reset-password?token=x&callbackURL=https%3A%2F%2Fevil.net";
    assert_eq!(world.page(foreign, &[]).await.status, 403);
}

#[tokio::test]
async fn the_page_of_a_link_redirects_only_to_trusted_origins() {
    let world = World::new().with_trusted_origin("https://app.example.org");
    let target = "https://app.example.org/dash";
    let link = world
        .magic_link(json!({ "email": ADA, "callbackURL": target }))
        .await;
    let page = world.page(path(&link), &[]).await;
    // Browsers apply the policy also to redirects after a form.
    let policy = page.header("content-security-policy");
    assert!(
        policy.ends_with("form-action 'self' https://app.example.org"),
        "{policy}"
    );
    let signed_in = world.press(&link, SIGN_IN, &[]).await;
    assert_eq!(location(&signed_in), target);
    let link = world
        .magic_link(json!({ "email": ADA, "callbackURL": "/dash" }))
        .await;
    let page = world.page(path(&link), &[]).await;
    let policy = page.header("content-security-policy");
    assert!(policy.ends_with("form-action 'self'"), "{policy}");
}

#[tokio::test]
async fn a_sign_in_link_asks_for_the_passkey_if_it_is_the_only_factor() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let mut authenticator = world.create_passkey(&ada, 1).await;
    let link = world.magic_link(json!({ "email": ADA })).await;
    let asked = world.press(&link, SIGN_IN, &[]).await;
    assert_eq!(location(&asked), "http://iam.test/?twoFactorRedirect=true");
    let cookie = pending_sign_in_cookie(&asked);
    let headers = [("cookie", cookie.as_str())];
    let home = world.page(path(location(&asked)), &headers).await;
    let sign_in = world.page(location(&home), &headers).await;
    assert_eq!(location(&sign_in), "/two-factor");
    let page = text(&world.page("/two-factor", &headers).await, 200);
    assert!(page.contains("Sign in with a passkey") && !page.contains("name=\"code\""));
    let code = world
        .complete_sign_in(&cookie, "verify-totp", "123456")
        .await;
    code.expect_error(400, "TOTP_NOT_ENABLED");
    // A password that a link has set also asks for it, until the passkey was used.
    let _ = world.reset_password(ADA, NEW_PASSWORD).await.expect(200);
    let body = json!({ "email": ADA, "password": NEW_PASSWORD });
    let asked = world.post(super::super::SIGN_IN, body.clone()).await;
    assert_eq!(asked.expect(200).json, json!({ "twoFactorRedirect": true }));
    let by_passkey = world.sign_in_by_passkey(&mut authenticator).await;
    let _ = by_passkey.expect(200);
    let signed_in = world.post(super::super::SIGN_IN, body).await.expect(200);
    assert!(signed_in.json["token"].is_string());
}

#[tokio::test]
async fn the_account_page_sends_a_confirmation_link() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let page = text(&world.page_of(&ada, "/account").await, 200);
    assert!(page.contains("This address is not confirmed."));
    assert!(page.contains("Confirm your address to add a passkey."));
    let sent = world.form_of(&ada, "/account/confirm-address", &[]).await;
    assert_eq!(location(&sent), "/account?notice=link-sent");
    assert!(
        world
            .mailed_link(ADA)
            .await
            .contains("callbackURL=%2Faccount")
    );
    world.set_confirmed(&ada, true).await;
    let page = text(&world.page_of(&ada, "/account").await, 200);
    assert!(!page.contains("not confirmed") && page.contains("data-passkey=\"add\""));
}

#[tokio::test]
async fn a_password_reset_deletes_api_keys_only_on_request() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    world.set_confirmed(&ada, true).await;
    let made = world.set_up_organization(&ada, "engines").await.expect(201);
    let body = json!({ "organizationId": made.text("orgId") });
    let key = world.create_api_key(&ada.caller(), body).await.expect(200);
    let key = key.text("key");
    for (ticked, verdict) in [(None, "VALID"), (Some(("deleteKeys", "true")), "REVOKED")] {
        let _ = world
            .form("/reset-password", &[("email", ADA)], &[OWN_ORIGIN])
            .await;
        world.tick(1);
        let token = world.mailed_token(ADA).await;
        let path = format!("/reset-password?token={token}");
        let page = world.page(&path, &[]).await;
        assert!(text(&page, 200).contains("Delete my API keys as well"));
        let fields = [("token", token.as_str()), ("password", NEW_PASSWORD)];
        let fields = [&fields[..], ticked.as_slice()].concat();
        let done = world
            .form("/reset-password/new", &fields, &[OWN_ORIGIN])
            .await;
        // After the sign-in comes the page that lists everything with access to the account.
        let target = "/sign-in?notice=password-changed&next=%2Faccount%2Fsecurity";
        assert_eq!(location(&done), target);
        assert_eq!(world.key_verdict(key).await, verdict);
    }
    assert_eq!(world.audit("api_key.deleted").await.len(), 1);
}

#[tokio::test]
async fn a_reset_link_works_once_and_requests_do_not_reveal_accounts() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    for email in [EVE, ADA] {
        let fields = [("email", email)];
        let sent = world.form("/reset-password", &fields, &[OWN_ORIGIN]).await;
        assert_eq!(location(&sent), "/reset-password/sent");
    }
    assert_eq!(world.mails().await.len(), 1);
    let link = world.mailed_link(ADA).await;
    let page = text(&world.page(path(&link), &[]).await, 200);
    let token = world.mailed_token(ADA).await;
    assert!(page.contains(&format!("value=\"{token}\"")) && page.contains("new-password"));
    let set = async |password| {
        let fields = [("token", token.as_str()), ("password", password)];
        world
            .form("/reset-password/new", &fields, &[OWN_ORIGIN])
            .await
    };
    assert!(text(&set("short").await, 400).contains("password-error"));
    let done = set(NEW_PASSWORD).await;
    assert_eq!(
        location(&done),
        "/sign-in?notice=password-changed&next=%2Faccount%2Fsecurity"
    );
    for (password, status) in [(PASSWORD, 401), (NEW_PASSWORD, 303)] {
        let fields = [("email", ADA), ("password", password)];
        let signed_in = world.form("/sign-in", &fields, &[OWN_ORIGIN]).await;
        assert_eq!(signed_in.status, status);
    }
    let over = world.page_of(&ada, "/account").await;
    assert_eq!(location(&over), "/sign-in");
    assert!(text(&set("another horse battery").await, 400).contains("not valid any more"));
    let old = world.page(path(&link), &[]).await;
    assert!(text(&old, 200).contains("not valid any more"));
}
