//! Every row, asked by everybody: nobody, a stranger, a member, an admin, an owner, the operator.

use core_domain::kernel::Caller;
use serde_json::{Value, json};

use super::world::{PLATFORMS, Says, World, admin, at, loner, owner, plain_member, resource_body};
use crate::kernel::testing::{Answer, operator};

/// From which role on a row is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Least {
    Member,
    Admin,
    Owner,
}
use Least::{Admin, Member, Owner};

struct Asked {
    operation: &'static str,
    least: Least,
    method: &'static str,
    path: String,
    body: Value,
}

/// A request for every row below a platform.
async fn of_platform(world: &World) -> (String, Vec<Asked>) {
    let platform = world.platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let leaf = world.tenant(&platform, "leaf").await;
    let resource = world.resource(&platform, &entity, "engines-db").await;
    let none = Value::Null;
    let ask = |operation, least, method, rest: &str, body: &Value| Asked {
        operation,
        least,
        method,
        path: at(&platform, rest),
        body: body.clone(),
    };
    let own = format!("/entities/{entity}");
    let one = format!("/resources/{resource}");
    let new_entity = json!({ "name": "E", "slug": "e", "type": "tenant" });
    let name = json!({ "name": "New" });
    let asked = vec![
        ask("getPlatform", Member, "GET", "", &none),
        ask("listLifecycle", Member, "GET", "/lifecycle", &none),
        ask("listEntities", Member, "GET", "/entities", &none),
        ask("getEntity", Member, "GET", &own, &none),
        ask(
            "listAncestors",
            Member,
            "GET",
            &format!("{own}/ancestors"),
            &none,
        ),
        ask(
            "listDescendants",
            Member,
            "GET",
            &format!("{own}/descendants"),
            &none,
        ),
        ask("listResources", Member, "GET", "/resources", &none),
        ask(
            "listEntityResources",
            Member,
            "GET",
            &format!("{own}/resources"),
            &none,
        ),
        ask("getResource", Member, "GET", &one, &none),
        ask("listPlatformAudit", Member, "GET", "/audit", &none),
        ask("updatePlatform", Admin, "PATCH", "", &name),
        ask("createEntity", Admin, "POST", "/entities", &new_entity),
        ask("updateEntity", Admin, "PATCH", &own, &name),
        ask(
            "createResource",
            Admin,
            "POST",
            &format!("{own}/resources"),
            &resource_body("x"),
        ),
        ask(
            "updateResource",
            Admin,
            "PATCH",
            &one,
            &json!({ "cfId": "x" }),
        ),
        ask("deleteResource", Admin, "DELETE", &one, &none),
        ask(
            "deleteEntity",
            Admin,
            "DELETE",
            &format!("/entities/{leaf}"),
            &none,
        ),
        ask("suspendPlatform", Owner, "POST", "/suspend", &none),
        ask("restorePlatform", Owner, "POST", "/restore", &none),
        ask("cancelPlatform", Owner, "POST", "/cancel", &none),
        ask("deletePlatform", Owner, "DELETE", "", &none),
        ask("hardDeletePlatform", Owner, "POST", "/delete", &none),
    ];
    (platform, asked)
}

/// The rows that are below no platform; asked one by one further down.
const ELSEWHERE: [&str; 7] = [
    "listPlatforms",
    "createPlatform",
    "lookUpResource",
    "listAudit",
    "startOnboarding",
    "getOnboarding",
    "checkSlug",
];

async fn sent(world: &World, caller: &Caller, asked: &Asked) -> Answer {
    world
        .send(caller, asked.method, &asked.path, &[], asked.body.clone())
        .await
}

fn without_request_id(answer: &Answer) -> Value {
    let mut json = answer.json.clone();
    json["error"]["requestId"] = Value::Null;
    json
}

#[tokio::test]
async fn every_row_of_a_platform_is_open_from_its_role_on_and_hidden_from_strangers() {
    let world = World::new();
    let (platform, asked) = of_platform(&world).await;
    let other = world.platform("looms").await;
    for row in world.service.endpoints() {
        let known = asked.iter().any(|a| a.operation == row.operation());
        assert!(
            known || ELSEWHERE.contains(&row.operation()),
            "{} is not asked",
            row.operation()
        );
    }
    for asked in &asked {
        let name = asked.operation;
        sent(&world, &Caller::Anonymous, asked)
            .await
            .refused(401, "UNAUTHORIZED");
        let missing = Asked {
            path: asked.path.replace(&platform, "nothing"),
            body: asked.body.clone(),
            ..*asked
        };
        for stranger in [owner(&other), plain_member(&other), loner()] {
            let foreign = sent(&world, &stranger, asked)
                .await
                .refused(404, "NOT_FOUND");
            let missing = sent(&world, &stranger, &missing).await;
            assert_eq!(
                without_request_id(&foreign),
                without_request_id(&missing),
                "{name}"
            );
        }
        sent(&world, &operator(), &missing)
            .await
            .refused(404, "NOT_FOUND");
        let callers = [(Member, plain_member(&platform)), (Admin, admin(&platform))];
        for (role, caller) in &callers {
            if *role < asked.least {
                let refused = sent(&world, caller, asked).await;
                assert_eq!(
                    (refused.status.as_u16(), refused.code()),
                    (403, "FORBIDDEN"),
                    "{name} {role:?}"
                );
            }
        }
        // Whoever has just enough of a role does it.
        let least = match asked.least {
            Member => plain_member(&platform),
            Admin => admin(&platform),
            Owner => owner(&platform),
        };
        let answer = sent(&world, &least, asked).await;
        assert!(
            answer.status.is_success(),
            "{name}: {} {}",
            answer.status,
            answer.json
        );
        if asked.method == "GET" {
            sent(&world, &operator(), asked).await.expect(200);
        }
        world.tick(1);
    }
}

#[tokio::test]
async fn everything_below_a_platform_is_found_below_that_platform_alone() {
    let world = World::new();
    let (platform, asked) = of_platform(&world).await;
    let other = world.platform("looms").await;
    let inner = asked.iter().filter(|a| {
        let rest = a.path.strip_prefix(&at(&platform, "/")).unwrap_or_default();
        rest.contains('/')
    });
    let mut count = 0;
    for asked in inner {
        let elsewhere = asked.path.replace(&platform, &other);
        let asked = Asked {
            path: elsewhere,
            body: asked.body.clone(),
            ..*asked
        };
        let answer = sent(&world, &operator(), &asked).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (404, "NOT_FOUND"),
            "{}",
            asked.operation
        );
        count += 1;
    }
    assert_eq!(count, 10);
}

#[tokio::test]
async fn rows_below_no_platform_show_everybody_what_is_theirs() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let other = world.platform("looms").await;
    let entity = world.tenant(&platform, "tenant").await;
    world.resource(&platform, &entity, "engines-db").await;
    let audit = "/api/v1/audit";
    let lookup = "/api/v1/lookup?cfName=engines-db";
    let new = json!({ "name": "P", "slug": "p" });
    let start = json!({ "platformName": "P", "slug": "o" });
    for (method, path, body) in [
        ("GET", PLATFORMS, Value::Null),
        ("POST", PLATFORMS, new.clone()),
        ("GET", lookup, Value::Null),
        ("GET", audit, Value::Null),
        ("POST", "/api/v1/onboarding/start", start),
        ("GET", "/api/v1/onboarding/status/x", Value::Null),
        ("GET", "/api/v1/onboarding/slug/x", Value::Null),
    ] {
        let answer = world
            .send(&Caller::Anonymous, method, path, &[], body)
            .await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (401, "UNAUTHORIZED"),
            "{path}"
        );
    }
    let listed = world
        .get(&plain_member(&platform), PLATFORMS)
        .await
        .expect(200);
    assert_eq!(listed.each("id"), [&platform]);
    assert_eq!(
        world.get(&loner(), PLATFORMS).await.expect(200).json["pagination"]["total"],
        0
    );
    assert_eq!(
        world
            .get(&operator(), PLATFORMS)
            .await
            .expect(200)
            .each("id"),
        [&other, &platform]
    );
    world
        .post(&plain_member(&platform), PLATFORMS, new.clone())
        .await
        .refused(403, "FORBIDDEN");
    world
        .post(&loner(), PLATFORMS, new.clone())
        .await
        .refused(403, "FORBIDDEN");
    world
        .get(&plain_member(&platform), lookup)
        .await
        .expect(200);
    world.get(&operator(), lookup).await.expect(200);
    world
        .get(&owner(&other), lookup)
        .await
        .refused(404, "NOT_FOUND");
    world.get(&loner(), lookup).await.refused(404, "NOT_FOUND");
    let seen = world.get(&plain_member(&platform), audit).await.expect(200);
    assert!(seen.each("platformId").iter().all(|p| *p == platform));
    let foreign = format!("{audit}?platformId={platform}");
    world
        .get(&owner(&other), &foreign)
        .await
        .refused(404, "NOT_FOUND");
    world.get(&loner(), audit).await.refused(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_platform_made_by_a_member_of_an_organization_is_reached_by_all_of_it() {
    let world = World::new();
    let first = world.platform("engines").await;
    let new = json!({ "name": "Second", "slug": "second" });
    let made = world.post(&admin(&first), PLATFORMS, new).await.expect(201);
    assert_eq!(made.json["ownerUserId"], "adam");
    let second = made.id();
    let entity = world.tenant(&second, "tenant").await;
    world.resource(&second, &entity, "second-db").await;
    let member = plain_member(&first);
    world.get(&member, &at(&second, "")).await.expect(200);
    assert_eq!(
        world.get(&member, PLATFORMS).await.each("id"),
        [&second, &first]
    );
    world
        .get(&member, "/api/v1/lookup?cfName=second-db")
        .await
        .expect(200);
    world
        .get(&member, &format!("/api/v1/audit?platformId={second}"))
        .await
        .expect(200);
    world
        .patch(&member, &at(&second, ""), json!({ "name": "X" }))
        .await
        .refused(403, "FORBIDDEN");
    world
        .get(&owner("another"), &at(&second, ""))
        .await
        .refused(404, "NOT_FOUND");
    world
        .get(&owner("another"), "/api/v1/lookup?cfName=second-db")
        .await
        .refused(404, "NOT_FOUND");
}

#[tokio::test]
async fn only_operators_see_deleted_rows_and_delete_whole_trees() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    world.subtenant(&platform, &entity, "child").await;
    let resource = world.resource(&platform, &entity, "engines-db").await;
    let one = at(&platform, &format!("/resources/{resource}"));
    world.delete(&owner(&platform), &one).await.expect(200);
    let all = at(&platform, "/resources?includeDeleted=true");
    assert_eq!(
        world.get(&owner(&platform), &all).await.json["pagination"]["total"],
        0
    );
    assert_eq!(
        world.get(&operator(), &all).await.json["pagination"]["total"],
        1
    );
    let tree = at(&platform, &format!("/entities/{entity}?cascade=true"));
    world
        .delete(&owner(&platform), &tree)
        .await
        .refused(403, "FORBIDDEN");
    world.delete(&operator(), &tree).await.expect(200);
    let all = at(&platform, "/entities?includeDeleted=true");
    assert_eq!(
        world.get(&owner(&platform), &all).await.json["pagination"]["total"],
        0
    );
    assert_eq!(
        world.get(&operator(), &all).await.json["pagination"]["total"],
        2
    );
    world
        .delete(&operator(), &at(&platform, ""))
        .await
        .expect(200);
    assert_eq!(
        world.get(&operator(), PLATFORMS).await.json["pagination"]["total"],
        0
    );
    let all = "/api/v1/platforms?includeDeleted=true";
    assert_eq!(
        world.get(&owner(&platform), all).await.json["pagination"]["total"],
        0
    );
    assert_eq!(
        world.get(&operator(), all).await.json["pagination"]["total"],
        1
    );
}
