//! Passkeys on the pages. Browser tests cover the parts that need JavaScript.

use super::{ADA, EVE, World, location, text};

fn policy(answer: &super::Answer) -> &str {
    answer.header("content-security-policy")
}

#[tokio::test]
async fn only_pages_with_passkeys_allow_our_script() {
    let world = World::new();
    let page = world.page("/sign-in", &[]).await;
    assert!(policy(&page).contains("script-src 'self';"));
    assert_eq!(
        page.headers
            .get_all("content-security-policy")
            .iter()
            .count(),
        1
    );
    let html = text(&page, 200);
    // The button is hidden without JavaScript.
    assert!(
        html.contains("<div class=\"passkey\" hidden data-passkey=\"signIn\""),
        "{html}"
    );
    let source = html.split("<script defer src=\"").nth(1).unwrap();
    let source = source.split('"').next().unwrap();
    let sent = world
        .send_unidentified("GET", source, &[], serde_json::Value::Null)
        .await;
    let sent = sent.expect(200);
    assert_eq!(
        sent.header("content-type"),
        "text/javascript; charset=utf-8"
    );
    assert_eq!(sent.header("x-content-type-options"), "nosniff");
    for path in ["/sign-up", "/magic-link", "/reset-password", "/nothing"] {
        let page = world.page(path, &[]).await;
        assert!(policy(&page).contains("script-src 'none';"), "{path}");
    }
}

#[tokio::test]
async fn with_passkeys_disabled_no_page_offers_one_or_allows_scripts() {
    let world = World::new().without_passkeys();
    let ada = world.sign_up(ADA).await;
    for (path, cookie) in [
        ("/sign-in", ""),
        ("/account", &*ada.cookie),
        ("/account/confirm", &*ada.cookie),
    ] {
        let page = world.page(path, &[("cookie", cookie)]).await;
        assert!(policy(&page).contains("script-src 'none';"), "{path}");
        let html = text(&page, 200);
        assert!(!html.to_lowercase().contains("passkey"), "{path}: {html}");
    }
}

#[tokio::test]
async fn the_account_page_lists_renames_and_removes_passkeys() {
    let world = World::new();
    let (ada, eve) = (world.sign_up(ADA).await, world.sign_up(EVE).await);
    world.create_passkey(&ada, 1).await;
    let id = world.passkeys_of(&ada).await[0]["id"].clone();
    let id = id.as_str().unwrap();
    let page = text(&world.page_of(&ada, "/account").await, 200);
    assert!(page.contains("<h3>Phone") && page.contains("data-passkey=\"add\""));
    let page = text(&world.page_of(&eve, "/account").await, 200);
    assert!(page.contains("You have no passkeys."));
    let send = async |person, path: &str, fields: &[(&str, &str)]| {
        location(&world.form_of(person, path, fields).await).to_owned()
    };
    let (rename, remove) = ("/account/rename-passkey", "/account/remove-passkey");
    let fields = [("passkey", id), ("name", "<b>Laptop</b>")];
    assert_eq!(send(&eve, rename, &fields).await, "/account");
    assert_eq!(send(&eve, remove, &fields[..1]).await, "/account");
    assert_eq!(
        send(&ada, rename, &fields).await,
        "/account?notice=passkey-renamed"
    );
    let page = text(&world.page_of(&ada, "/account").await, 200);
    assert!(page.contains("<h3>&lt;b&gt;Laptop&lt;/b&gt;"), "{page}");
    world.tick(600);
    let to = send(&ada, remove, &fields[..1]).await;
    assert_eq!(to, "/account/confirm");
    let page = text(&world.page_of(&ada, &to).await, 200);
    assert!(page.contains("Confirm with a passkey"), "{page}");
    let foreign = world
        .form(remove, &fields[..1], &[("cookie", &ada.cookie)])
        .await;
    assert_eq!(foreign.status, 403);
    assert_eq!(world.passkeys_of(&ada).await.len(), 1);
}

#[tokio::test]
async fn the_confirm_page_asks_only_for_a_passkey_that_is_the_only_factor() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    world.create_passkey(&ada, 1).await;
    let page = text(&world.page_of(&ada, "/account/confirm").await, 200);
    assert!(page.contains("Confirm with a passkey") && page.contains("<noscript>"));
    for other_way in ["name=\"password\"", "name=\"code\"", "Sign in again"] {
        assert!(!page.contains(other_way), "{other_way}: {page}");
    }
    let world = world.without_passkeys();
    let page = text(&world.page_of(&ada, "/account/confirm").await, 200);
    assert!(page.contains("Ask whoever runs the platform to remove yours."));
}
