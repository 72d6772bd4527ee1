//! Error pages for browsers, and JSON errors for programs.

use serde_json::Value;

use super::{ACCEPT_HTML, OWN_ORIGIN, World, text};

#[tokio::test]
async fn browsers_get_error_pages_and_programs_get_json() {
    let world = World::new();
    for (method, path, status, title) in [
        ("GET", "/nothing/here", 404, "Not found"),
        ("GET", "/sign-out", 405, "Not possible"),
        ("GET", "/accept-invitation", 400, "This cannot be read"),
        ("GET", "/sign-in?notice=bought", 400, "This cannot be read"),
        ("GET", "/sign-in?next=//evil.test", 403, "Not allowed"),
        ("POST", "/sign-out", 403, "Not allowed"),
    ] {
        let shown = world
            .send_unidentified(method, path, &[ACCEPT_HTML], Value::Null)
            .await;
        let page = text(&shown, status);
        assert!(
            page.contains(&format!("<h1>{title}</h1>")),
            "{path}: {page}"
        );
        assert!(page.contains(shown.header("x-request-id")));
        assert_eq!(shown.header("cache-control"), "no-store");
        let policy = shown.header("content-security-policy");
        assert!(policy.starts_with("default-src 'self'"), "{policy}");
        let said = world
            .send_unidentified(method, path, &[], Value::Null)
            .await;
        assert_eq!(said.status, status);
        assert!(!said.code().is_empty(), "{path}: {}", said.json);
    }
}

#[tokio::test]
async fn missing_api_routes_are_refused_in_json_even_for_browsers() {
    let world = World::new();
    let answer = world.page("/api/auth/nothing", &[]).await;
    answer.expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn too_many_attempts_show_an_error_page() {
    let world = World::new();
    let fields = [("email", "ada@example.org"), ("password", "wrong horse")];
    let mut last = None;
    for _ in 0..30 {
        let answer = world.form("/sign-in", &fields, &[OWN_ORIGIN]).await;
        if answer.status == 429 {
            last = Some(answer);
            break;
        }
    }
    let refused = last.unwrap();
    assert!(text(&refused, 429).contains("Too many attempts"));
    assert!(!refused.header("retry-after").is_empty());
}
