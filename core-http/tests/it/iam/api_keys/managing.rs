//! Creating, listing, changing and deleting keys.

use core_domain::kernel::Caller;
use serde_json::{Value, json};

use super::{CREATE, DAY, DELETE, GET, LIST, OrganizationOwner, ROTATE, UPDATE, header};
use crate::iam::EVE;
use crate::world::{World, operator};

#[tokio::test]
async fn a_new_key_has_the_format_of_better_auth_and_shows_its_secret_once() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let body = json!({
        "name": "deploys", "prefix": "ci_", "expiresIn": 30 * DAY, "scopes": ["job:read", "deployment:*"],
    });
    let made = ada.post(&world, CREATE, body).await.expect(200);
    let secret = made.text("key").to_owned();
    assert!(secret.starts_with("core_ci_") && secret.len() == 5 + 3 + 43 + 6);
    assert_eq!(header(&made.headers, "cache-control"), "no-store");
    let mut shown = made.json.clone();
    shown.as_object_mut().unwrap().remove("key");
    let now = "2027-01-15T08:00:00.000Z";
    let expected = json!({
        "id": made.id(), "configId": "default", "name": "deploys", "start": secret[..6],
        "prefix": "core_ci_", "referenceId": ada.person.user_id, "enabled": true,
        "rateLimitEnabled": true, "rateLimitTimeWindow": 60_000, "rateLimitMax": 600,
        "requestCount": 0, "remaining": null, "refillInterval": null, "refillAmount": null,
        "lastRefillAt": null, "lastRequest": null, "expiresAt": "2027-02-14T08:00:00.000Z",
        "permissions": { "deployment": ["*"], "job": ["read"] }, "metadata": null,
        "createdAt": now, "updatedAt": now, "displayStart": secret[..12],
        "userId": ada.person.user_id, "organizationId": ada.org, "platformId": ada.platform,
        "organizationOwned": false, "scopes": ["deployment:*", "job:read"],
        "requestsPerMinute": 600, "overlapEndsAt": null,
    });
    assert_eq!(shown, expected);
    let path = format!("{GET}?id={}", made.id());
    let found = ada.get(&world, &path).await.expect(200);
    assert_eq!(found.json, expected);
    let listed = ada.get(&world, LIST).await.expect(200);
    assert_eq!(listed.json, json!({ "apiKeys": [expected], "total": 1 }));
    let entries = world.audit("api_key.created").await;
    assert_eq!(entries.len(), 1);
    let entry = serde_json::to_string(&entries[0]).unwrap();
    assert!(!entry.contains(&secret) && entry.contains(&ada.platform));
}

#[tokio::test]
async fn invalid_requests_get_the_codes_of_better_auth() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let (id, _) = ada.key(&world, json!({})).await;
    let with = |mut body: Value| {
        body["keyId"] = json!(id);
        body
    };
    for (path, body, code) in [
        (
            CREATE,
            json!({ "expiresIn": DAY - 1 }),
            "EXPIRES_IN_IS_TOO_SMALL",
        ),
        (
            CREATE,
            json!({ "expiresIn": -1 }),
            "EXPIRES_IN_IS_TOO_SMALL",
        ),
        (
            CREATE,
            json!({ "expiresIn": 365 * DAY + 1 }),
            "EXPIRES_IN_IS_TOO_LARGE",
        ),
        (CREATE, json!({ "name": "" }), "INVALID_NAME_LENGTH"),
        (
            CREATE,
            json!({ "name": "x".repeat(33) }),
            "INVALID_NAME_LENGTH",
        ),
        (CREATE, json!({ "remaining": 5 }), "SERVER_ONLY_PROPERTY"),
        (CREATE, json!({ "permissions": {} }), "SERVER_ONLY_PROPERTY"),
        (
            CREATE,
            json!({ "rateLimitEnabled": false }),
            "SERVER_ONLY_PROPERTY",
        ),
        (CREATE, json!({ "metadata": {} }), "METADATA_DISABLED"),
        (CREATE, json!({ "prefix": "no spaces" }), "VALIDATION_ERROR"),
        (
            CREATE,
            json!({ "prefix": "x".repeat(33) }),
            "VALIDATION_ERROR",
        ),
        (CREATE, json!({ "scopes": [] }), "VALIDATION_ERROR"),
        (
            CREATE,
            json!({ "scopes": ["everything"] }),
            "VALIDATION_ERROR",
        ),
        (
            CREATE,
            json!({ "requestsPerMinute": 0 }),
            "VALIDATION_ERROR",
        ),
        (
            CREATE,
            json!({ "requestsPerMinute": 10_001 }),
            "VALIDATION_ERROR",
        ),
        (UPDATE, with(json!({})), "NO_VALUES_TO_UPDATE"),
        (UPDATE, with(json!({ "name": "" })), "INVALID_NAME_LENGTH"),
        (
            UPDATE,
            with(json!({ "refillAmount": 1 })),
            "SERVER_ONLY_PROPERTY",
        ),
        (
            ROTATE,
            with(json!({ "overlap": 7 * DAY + 1 })),
            "VALIDATION_ERROR",
        ),
        (ROTATE, with(json!({ "overlap": -1 })), "VALIDATION_ERROR"),
    ] {
        let refused = ada.post(&world, path, body.clone()).await;
        let refused = refused.expect_error(400, code);
        assert_eq!(refused.json["code"], code, "{body}");
        assert_eq!(refused.json["message"], refused.json["error"]["message"]);
    }
    for body in [json!({ "remaining": null, "metadata": null, "expiresIn": null, "name": null })] {
        let _ = ada.post(&world, CREATE, body).await.expect(200);
    }
    let nobody = world.post(CREATE, json!({})).await;
    let nobody = nobody.expect_error(401, "UNAUTHORIZED_SESSION");
    assert_eq!(nobody.json["code"], "UNAUTHORIZED_SESSION");
    let service = world.iam.post(&operator(), CREATE, json!({})).await;
    service.expect_error(401, "UNAUTHORIZED_SESSION");
}

#[tokio::test]
async fn an_organization_key_requires_a_membership_and_a_platform() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let eve = world.sign_up(EVE).await;
    let of = |org: &str, owned: bool| json!({ "organizationId": org, "organizationOwned": owned });
    for owned in [true, false] {
        let foreign = world.send_as_person(&eve, "POST", CREATE, of(&ada.org, owned));
        foreign.await.expect_error(404, "NOT_FOUND");
    }
    let owned = json!({ "organizationOwned": true });
    let none_active = world.send_as_person(&eve, "POST", CREATE, owned).await;
    let none_active = none_active.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(none_active.issues(), ["organizationId: required"]);
    let body = json!({ "name": "Bare", "slug": "bare", "ownerId": eve.user_id });
    let path = "/api/core/organizations";
    let bare = world.iam.post(&operator(), path, body).await.expect(201);
    for owned in [true, false] {
        let refused = world.send_as_person(&eve, "POST", CREATE, of(&bare.id(), owned));
        refused.await.expect_error(409, "CONFLICT");
    }
}

#[tokio::test]
async fn another_persons_key_is_not_found_by_any_route() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let eve = world.sign_up(EVE).await;
    let _ = world.join([&ada.person, &eve], &ada.org, "admin").await;
    let (own, secret) = ada.key(&world, json!({})).await;
    let missing = "no-such-key".to_owned();
    for id in [&own, &missing] {
        for (method, path, body) in [
            ("GET", format!("{GET}?id={id}"), Value::Null),
            (
                "POST",
                UPDATE.to_owned(),
                json!({ "keyId": id, "name": "mine" }),
            ),
            ("POST", ROTATE.to_owned(), json!({ "keyId": id })),
            ("POST", DELETE.to_owned(), json!({ "keyId": id })),
        ] {
            let refused = world.send_as_person(&eve, method, &path, body).await;
            let refused = refused.expect_error(404, "KEY_NOT_FOUND");
            assert_eq!(refused.json["message"], "API Key not found");
        }
    }
    let listed = world.send_as_person(&eve, "GET", LIST, Value::Null).await;
    assert_eq!(listed.expect(200).json["total"], 0);
    assert_eq!(world.key_verdict(&secret).await, "VALID");
}

#[tokio::test]
async fn members_see_organization_keys_and_change_them_only_with_permission() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let [eve, bob] = [
        world.sign_up(EVE).await,
        world.sign_up("bob@example.org").await,
    ];
    let _ = world.join([&ada.person, &eve], &ada.org, "admin").await;
    let _ = world.join([&ada.person, &bob], &ada.org, "member").await;
    let body = |scopes: Value| json!({ "organizationId": ada.org, "organizationOwned": true, "scopes": scopes });
    // A caller cannot give scopes that they lack.
    for (person, scopes, status) in [
        (&bob, json!(["job:read"]), 403),
        (&eve, json!(["job:read"]), 200),
        (&eve, json!(["platform:manage"]), 403),
        (&eve, Value::Null, 403),
        (&ada.person, Value::Null, 200),
    ] {
        let made = world
            .send_as_person(person, "POST", CREATE, body(scopes))
            .await;
        let _ = made.expect(status);
        world.tick(1);
    }
    let path = format!("{LIST}?organizationOwned=true&organizationId={}", ada.org);
    let listed = world.send_as_person(&bob, "GET", &path, Value::Null).await;
    let listed = listed.expect(200).json;
    let keys = listed["apiKeys"].as_array().unwrap();
    let [everything, narrow] = keys.as_slice() else {
        panic!("{listed}");
    };
    assert_eq!(everything["referenceId"], ada.org.as_str());
    assert_eq!(
        (&everything["scopes"], &everything["userId"]),
        (&Value::Null, &Value::Null)
    );
    let of = |key: &Value| json!({ "keyId": key["id"] });
    let renamed = json!({ "keyId": everything["id"], "name": "all" });
    for (person, path, body, status) in [
        (&bob, UPDATE, renamed.clone(), 403),
        (&bob, ROTATE, of(narrow), 403),
        (&bob, DELETE, of(narrow), 403),
        (&eve, UPDATE, renamed, 200),
        // A rotation reveals the secret, so the caller needs every permission of the key.
        (&eve, ROTATE, of(everything), 403),
        (&eve, ROTATE, of(narrow), 200),
        (&eve, DELETE, of(everything), 200),
    ] {
        let answer = world.send_as_person(person, "POST", path, body).await;
        let _ = answer.expect(status);
    }
    let mallory = world.sign_up("mallory@example.org").await;
    let foreign = world
        .send_as_person(&mallory, "POST", DELETE, of(narrow))
        .await;
    foreign.expect_error(404, "KEY_NOT_FOUND");
    let foreign = world
        .send_as_person(&mallory, "GET", &path, Value::Null)
        .await;
    foreign.expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn owners_set_the_rate_limit_of_a_key_and_admins_cannot() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let eve = world.sign_up(EVE).await;
    let _ = world.join([&ada.person, &eve], &ada.org, "admin").await;
    let own = json!({ "organizationId": ada.org });
    let made = world
        .send_as_person(&eve, "POST", CREATE, own.clone())
        .await;
    let id = made.expect(200).id();
    let mut limited = own;
    limited["requestsPerMinute"] = json!(1_000);
    let refused = world.send_as_person(&eve, "POST", CREATE, limited.clone());
    refused.await.expect_error(403, "FORBIDDEN");
    let change = json!({ "keyId": id, "requestsPerMinute": 1_000 });
    let refused = world.send_as_person(&eve, "POST", UPDATE, change).await;
    refused.expect_error(403, "FORBIDDEN");
    let made = ada.post(&world, CREATE, limited).await.expect(200);
    assert_eq!(made.json["rateLimitMax"], 1_000);
    let change = json!({ "keyId": made.id(), "requestsPerMinute": 10_000 });
    let changed = ada.post(&world, UPDATE, change).await.expect(200);
    assert_eq!(changed.json["requestsPerMinute"], 10_000);
}

#[tokio::test]
async fn disabling_enabling_and_deleting_a_key_is_audited() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let (id, secret) = ada.key(&world, json!({})).await;
    for (enabled, verdict) in [(false, "REVOKED"), (false, "REVOKED"), (true, "VALID")] {
        let body = json!({ "keyId": id, "enabled": enabled });
        let changed = ada.post(&world, UPDATE, body).await.expect(200);
        assert_eq!(changed.json["enabled"], enabled);
        assert_eq!(world.key_verdict(&secret).await, verdict);
    }
    let body = json!({ "keyId": id, "name": "later" });
    let renamed = ada.post(&world, UPDATE, body).await.expect(200);
    assert_eq!(renamed.json["name"], "later");
    let of = json!({ "keyId": id });
    let deleted = ada.post(&world, DELETE, of.clone()).await.expect(200);
    assert_eq!(deleted.json, json!({ "success": true }));
    assert_eq!(world.key_verdict(&secret).await, "REVOKED");
    for path in [DELETE, UPDATE, ROTATE] {
        let gone = ada.post(&world, path, of.clone()).await;
        gone.expect_error(404, "KEY_NOT_FOUND");
    }
    let listed = ada.get(&world, LIST).await.expect(200);
    assert_eq!(listed.json["total"], 0);
    for (action, count) in [
        ("api_key.created", 1),
        ("api_key.disabled", 1),
        ("api_key.enabled", 1),
        ("api_key.updated", 1),
        ("api_key.deleted", 1),
    ] {
        let entries = world.audit(action).await;
        assert_eq!(entries.len(), count, "{action}");
        assert_eq!(entries[0].entity_id, id);
        assert_eq!(entries[0].actor_id, ada.person.user_id);
    }
}

#[tokio::test]
async fn an_owner_has_at_most_a_hundred_keys_and_deleted_ones_do_not_count() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let (first, secret) = ada.key(&world, json!({ "expiresIn": DAY })).await;
    for _ in 1..100 {
        ada.key(&world, json!({})).await;
    }
    let full = ada.post(&world, CREATE, json!({})).await;
    full.expect_error(409, "LIMIT_REACHED");
    let own = json!({ "organizationOwned": true });
    let _ = ada.post(&world, CREATE, own).await.expect(200);
    let deleted = ada.post(&world, DELETE, json!({ "keyId": first })).await;
    let _ = deleted.expect(200);
    ada.key(&world, json!({})).await;
    assert_eq!(world.key_verdict(&secret).await, "REVOKED");
    world.tick(31 * DAY);
    let again = world.sign_in(crate::iam::ADA, crate::world::PASSWORD).await;
    let token = again.expect(200).text("token").to_owned();
    let listed = world
        .send_with_bearer(&token, "GET", LIST)
        .await
        .expect(200);
    let one = listed.json["apiKeys"][0]["id"].clone();
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    for (path, body) in [(DELETE, json!({ "keyId": one })), (CREATE, json!({}))] {
        let answer = world.send_unidentified("POST", path, &headers, body).await;
        let _ = answer.expect(200);
    }
    assert_eq!(world.key_verdict(&secret).await, "NOT_FOUND");
}

#[tokio::test]
async fn lists_are_paged_and_sorted_as_requested() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    for name in ["b", "c", "a"] {
        world.tick(1);
        ada.key(&world, json!({ "name": name })).await;
    }
    for (query, names, cut) in [
        ("", "a c b", [Value::Null, Value::Null]),
        ("?limit=2", "a c", [json!(2), Value::Null]),
        ("?limit=2&offset=1", "c b", [json!(2), json!(1)]),
        ("?offset=3", "", [Value::Null, json!(3)]),
        ("?sortBy=name", "a b c", [Value::Null, Value::Null]),
        (
            "?sortBy=name&sortDirection=desc",
            "c b a",
            [Value::Null, Value::Null],
        ),
        ("?sortDirection=asc", "b c a", [Value::Null, Value::Null]),
        ("?organizationId=another", "", [Value::Null, Value::Null]),
    ] {
        let listed = ada.get(&world, &format!("{LIST}{query}")).await.expect(200);
        let keys = listed.json["apiKeys"].as_array().unwrap();
        let found: Vec<&str> = keys
            .iter()
            .map(|key| key["name"].as_str().unwrap())
            .collect();
        assert_eq!(found.join(" "), names, "{query}");
        assert_eq!(
            [&listed.json["limit"], &listed.json["offset"]],
            [&cut[0], &cut[1]]
        );
    }
    for bad in [
        "?limit=0",
        "?offset=-1",
        "?sortBy=secret",
        "?sortDirection=up",
    ] {
        let refused = ada.get(&world, &format!("{LIST}{bad}")).await;
        refused.expect_error(400, "VALIDATION_ERROR");
    }
}

#[tokio::test]
async fn a_repeated_request_returns_the_same_secret() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let bearer = format!("Bearer {}", ada.person.token);
    let headers = [
        ("authorization", bearer.as_str()),
        ("idempotency-key", "once"),
    ];
    let mut secrets = Vec::new();
    for _ in 0..2 {
        let made = world
            .send_unidentified("POST", CREATE, &headers, json!({}))
            .await;
        secrets.push(made.expect(200).text("key").to_owned());
    }
    assert_eq!(secrets[0], secrets[1]);
    let listed = ada.get(&world, LIST).await.expect(200);
    assert_eq!(listed.json["total"], 1);
    let nobody = world.iam.get(&Caller::Anonymous, LIST).await;
    nobody.expect_error(401, "UNAUTHORIZED");
}
