//! The main path and concurrent requests, with the same results on every store.

use core_domain::access::RecordKey;
use core_domain::kernel::{Caller, PlatformId};
use core_domain::port::{Mode, Within};
use core_domain::registry::{
    ConfigKey, ConfigVersionQuery, DeploymentQuery, EntityFilter, EntityQuery, LifecycleQuery,
    PlatformConfigQuery, ResourceQuery, WorkspaceStackFilter, WorkspaceStackQuery,
};
use serde_json::{Value, json};

use crate::world::{
    PLATFORMS, World, on_every_store, operator, owner, plain_member, platform_path, resource_body,
    send_concurrently,
};

on_every_store! {
    a_platform_works_from_its_onboarding_to_its_removal,
    of_concurrent_conflicting_requests_one_succeeds,
    a_record_added_during_a_deletion_is_refused_or_deleted_with_its_parent,
}

async fn a_platform_works_from_its_onboarding_to_its_removal(world: World) {
    let person = world.sign_up("ada@example.org").await.caller();
    let start = json!({ "platformName": "Engines", "slug": "engines" });
    let path = "/api/v1/onboarding/start";
    let started = world.registry.post(&person, path, start).await.expect(202);
    world.finish_jobs().await;
    let path = format!("/api/v1/onboarding/status/{}", started.text("onboardingId"));
    let view = world.registry.get(&person, &path).await.expect(200);
    assert_eq!(view.text("status"), "COMPLETED");
    let platform = view.text("platformId");
    let caller = owner(platform);

    tree_and_resources(&world, platform, &caller).await;

    let suspend = async |caller: &Caller| {
        let key = [("idempotency-key", "once")];
        let (path, why) = (
            platform_path(platform, "/suspend"),
            json!({ "reason": "late" }),
        );
        world.registry.send(caller, "POST", &path, &key, why).await
    };
    let suspended = suspend(&caller).await.expect(200);
    assert_eq!(suspended.text("status"), "suspended");
    world.tick(1);
    // The platform's callers are refused before their stored responses are looked up.
    suspend(&caller)
        .await
        .expect_error(451, "PLATFORM_SUSPENDED");
    world.tick(1);
    for step in ["restore", "cancel"] {
        let _ = world
            .change_lifecycle(platform, step, &caller)
            .await
            .expect(200);
    }
    let listed = async |rest: &str, field: &str| -> Vec<String> {
        let listed = world
            .registry
            .get(&caller, &platform_path(platform, rest))
            .await;
        let listed = listed.expect(200);
        listed.each(field).into_iter().map(str::to_owned).collect()
    };
    let statuses = listed("/lifecycle", "toStatus").await;
    assert_eq!(statuses, ["cancelled", "active", "suspended", "active"]);
    let actions = listed("/audit?entity=platform&limit=3", "action").await;
    assert_eq!(
        actions,
        [
            "platform.cancelled",
            "platform.restored",
            "platform.suspended"
        ]
    );

    world.begin_session_of(&caller).await;
    let deleted = world.change_lifecycle(platform, "delete", &caller).await;
    assert_eq!(deleted.expect(200).text("status"), "deleted");
    world.run_jobs().await;
    world.assert_missing(&platform_path(platform, "")).await;
    assert!(world.provider.names().is_empty());
    assert_eq!(world.audit("platform.purged").await.len(), 1);
}

async fn tree_and_resources(world: &World, platform: &str, caller: &Caller) {
    let get = async |rest: &str| {
        let found = world
            .registry
            .get(caller, &platform_path(platform, rest))
            .await;
        found.expect(200)
    };
    let tenant = get("/entities").await.each("id")[0].to_owned();
    let child = world.subtenant(platform, &tenant, "child").await;
    let leaf = world.subtenant(platform, &child, "leaf").await;
    let above = get(&format!("/entities/{leaf}/ancestors")).await;
    assert_eq!(above.each("id"), [&tenant, &child]);
    let below = get(&format!("/entities/{tenant}/descendants")).await;
    assert_eq!(below.each("id"), [&child, &leaf]);
    let resource = world.resource(platform, &leaf, "leaf-db").await;
    let one = platform_path(platform, &format!("/resources/{resource}"));
    let body = json!({ "config": { "n": 9_007_199_254_740_993_i64 } });
    let tag = [("if-match", "\"1\"")];
    let changed = world
        .registry
        .send(caller, "PATCH", &one, &tag, body.clone());
    assert_eq!(changed.await.expect(200).json["config"], body["config"]);
    let late = world.registry.send(caller, "PATCH", &one, &tag, body).await;
    late.expect_error(412, "VERSION_CONFLICT");
    let path = "/api/v1/lookup?cfName=leaf-db";
    let found = world.registry.get(&plain_member(platform), path).await;
    assert_eq!(found.expect(200).id(), resource);
    let first = get("/resources?limit=4").await;
    let cursor = first.json["pagination"]["nextCursor"].as_str().unwrap();
    let rest = get(&format!("/resources?limit=4&cursor={cursor}")).await;
    let pages = [first.each("id").len(), rest.each("id").len()];
    assert_eq!((first.total(), pages), (Some(7), [4, 3]));
}

/// Sends the requests concurrently and returns their sorted statuses.
async fn statuses_at_once(
    world: &World,
    caller: &Caller,
    requests: Vec<(&'static str, String, Value)>,
) -> Vec<u16> {
    let requests = requests.into_iter().map(|(method, path, body)| {
        let (api, caller) = (world.registry.clone(), caller.clone());
        let tag = [("if-match", "\"1\"")];
        async move {
            let tag = if method == "PATCH" { &tag[..] } else { &[] };
            api.send(&caller, method, &path, tag, body).await
        }
    });
    let answers = send_concurrently(requests).await.into_iter();
    let mut statuses: Vec<u16> = answers.map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    statuses
}

async fn of_concurrent_conflicting_requests_one_succeeds(world: World) {
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let resource = world.resource(&platform, &entity, "engines-db").await;
    let of = |rest: &str| platform_path(&platform, rest);
    let entities = format!("/entities/{entity}");
    let person = world.sign_up("ada@example.org").await.caller();
    for (caller, path, body, created) in [
        (
            operator(),
            PLATFORMS.to_owned(),
            json!({ "name": "P", "slug": "p" }),
            201,
        ),
        (
            operator(),
            of("/entities"),
            json!({ "name": "E", "slug": "e", "type": "tenant" }),
            201,
        ),
        (
            operator(),
            of(&format!("{entities}/resources")),
            resource_body("x"),
            201,
        ),
        (
            person,
            "/api/v1/onboarding/start".to_owned(),
            json!({ "platformName": "O", "slug": "o" }),
            202,
        ),
    ] {
        let same = vec![("POST", path.clone(), body); 3];
        assert_eq!(
            statuses_at_once(&world, &caller, same).await,
            [created, 409, 409],
            "{path}"
        );
    }
    for (path, field) in [
        (of(""), "name"),
        (of(&entities), "name"),
        (of(&format!("/resources/{resource}")), "cfId"),
    ] {
        let change = |value| ("PATCH", path.clone(), json!({ field: value }));
        let changes = ["a", "b", "c"].map(change).to_vec();
        assert_eq!(
            statuses_at_once(&world, &operator(), changes).await,
            [200, 412, 412],
            "{path}"
        );
    }
    let moves = ["suspend", "cancel", "suspend"];
    let moves = moves.map(|step| ("POST", of(&format!("/{step}")), Value::Null));
    statuses_at_once(&world, &operator(), moves.to_vec()).await;
    let records = world.registry.get(&operator(), &of("/lifecycle")).await;
    // The records match one of the possible orders of the requests.
    let mut told = records.each("toStatus");
    told.sort_unstable();
    let possible = ["active", "cancelled", "suspended"];
    assert!(told == possible || told == possible[..2], "{told:?}");
    assert_eq!(world.status(&platform).await, "cancelled");
}

/// Returns the number of rows of a platform in each of seven tables, including deleted ones.
async fn rows(world: &World, platform: &str) -> [u64; 7] {
    let id = PlatformId::parse(platform).unwrap();
    let within = Within::Platform(&id);
    let mut uow = world.app.store.begin(Mode::Read).await.unwrap();
    let repositories = uow.repositories(RecordKey::for_tests());
    let all = EntityQuery::Listed(EntityFilter {
        entity_type: None,
        include_deleted: true,
    });
    let entities = repositories.entities().count(within, &all).await;
    let all = ResourceQuery::All { deleted: true };
    let resources = repositories.resources().count(within, &all).await;
    let all = DeploymentQuery::All { in_flight: false };
    let deployments = repositories.deployments().count(within, &all).await;
    let records = repositories.lifecycle_records();
    let records = records.count(within, &LifecycleQuery::All).await;
    let all = WorkspaceStackQuery::Listed(WorkspaceStackFilter::default());
    let stacks = repositories.workspace_stacks().count(within, &all).await;
    let configs = repositories.platform_configs();
    let configs = configs.count(within, &PlatformConfigQuery::All).await;
    let versions = repositories.config_versions();
    let all = ConfigVersionQuery::Of(ConfigKey::Auth);
    let versions = versions.count(within, &all).await;
    let counts = [
        entities,
        resources,
        deployments,
        records,
        stacks,
        configs,
        versions,
    ];
    counts.map(Result::unwrap)
}

async fn a_record_added_during_a_deletion_is_refused_or_deleted_with_its_parent(world: World) {
    for round in 0..5 {
        let platform = world.create_platform(&format!("engines-{round}")).await;
        let of = |rest: &str| platform_path(&platform, rest);
        let parent = world.tenant(&platform, "parent").await;
        let body = json!({ "name": "E", "slug": "e", "type": "subtenant", "parentId": parent });
        let both = vec![
            ("POST", of("/entities"), body),
            ("DELETE", of(&format!("/entities/{parent}")), Value::Null),
        ];
        let outcome = statuses_at_once(&world, &operator(), both).await;
        assert!(
            outcome == [201, 409] || outcome == [200, 404],
            "{outcome:?}"
        );

        let entity = world.tenant(&platform, "tenant").await;
        world
            .resource(&platform, &entity, &format!("y-{round}"))
            .await;
        world.deployment(&platform, &operator()).await;
        world.workspace_stack(&platform, &entity, "shop").await;
        let set = world.set_config(&platform, "auth", Value::Null).await;
        let _ = set.expect(201);
        let tenant = json!({ "name": "E", "slug": "e", "type": "tenant" });
        let resources = format!("/entities/{entity}/resources");
        let all = vec![
            ("POST", of("/delete"), Value::Null),
            ("POST", of("/entities"), tenant),
            ("POST", of(&resources), resource_body(&format!("x-{round}"))),
        ];
        let outcome = statuses_at_once(&world, &operator(), all).await;
        let possible = outcome[0] == 200 && outcome[1..].iter().all(|s| [201, 409].contains(s));
        assert!(possible, "{outcome:?}");
        let left = rows(&world, &platform).await;
        assert!(left.iter().all(|count| *count > 0), "{left:?}");
        world.run_jobs().await;
        assert_eq!(rows(&world, &platform).await, [0; 7]);
    }
}
