//! Requests that a foreign page makes a browser send.

use serde_json::json;

use super::world::{ORIGIN, PASSWORD, World};

#[tokio::test]
async fn what_changes_something_with_cookies_must_come_from_a_trusted_page() {
    let world = World::new();
    let cookie = world.sign_up("ada@example.org").await.expect(200).cookie();
    let out = "/api/auth/sign-out";
    let answer = world
        .post(out, &[("cookie", &cookie)], &json!({}))
        .await
        .expect(403);
    assert_eq!(answer.body["code"], "MISSING_OR_NULL_ORIGIN");
    assert_eq!(answer.body["message"], "Missing or null Origin");
    let null = [("cookie", cookie.as_str()), ("origin", "null")];
    assert_eq!(
        world.post(out, &null, &json!({})).await.expect(403).body["code"],
        "MISSING_OR_NULL_ORIGIN"
    );
    let foreign = [("cookie", cookie.as_str()), ("origin", "http://evil.test")];
    assert_eq!(
        world.post(out, &foreign, &json!({})).await.expect(403).body["code"],
        "INVALID_ORIGIN"
    );
    world
        .send("DELETE", "/api/sessions/x", &foreign, "")
        .await
        .expect(403);
    world
        .get("/api/auth/get-session", &foreign)
        .await
        .expect(200);
    let own = [("cookie", cookie.as_str()), ("origin", ORIGIN)];
    world.post(out, &own, &json!({})).await.expect(200);
}

#[tokio::test]
async fn nobody_is_signed_up_or_in_from_a_foreign_page_even_without_cookies() {
    let world = World::new();
    let foreign = [("origin", "http://evil.test")];
    let body = json!({ "name": "A", "email": "ada@example.org", "password": PASSWORD });
    for path in ["/api/auth/sign-up/email", "/api/auth/sign-in/email"] {
        assert_eq!(
            world.post(path, &foreign, &body).await.expect(403).body["code"],
            "INVALID_ORIGIN"
        );
    }
}

#[tokio::test]
async fn a_cookie_that_is_bare_or_wrongly_signed_is_no_session() {
    let world = World::new();
    let answer = world.sign_up("ada@example.org").await.expect(200);
    let bare = format!("better-auth.session_token={}", answer.token());
    let forged = format!("{bare}.{}", "A".repeat(43) + "%3D");
    for cookie in [bare, forged] {
        let found = world
            .get("/api/auth/get-session", &[("cookie", &cookie)])
            .await
            .expect(200);
        assert!(found.body.is_null() && found.cookies().is_empty());
        world
            .get("/api/sessions", &[("cookie", &cookie)])
            .await
            .expect(401);
    }
}

#[tokio::test]
async fn a_program_may_use_its_cookie_on_the_suites_own_routes_but_no_foreign_page_may() {
    let world = World::new();
    let cookie = world.sign_up("ada@example.org").await.expect(200).cookie();
    let setup = "/api/core/org-setup";
    let body = json!({ "name": "Engines", "slug": "engines" });
    for said in [
        ("origin", "null"),
        ("origin", "http://evil.test"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "é"),
    ] {
        let headers = [("cookie", cookie.as_str()), said];
        world.post(setup, &headers, &body).await.expect(403);
    }
    let cookie = ("cookie", cookie.as_str());
    world.post(setup, &[cookie], &body).await.expect(201);
    let other = json!({ "name": "Looms", "slug": "looms" });
    let same = [cookie, ("sec-fetch-site", "same-origin")];
    world.post(setup, &same, &other).await.expect(201);
}

#[tokio::test]
async fn pages_of_a_trusted_origin_may_ask_and_read_and_no_others() {
    let world = World::new();
    let setup = "/api/core/org-setup";
    let wants = ("access-control-request-method", "POST");
    let asked = [("origin", ORIGIN), wants];
    let told = world.send("OPTIONS", setup, &asked, "").await.expect(204);
    for (name, value) in [
        ("access-control-allow-origin", ORIGIN),
        ("access-control-allow-credentials", "true"),
        (
            "access-control-allow-methods",
            "GET, POST, PUT, PATCH, DELETE, OPTIONS",
        ),
        (
            "access-control-allow-headers",
            "Content-Type, Authorization, X-Request-Id",
        ),
        ("access-control-max-age", "600"),
        ("vary", "Origin"),
    ] {
        assert_eq!(told.headers[name], value, "{name}");
    }
    let refused = world
        .post(setup, &[("origin", ORIGIN)], &json!({}))
        .await
        .expect(401);
    assert_eq!(refused.headers["access-control-allow-origin"], ORIGIN);

    for origin in [
        "http://evil.test",
        "http://iam.test.evil.test",
        "null",
        "HTTP://IAM.TEST",
    ] {
        let asked = [("origin", origin), wants];
        let told = world.send("OPTIONS", setup, &asked, "").await.expect(204);
        let read = world
            .get("/health", &[("origin", origin)])
            .await
            .expect(200);
        for answer in [told, read] {
            let said = answer
                .headers
                .keys()
                .any(|name| name.as_str().starts_with("access-control-"));
            assert!(!said, "{origin}");
            assert_eq!(answer.headers["vary"], "Origin");
        }
    }
    world.send("OPTIONS", setup, &[], "").await.expect(405);
}
