//! Sessions: look-up, extension, listing and end.

use std::net::SocketAddr;

use core_domain::kernel::Caller;
use core_http::kernel::testing::SERVICE_KEY;
use core_http::kernel::{PeerAddr, bytes_body};
use http::Request;
use serde_json::{Value, json};

use super::{ADA, CORE_SESSION, EVE, GET_SESSION, SESSIONS, SIGN_OUT, SIGN_UP, cookies};
use crate::world::{PASSWORD, World, operator};

const HOUR: u64 = 3_600;

#[tokio::test]
async fn signing_out_ends_the_session_at_once_and_clears_the_cookies() {
    let world = World::new();
    let token = world.sign_up(ADA).await.token;
    let out = world
        .send_with_bearer(&token, "POST", SIGN_OUT)
        .await
        .expect(200);
    assert_eq!(out.json, json!({ "success": true }));
    let gone = world
        .send_with_bearer(&token, "GET", GET_SESSION)
        .await
        .expect(200);
    assert_eq!(gone.json, Value::Null);
    for answer in [out, gone] {
        let cookies = cookies(&answer);
        assert_eq!(cookies.len(), 3);
        assert!(cookies.iter().all(|c| c.contains("=; Max-Age=0;")));
    }
    let nobody = world
        .send_unidentified("GET", GET_SESSION, &[], Value::Null)
        .await;
    assert!(nobody.json.is_null() && cookies(&nobody).is_empty());
    assert_eq!(nobody.header("cache-control"), "no-store");
    assert_eq!(world.audit("session.signed_out").await.len(), 1);
}

#[tokio::test]
async fn a_used_session_is_extended_once_a_day_and_ends_after_thirty_days() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let only_look = "/api/auth/get-session?disableRefresh=true";
    for (hours, path, end, is_set) in [
        (25, only_look, "22T08:00:00.000Z", false),
        (0, GET_SESSION, "23T09:00:00.000Z", true),
        (1, GET_SESSION, "23T09:00:00.000Z", false),
        (24, CORE_SESSION, "24T10:00:00.000Z", false),
    ] {
        world.tick(hours * HOUR);
        let found = world
            .send_with_bearer(&ada.token, "GET", path)
            .await
            .expect(200);
        let expected = format!("2027-01-{end}");
        assert_eq!(found.json["session"]["expiresAt"], expected);
        assert_eq!(found.header("cache-control"), "no-store");
        let set = cookies(&found)
            .first()
            .is_some_and(|c| c.starts_with(&ada.cookie));
        assert_eq!(set, is_set);
    }
    for day in 3..=30 {
        world.tick(24 * HOUR - if day == 3 { 2 * HOUR } else { 0 });
        let found = world.send_with_bearer(&ada.token, "GET", GET_SESSION).await;
        assert_eq!(found.json.is_null(), day == 30, "{day}");
    }
}

#[tokio::test]
async fn people_list_and_end_only_their_own_valid_sessions() {
    let world = World::new();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    world.tick(1);
    let other = world.sign_in(ADA, PASSWORD).await.expect(200);
    let list = world
        .send_with_bearer(&ada.token, "GET", SESSIONS)
        .await
        .expect(200);
    let newest = &list.json["data"][0];
    let shown = json!({
        "id": newest["id"], "createdAt": "2027-01-15T08:00:01.000Z",
        "expiresAt": "2027-01-22T08:00:01.000Z", "ipAddress": "192.0.2.7", "userAgent": null,
        "current": false,
    });
    assert_eq!(*newest, shown);
    assert_eq!(list.json["data"][1]["current"], true);
    assert_eq!(list.each("id")[1..], [&*ada.session_id]);

    let path = format!("{SESSIONS}/{}", list.each("id")[0]);
    for (by, status) in [(&eve, 404), (&ada, 200), (&ada, 404)] {
        let ended = world
            .send_with_bearer(&by.token, "DELETE", &path)
            .await
            .expect(status);
        assert!(status != 200 || ended.json == json!({ "id": newest["id"] }));
    }
    let gone = world
        .send_with_bearer(other.text("token"), "GET", GET_SESSION)
        .await;
    assert!(gone.expect(200).json.is_null());
    world.tick(7 * 24 * HOUR - 1);
    let left = world.iam.get(&ada.caller(), SESSIONS).await.expect(200);
    assert!(left.each("id").is_empty());
    let own = format!("{SESSIONS}/{}", ada.session_id);
    let ended = world.iam.delete(&ada.caller(), &own).await;
    ended.expect_error(404, "NOT_FOUND");
    let shown = world.iam.get(&ada.caller(), CORE_SESSION).await;
    shown.expect_error(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn the_enriched_session_shows_organization_role_tenant_and_suspension() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let shown = async || {
        let found = world
            .send_with_bearer(&ada.token, "GET", CORE_SESSION)
            .await;
        let mut fields = found.expect(200).json;
        assert_eq!(fields["user"]["email"], ADA);
        assert_eq!(fields["session"]["id"], ada.session_id.as_str());
        assert!(!fields.to_string().contains(&ada.token));
        let fields = fields.as_object_mut().unwrap();
        // The response is valid as long as the session.
        let valid_until = fields.remove("validUntil").unwrap();
        assert_eq!(valid_until, fields["session"]["expiresAt"]);
        fields.retain(|name, _| name != "user" && name != "session");
        json!(fields)
    };
    let nothing = json!({
        "organization": null, "platformId": null, "tenant": null, "role": null,
        "effectiveRole": null, "permissions": [],
    });
    assert_eq!(shown().await, nothing);
    let made = world
        .set_up_organization(&ada, "engines")
        .await
        .expect(201)
        .json;
    let (platform, id) = (&made["platformId"], &made["orgId"]);
    let now = "2027-01-15T08:00:00.000Z";
    for (status, suspended) in [("active", false), ("suspended", true), ("suspended", true)] {
        let wanted = json!({ "platformId": platform, "status": status });
        let path = "/internal/platform-status";
        let answer = world.post_with_service_key(path, &wanted).await.expect(200);
        assert_eq!(answer.json, wanted);
        let expected = json!({
            "organization": {
                "id": id, "name": "Engines", "slug": "engines", "type": "tenant",
                "platformId": platform, "logo": null, "metadata": null,
                "createdAt": now, "updatedAt": now,
            },
            "platformId": platform,
            "tenant": {
                "platformId": platform, "organizationId": id, "slug": "engines",
                "suspended": suspended,
            },
            "role": "owner", "effectiveRole": "owner", "permissions": ["*:*"],
        });
        assert_eq!(shown().await, expected);
    }
    assert_eq!(world.audit("platform_access.suspended").await.len(), 1);
}

#[tokio::test]
async fn validate_session_returns_the_session_of_a_token() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let ask = async |token: &str| {
        let body = json!({ "token": token });
        let told = world
            .post_with_service_key("/api/validate-session", &body)
            .await;
        assert_eq!(told.header("cache-control"), "no-store");
        told.expect(200).json
    };
    let mut shown = world.iam.get(&ada.caller(), CORE_SESSION).await.json;
    shown["valid"] = json!(true);
    for token in [&ada.token, ada.cookie.split_once('=').unwrap().1] {
        assert_eq!(ask(token).await, shown);
    }
    world.tick(7 * 24 * HOUR);
    for token in [&ada.token, "nope", "a.b", "%"] {
        assert_eq!(ask(token).await, json!({ "valid": false }), "{token}");
    }
}

#[tokio::test]
async fn the_client_address_is_taken_only_from_trusted_proxies_and_services() {
    let world = World::new();
    let key = format!("Bearer {SERVICE_KEY}");
    let key = ("authorization", key.as_str());
    let told = ("x-forwarded-for", "6.6.6.6, 203.0.113.9");
    let by_gateway = ("x-core-client-ip", "2001:db8::1");
    let nonsense = ("x-forwarded-for", "1.2.3.4, nonsense");
    let [proxy, stranger] = [1, 8].map(|host| SocketAddr::from(([192, 0, 2, host], 4_000)));
    for (n, (peer, headers, expected)) in [
        (None, &[key, told][..], "203.0.113.9"),
        (None, &[key, told, by_gateway], "2001:db8::1"),
        (None, &[key, nonsense], ""),
        (None, &[told, by_gateway], ""),
        (Some(proxy), &[told, by_gateway], "203.0.113.9"),
        (Some(stranger), &[told, by_gateway], "192.0.2.8"),
    ]
    .into_iter()
    .enumerate()
    {
        let body = json!({ "name": "A", "email": format!("{n}@a.org"), "password": PASSWORD });
        let mut request = Request::post(SIGN_UP).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(peer) = peer {
            request = request.extension(PeerAddr(peer));
        }
        let request = request.body(bytes_body(body.to_string())).unwrap();
        let made = world.iam.raw(request).await.expect(200);
        let found = world
            .send_with_bearer(made.text("token"), "GET", GET_SESSION)
            .await;
        assert_eq!(found.json["session"]["ipAddress"], expected, "{headers:?}");
    }
}

#[tokio::test]
async fn unidentified_callers_are_identified_by_bearer_token_or_signed_cookie() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let bare = format!("better-auth.session_token={}", ada.token);
    let forged = format!("{bare}.{}%3D", "A".repeat(43));
    let [cookie, bare, forged] = [&ada.cookie, &bare, &forged].map(|c| ("cookie", c.as_str()));
    let bearer = format!("Bearer {}", ada.token);
    let says = |value: &'static str| ("authorization", value);
    let keyless = Caller::Service {
        name: "unauthenticated".to_owned(),
    };
    for (known, headers, expected) in [
        (Caller::Anonymous, &[cookie][..], 200),
        (
            Caller::Anonymous,
            &[("authorization", bearer.as_str())],
            200,
        ),
        (Caller::Anonymous, &[cookie, says("Basic YTpi")], 200),
        (Caller::Anonymous, &[cookie, says("Bearer wrong")], 401),
        (Caller::Anonymous, &[cookie, says("bearer")], 401),
        (Caller::Anonymous, &[bare], 401),
        (Caller::Anonymous, &[forged], 401),
        (keyless.clone(), &[cookie], 200),
        (keyless, &[], 401),
        (operator(), &[cookie], 401),
    ] {
        let found = world
            .iam
            .send(&known, "GET", CORE_SESSION, headers, Value::Null);
        assert_eq!(found.await.status, expected, "{known:?} {headers:?}");
    }
}
