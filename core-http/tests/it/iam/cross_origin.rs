//! Requests that a browser sends for a page of another origin.

use serde_json::{Value, json};

use super::{ADA, GET_SESSION, ORG_SETUP, SESSIONS, SIGN_IN, SIGN_OUT, SIGN_UP};
use crate::world::{ORIGIN, PASSWORD, World};

const EVIL: (&str, &str) = ("origin", "http://evil.test");
const NULL: (&str, &str) = ("origin", "null");
const OWN: (&str, &str) = ("origin", ORIGIN);

#[tokio::test]
async fn changes_with_cookies_must_come_from_a_trusted_origin_or_a_program() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let cookie = ("cookie", ada.cookie.as_str());
    let site = |value| ("sec-fetch-site", value);
    let session = format!("{SESSIONS}/{}", ada.session_id);
    let (missing, invalid) = ("MISSING_OR_NULL_ORIGIN", "INVALID_ORIGIN");
    for (method, path, said, code) in [
        // Routes of better-auth require the `Origin` header.
        ("POST", SIGN_OUT, None, missing),
        ("POST", SIGN_OUT, Some(NULL), missing),
        ("POST", SIGN_OUT, Some(EVIL), invalid),
        ("GET", GET_SESSION, Some(EVIL), ""),
        ("HEAD", GET_SESSION, Some(EVIL), ""),
        // The suite's own routes also accept `sec-fetch-site`, and programs that send neither header.
        ("DELETE", &session, Some(EVIL), invalid),
        ("POST", ORG_SETUP, Some(EVIL), invalid),
        ("POST", ORG_SETUP, Some(NULL), missing),
        ("POST", ORG_SETUP, Some(site("cross-site")), missing),
        ("POST", ORG_SETUP, Some(site("same-site")), missing),
        ("POST", ORG_SETUP, Some(site("é")), missing),
        ("POST", ORG_SETUP, Some(site("same-origin")), ""),
        ("POST", ORG_SETUP, Some(site("none")), ""),
        ("POST", ORG_SETUP, None, ""),
        ("DELETE", &session, Some(OWN), ""),
    ] {
        let made = world.audit("organization.created").await.len();
        let body = match path {
            ORG_SETUP => json!({ "name": "A", "slug": format!("org-{made}") }),
            _ => Value::Null,
        };
        let headers: Vec<_> = std::iter::once(cookie).chain(said).collect();
        let answer = world.send_unidentified(method, path, &headers, body).await;
        assert_eq!(answer.code(), code, "{method} {path} {said:?}");
        assert_eq!(answer.status == 403, !code.is_empty());
    }
    let later = [cookie, OWN];
    let out = world
        .send_unidentified("POST", SIGN_OUT, &later, Value::Null)
        .await;
    let _ = out.expect(200);
}

#[tokio::test]
async fn sign_up_and_sign_in_refuse_untrusted_origins_even_without_cookies() {
    let world = World::new();
    let body = json!({ "name": "A", "email": ADA, "password": PASSWORD });
    for path in [SIGN_UP, SIGN_IN] {
        let refused = world
            .send_unidentified("POST", path, &[EVIL], body.clone())
            .await;
        refused.expect_error(403, "INVALID_ORIGIN");
        let own = world
            .send_unidentified("POST", path, &[OWN], body.clone())
            .await;
        let _ = own.expect(200);
    }
}

#[tokio::test]
async fn only_trusted_origins_get_cors_headers() {
    let world = World::new();
    let wants = ("access-control-request-method", "POST");
    for (origin, trusted) in [
        (ORIGIN, true),
        ("http://evil.test", false),
        ("http://iam.test.evil.test", false),
        ("null", false),
        ("HTTP://IAM.TEST", false),
    ] {
        let headers = [("origin", origin), wants];
        let asked = world
            .send_unidentified("OPTIONS", ORG_SETUP, &headers, Value::Null)
            .await;
        let read = world.send_unidentified("GET", "/health", &headers[..1], Value::Null);
        for answer in [asked.expect(204), read.await.expect(200)] {
            let allowed = if trusted { (origin, "true") } else { ("", "") };
            let name = |rest| format!("access-control-allow-{rest}");
            let told = [name("origin"), name("credentials")];
            let told = (answer.header(&told[0]), answer.header(&told[1]));
            assert_eq!(told, allowed, "{origin}");
            assert_eq!(answer.header("vary"), "Origin");
        }
    }
    let own = [OWN, wants];
    let asked = world
        .send_unidentified("OPTIONS", ORG_SETUP, &own, Value::Null)
        .await;
    for (name, value) in [
        ("allow-methods", "GET, POST, PUT, PATCH, DELETE, OPTIONS"),
        ("allow-headers", "Content-Type, Authorization, X-Request-Id"),
        ("max-age", "600"),
    ] {
        assert_eq!(asked.header(&format!("access-control-{name}")), value);
    }
    let nothing = world
        .send_unidentified("OPTIONS", ORG_SETUP, &[], Value::Null)
        .await;
    nothing.expect_error(405, "METHOD_NOT_ALLOWED");
}
