//! A holder of the service key calls for a person, and says no more than who it is.

use core_http::kernel::empty_body;
use core_http::kernel::testing::SERVICE_KEY;
use http::Request;

use super::{ADA, EVE, SESSIONS};
use crate::world::{Answer, Api, World, at};

async fn call_for(api: &Api, user: &str, method: &str, path: &str) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", format!("Bearer {SERVICE_KEY}"))
        .header("x-core-user-id", user);
    api.raw(request.body(empty_body()).unwrap()).await
}

#[tokio::test]
async fn the_persons_role_is_that_in_the_organization_of_the_platform_in_the_path() {
    let world = World::new();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    let bob = world.sign_up("bob@example.org").await;
    let made = world.set_up(&ada, "engines").await.expect(201);
    let _ = world.join([&ada, &bob], made.text("orgId"), "member").await;
    let engines = made.text("platformId");
    let looms = world.set_up(&eve, "looms").await.expect(201);
    let looms = looms.text("platformId");
    let bare = world.platform("bare").await;
    for (user, method, platform, expected) in [
        (&*ada.user_id, "GET", engines, 200),
        (&bob.user_id, "GET", engines, 200),
        (&eve.user_id, "GET", engines, 404),
        ("nobody", "GET", engines, 404),
        (&ada.user_id, "GET", looms, 404),
        (&ada.user_id, "GET", &bare, 404),
        (&bob.user_id, "DELETE", engines, 403),
        (&eve.user_id, "DELETE", looms, 200),
    ] {
        let answer = call_for(&world.registry, user, method, &at(platform, "")).await;
        assert_eq!(answer.status, expected, "{user} {method} {}", answer.json);
    }
    world.flag(engines, "suspended").await;
    let path = at(engines, "");
    let suspended = call_for(&world.registry, &ada.user_id, "GET", &path).await;
    suspended.refused(451, "PLATFORM_SUSPENDED");
    let listed = call_for(&world.iam, &ada.user_id, "GET", SESSIONS).await;
    assert_eq!(listed.expect(200).each("id"), [&*ada.session_id]);
}

#[tokio::test]
async fn a_program_that_a_gateway_names_has_the_scopes_that_are_said_and_is_never_a_service() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let path = at(&platform, "");
    let named = [
        ("x-core-api-key-id", "k-1"),
        ("x-core-role", "owner"),
        ("x-core-operator", "true"),
        ("x-core-platform-id", platform.as_str()),
        ("x-core-organization-id", "o-1"),
        ("x-core-permissions", "entity:read"),
    ];
    let twice = [named[0], ("x-core-api-key-id", "k-2"), named[3]];
    for (method, path, headers, expected) in [
        ("GET", at(&platform, "/entities"), &named[..], 200),
        ("GET", path.clone(), &named, 403),
        ("DELETE", path.clone(), &named, 403),
        ("GET", path.clone(), &named[..1], 401),
        ("GET", path.clone(), &[("x-core-api-key-id", "no id!")], 401),
        ("GET", path.clone(), &twice, 401),
    ] {
        let mut request = Request::builder()
            .method(method)
            .uri(&path)
            .header("authorization", format!("Bearer {SERVICE_KEY}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = world
            .registry
            .raw(request.body(empty_body()).unwrap())
            .await;
        assert_eq!(answer.status, expected, "{headers:?} {}", answer.json);
    }
}
