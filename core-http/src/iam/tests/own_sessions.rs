//! The list of one's sessions, and the enriched one.

use serde_json::{Value, json};

use super::world::{KEY, PASSWORD, World};

#[tokio::test]
async fn one_sees_and_ends_ones_own_sessions_alone() {
    let world = World::new();
    let ada = format!(
        "Bearer {}",
        world.sign_up("ada@example.org").await.expect(200).token()
    );
    let ada = [("authorization", ada.as_str())];
    let eve = format!(
        "Bearer {}",
        world.sign_up("eve@example.org").await.expect(200).token()
    );
    let eve = [("authorization", eve.as_str())];
    world.later(1);
    let other = world
        .sign_in("ada@example.org", PASSWORD)
        .await
        .expect(200)
        .token();
    let list = world.get("/api/sessions", &ada).await.expect(200);
    let sessions = list.body["data"].as_array().unwrap();
    assert_eq!(sessions.len(), 2);
    assert_eq!(
        (&sessions[0]["current"], &sessions[1]["current"]),
        (&json!(false), &json!(true))
    );
    assert!(!list.body.to_string().contains(&other));
    let mut fields: Vec<_> = sessions[0].as_object().unwrap().keys().cloned().collect();
    fields.sort();
    assert_eq!(
        fields,
        [
            "createdAt",
            "current",
            "expiresAt",
            "id",
            "ipAddress",
            "userAgent"
        ]
    );

    let path = format!("/api/sessions/{}", sessions[0]["id"].as_str().unwrap());
    let foreign = world.send("DELETE", &path, &eve, "").await.expect(404);
    assert_eq!(foreign.body["error"]["code"], "NOT_FOUND");
    world.send("DELETE", &path, &ada, "").await.expect(200);
    world.send("DELETE", &path, &ada, "").await.expect(404);
    let other = format!("Bearer {other}");
    let gone = world
        .get("/api/auth/get-session", &[("authorization", &other)])
        .await
        .expect(200);
    assert!(gone.body.is_null());
    for path in ["/api/sessions", "/api/core/session"] {
        world.get(path, &[]).await.expect(401);
    }
}

#[tokio::test]
async fn a_session_without_an_organization_has_no_place_in_the_suite() {
    let world = World::new();
    let token = world.sign_up("ada@example.org").await.expect(200).token();
    let bearer = format!("Bearer {token}");
    let session = world
        .get("/api/core/session", &[("authorization", &bearer)])
        .await
        .expect(200);
    assert!(!session.body.to_string().contains(&token));
    for field in [
        "organization",
        "platformId",
        "tenant",
        "role",
        "effectiveRole",
    ] {
        assert_eq!(session.body.get(field), Some(&Value::Null), "{field}");
    }
    assert_eq!(session.body["permissions"], json!([]));
}

#[tokio::test]
async fn the_enriched_session_shows_role_tenant_and_suspension() {
    let world = World::new();
    let user = world.sign_up("ada@example.org").await.expect(200).body["user"]["id"].clone();
    world
        .organization("engines", user.as_str().unwrap(), "p-1")
        .await;
    let token = world
        .sign_in("ada@example.org", PASSWORD)
        .await
        .expect(200)
        .token();
    let bearer = format!("Bearer {token}");
    let bearer = [("authorization", bearer.as_str())];
    let session = world
        .get("/api/core/session", &bearer)
        .await
        .expect(200)
        .body;
    assert_eq!(session["user"]["email"], "ada@example.org");
    assert_eq!(session["organization"]["slug"], "engines");
    assert_eq!(session["organization"]["type"], "tenant");
    assert_eq!(session["platformId"], "p-1");
    assert_eq!(session["tenant"]["suspended"], false);
    assert_eq!(
        (&session["role"], &session["effectiveRole"]),
        (&json!("owner"), &json!("owner"))
    );
    assert_eq!(session["permissions"], json!(["*:*"]));

    let suspend = json!({ "platformId": "p-1", "status": "suspended" });
    let answer = world
        .as_service("/internal/platform-status", &suspend)
        .await
        .expect(200);
    assert_eq!(answer.body, suspend);
    world
        .as_service("/internal/platform-status", &suspend)
        .await
        .expect(200);
    let session = world
        .get("/api/core/session", &bearer)
        .await
        .expect(200)
        .body;
    assert_eq!(session["tenant"]["suspended"], true);
    assert_eq!(world.audit("platform_access.suspended").await.len(), 1);

    let known = world
        .as_service("/api/validate-session", &json!({ "token": token }))
        .await
        .expect(200);
    assert_eq!(
        (&known.body["valid"], &known.body["platformId"]),
        (&json!(true), &json!("p-1"))
    );
    let unknown = world
        .as_service("/api/validate-session", &json!({ "token": "nope" }))
        .await
        .expect(200);
    assert_eq!(unknown.body, json!({ "valid": false }));
}

#[tokio::test]
async fn of_what_is_told_about_the_clients_address_only_a_trusted_callers_own_word_is_believed() {
    let world = World::new();
    let key = format!("Bearer {KEY}");
    let key = ("authorization", key.as_str());
    let told = ("x-forwarded-for", "6.6.6.6, 203.0.113.9");
    let by_gateway = ("x-core-client-ip", "2001:db8::1");
    for (n, (headers, expected)) in [
        (&[key, told][..], "203.0.113.9"),
        (&[key, told, by_gateway], "2001:db8::1"),
        (&[key, ("x-forwarded-for", "1.2.3.4, nonsense")], ""),
        (&[told, by_gateway], ""),
    ]
    .into_iter()
    .enumerate()
    {
        let email = format!("ada{n}@example.org");
        let body = json!({ "name": "Ada", "email": email, "password": PASSWORD });
        let path = "/api/auth/sign-up/email";
        let cookie = world.post(path, headers, &body).await.expect(200).cookie();
        let found = world
            .get("/api/auth/get-session", &[("cookie", &cookie)])
            .await;
        assert_eq!(found.body["session"]["ipAddress"], expected, "{headers:?}");
    }
}

#[tokio::test]
async fn of_a_user_agent_however_long_only_its_beginning_is_kept() {
    let world = World::new();
    let body = json!({ "name": "Ada", "email": "ada@example.org", "password": PASSWORD });
    let agent = "x".repeat(10_000);
    let path = "/api/auth/sign-up/email";
    let made = world
        .post(path, &[("user-agent", &agent)], &body)
        .await
        .expect(200);
    let found = world
        .get("/api/auth/get-session", &[("cookie", &made.cookie())])
        .await;
    assert_eq!(found.body["session"]["userAgent"], "x".repeat(512));
}

#[tokio::test]
async fn a_password_for_a_proxy_does_not_hide_the_cookie_but_a_bearer_decides() {
    let world = World::new();
    let cookie = world.sign_up("ada@example.org").await.expect(200).cookie();
    for (authorization, expected) in [("Basic YTpi", 200), ("Bearer wrong", 401), ("bearer", 401)] {
        let headers = [
            ("cookie", cookie.as_str()),
            ("authorization", authorization),
        ];
        let found = world.get("/api/core/session", &headers).await;
        assert_eq!(found.status, expected, "{authorization}");
    }
    let body = json!({ "name": "Engines", "slug": "engines" });
    let headers = [("cookie", cookie.as_str()), ("authorization", "Basic YTpi")];
    world
        .post("/api/core/org-setup", &headers, &body)
        .await
        .expect(201);
}
