//! Calls with the service key for a person or an API key that the headers name only by id.

use std::sync::Arc;

use core_domain::gateway::Credential;
use core_domain::kernel::{Caller, Secret};
use core_http::gateway::Authority;
use core_http::iam::SessionAuthority;
use core_http::kernel::empty_body;
use core_http::kernel::testing::SERVICE_KEY;
use http::Request;
use serde_json::json;

use super::{ADA, EVE, SESSIONS};
use crate::world::{Answer, Api, Person, World, iam_config, operator, platform_path};

impl World {
    /// Returns the caller that a gateway derives from the session of a person.
    async fn session_caller(&self, person: &Person) -> Caller {
        let store = Arc::clone(&self.app.store);
        let credential = Credential::Bearer(Secret::new(person.token.clone()));
        let authority = SessionAuthority::new(store, &iam_config());
        let found = authority.resolve(&credential).await.unwrap();
        (*found.caller).clone()
    }
}

async fn call_for(api: &Api, user: &str, method: &str, path: &str) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", format!("Bearer {SERVICE_KEY}"))
        .header("x-core-user-id", user);
    api.raw(request.body(empty_body()).unwrap()).await
}

#[tokio::test]
async fn a_named_person_has_their_role_in_the_organization_of_the_requested_platform() {
    let world = World::new();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    let bob = world.sign_up("bob@example.org").await;
    let made = world.set_up_organization(&ada, "engines").await.expect(201);
    let _ = world.join([&ada, &bob], made.text("orgId"), "member").await;
    let engines = made.text("platformId");
    let looms = world.set_up_organization(&eve, "looms").await.expect(201);
    let looms = looms.text("platformId");
    let bare = world.create_platform("bare").await;
    for (user, method, platform, expected) in [
        (&*ada.user_id, "GET", engines, 200),
        (&bob.user_id, "GET", engines, 200),
        (&eve.user_id, "GET", engines, 404),
        ("nobody", "GET", engines, 401),
        (&ada.user_id, "GET", looms, 404),
        (&ada.user_id, "GET", &bare, 404),
        (&bob.user_id, "DELETE", engines, 403),
        (&eve.user_id, "DELETE", looms, 200),
    ] {
        let answer = call_for(&world.registry, user, method, &platform_path(platform, "")).await;
        assert_eq!(answer.status, expected, "{user} {method} {}", answer.json);
    }
    world.set_platform_status(engines, "suspended").await;
    let path = platform_path(engines, "");
    let suspended = call_for(&world.registry, &ada.user_id, "GET", &path).await;
    suspended.expect_error(451, "PLATFORM_SUSPENDED");
    let listed = call_for(&world.iam, &ada.user_id, "GET", SESSIONS).await;
    assert_eq!(listed.expect(200).each("id"), [&*ada.session_id]);
}

async fn call_with(api: &Api, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", format!("Bearer {SERVICE_KEY}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    api.raw(request.body(empty_body()).unwrap()).await
}

/// Headers that claim every permission.
const EVERY_RIGHT: [(&str, &str); 3] = [
    ("x-core-role", "owner"),
    ("x-core-operator", "true"),
    ("x-core-permissions", "*:*"),
];

#[tokio::test]
async fn permission_headers_do_not_extend_the_rights_of_a_named_person() {
    let world = World::new();
    let [ada, bob] = [
        world.sign_up(ADA).await,
        world.sign_up("bob@example.org").await,
    ];
    let made = world.set_up_organization(&ada, "engines").await.expect(201);
    let (org, platform) = (made.text("orgId"), made.text("platformId"));
    let _ = world.join([&ada, &bob], org, "member").await;
    let other = world.create_platform("looms").await;
    let delete = async |user: &str, more: &[(&str, &str)], platform: &str| {
        let headers = [&EVERY_RIGHT, more, &[("x-core-user-id", user)]].concat();
        call_with(
            &world.registry,
            "DELETE",
            &platform_path(platform, ""),
            &headers,
        )
        .await
    };
    let ways = [
        vec![],
        vec![("x-core-organization-id", org)],
        vec![("x-core-platform-id", platform)],
    ];
    for more in &ways {
        let refused = delete(&bob.user_id, more, platform).await;
        refused.expect_error(403, "FORBIDDEN");
        let foreign = delete(&bob.user_id, more, &other).await;
        foreign.expect_error(404, "NOT_FOUND");
    }
    // The role mappings and denials of the organization apply.
    let read = json!({ "orgId": org, "role": "member", "permissions": ["audit:read"] });
    let mapped = world.iam.post(&operator(), "/api/core/roles", read).await;
    let _ = mapped.expect(200);
    let denial = json!({
        "orgId": org, "userId": ada.user_id, "permission": "platform:manage",
        "granted": false, "grantedBy": "olga",
    });
    let denied = world
        .iam
        .post(&operator(), "/api/core/grants", denial)
        .await;
    let _ = denied.expect(201);
    for more in &ways {
        let headers = [
            &EVERY_RIGHT,
            &more[..],
            &[("x-core-user-id", &*bob.user_id)],
        ]
        .concat();
        let shown = call_with(
            &world.registry,
            "GET",
            &platform_path(platform, ""),
            &headers,
        )
        .await;
        shown.expect_error(403, "FORBIDDEN");
        let refused = delete(&ada.user_id, more, platform).await;
        refused.expect_error(403, "FORBIDDEN");
    }
}

#[tokio::test]
async fn a_named_api_key_has_its_scopes_until_it_is_deleted() {
    let world = World::new();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    let made = world.set_up_organization(&ada, "engines").await.expect(201);
    let platform = made.text("platformId");
    let acting = world.session_caller(&ada).await;
    let made = world.create_api_key(&acting, json!({ "scopes": ["entity:read"] }));
    let key = made.await.expect(200).id();
    let call = async |method: &str, path: &str, headers: &[(&str, &str)]| {
        let headers = [&EVERY_RIGHT, headers].concat();
        let answer = call_with(&world.registry, method, path, &headers).await;
        answer.status.as_u16()
    };
    let (entities, own) = (
        platform_path(platform, "/entities"),
        platform_path(platform, ""),
    );
    let named = ("x-core-api-key-id", &*key);
    let of = |user| [named, ("x-core-user-id", user)];
    assert_eq!(call("GET", &entities, &[named]).await, 200);
    assert_eq!(call("GET", &entities, &of(&*ada.user_id)).await, 200);
    assert_eq!(call("GET", &own, &[named]).await, 403);
    assert_eq!(call("DELETE", &own, &[named]).await, 403);
    for unclear in [
        &[("x-core-api-key-id", "k-1")][..],
        &[("x-core-api-key-id", "no id!")],
        &[named, named],
        &of(&*eve.user_id),
    ] {
        assert_eq!(call("GET", &entities, unclear).await, 401, "{unclear:?}");
    }
    let path = "/api/auth/api-key/delete";
    let revoked = world.iam.post(&acting, path, json!({ "keyId": key })).await;
    let _ = revoked.expect(200);
    assert_eq!(call("GET", &entities, &[named]).await, 401);
}

#[tokio::test]
async fn a_named_personal_key_acts_in_no_organization_despite_the_headers() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let made = world.set_up_organization(&ada, "engines").await.expect(201);
    let (platform, organization) = (made.text("platformId"), made.text("orgId"));
    let acting = world.session_caller(&ada).await;
    let made = world.create_api_key(&acting, json!({ "organizationId": null }));
    let key = made.await.expect(200).id();
    let headers = [
        &EVERY_RIGHT[..],
        &[
            ("x-core-api-key-id", &*key),
            ("x-core-user-id", &*ada.user_id),
            ("x-core-platform-id", platform),
            ("x-core-organization-id", organization),
        ],
    ]
    .concat();
    for path in [
        platform_path(platform, ""),
        platform_path(platform, "/entities"),
    ] {
        let refused = call_with(&world.registry, "GET", &path, &headers).await;
        refused.expect_error(404, "NOT_FOUND");
    }
    let profile = call_with(&world.iam, "GET", "/api/auth/profile", &headers).await;
    assert_eq!(profile.expect(200).json["email"], ADA);
}
