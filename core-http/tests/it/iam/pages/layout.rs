//! What every page has.

use serde_json::Value;

use super::{ADA, World, text};

#[tokio::test]
async fn every_page_has_one_heading_a_language_labels_and_no_script_of_its_own() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    for path in [
        "/sign-in",
        "/sign-up",
        "/sign-up/sent",
        "/magic-link",
        "/magic-link/sent",
        "/reset-password",
        "/reset-password/sent",
    ] {
        check(&text(&world.page(path, &[]).await, 200));
    }
    for path in ["/device", "/device/approved", "/device/denied", "/account"] {
        check(&text(&world.page_of(&ada, path).await, 200));
    }
}

fn check(page: &str) {
    assert_eq!(page.matches("<h1>").count(), 1, "{page}");
    assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">"));
    // The one script is a file of ours.
    let ours = page
        .matches("<script defer src=\"/assets/passkeys.js?v=")
        .count();
    assert_eq!(page.matches("<script").count(), ours);
    assert_eq!(page.matches("\"></script>").count(), ours);
    for never in ["<script>", "style=", " onclick", "http://", "https://"] {
        assert!(!page.contains(never), "{never}: {page}");
    }
    for input in page.split("<input ").skip(1) {
        let tag = input.split('>').next().unwrap();
        if tag.contains("type=\"hidden\"") {
            continue;
        }
        let id = tag.split("id=\"").nth(1).unwrap().split('"').next();
        assert!(page.contains(&format!("<label for=\"{}\">", id.unwrap())));
        assert!(
            tag.contains("autocomplete=") || tag.contains("checkbox"),
            "{tag}"
        );
    }
}

#[tokio::test]
async fn browsers_keep_no_page_and_show_it_in_no_frame() {
    let world = World::new();
    let page = world.page("/sign-in", &[]).await.expect(200);
    assert_eq!(page.header("cache-control"), "no-store");
    // With `no-referrer` browsers would send forms with `Origin: null`.
    assert_eq!(page.header("referrer-policy"), "same-origin");
    let policy = page.header("content-security-policy");
    for part in [
        "default-src 'self'",
        "frame-ancestors 'none'",
        "form-action 'self'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
}

#[tokio::test]
async fn the_stylesheet_of_a_page_is_ours_and_is_not_sent_twice() {
    let world = World::new();
    let page = text(&world.page("/sign-in", &[]).await, 200);
    let href = page.split("rel=\"stylesheet\" href=\"").nth(1).unwrap();
    let href = href.split('"').next().unwrap();
    assert!(href.starts_with("/assets/iam.css?v="));
    let sent = world.ask("GET", href, &[], Value::Null).await.expect(200);
    assert_eq!(sent.header("content-type"), "text/css; charset=utf-8");
    let tag = [("if-none-match", sent.header("etag"))];
    let again = world.ask("GET", href, &tag, Value::Null).await.expect(304);
    assert!(again.bytes.is_empty());
}
