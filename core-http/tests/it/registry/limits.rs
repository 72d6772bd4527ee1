//! Limits on the records and on the queued jobs of a platform.

use core_domain::kernel::Limits;
use serde_json::{Value, json};

use crate::world::{
    PLATFORMS, TARGET, World, admin, assert_limit, assert_room_at_once, on_every_store, operator,
    owner, platform_path, resource_body, webhooks_of,
};

/// The number of records that can still be created, the path, and the body for the record with a number.
type Creation = (usize, String, Box<dyn Fn(usize) -> Value>);

async fn concurrent_requests_cannot_exceed_any_limit_of_a_platform(world: World) {
    let world = world.with_limits(Limits {
        jobs_per_platform: 1_000,
        ..Limits::uniform(4)
    });
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let resource = world.resource(&platform, &entity, "engines-api").await;
    let stack = world.workspace_stack(&platform, &entity, "web").await;
    let dns = world
        .dns_record(&platform, &stack, &resource, "one.example.net")
        .await;
    let creations: [Creation; 8] = [
        (3, platform_path(&platform, "/entities"), {
            Box::new(|n| json!({ "name": "T", "slug": format!("t{n}"), "type": "tenant" }))
        }),
        (
            3,
            platform_path(&platform, &format!("/entities/{entity}/resources")),
            { Box::new(|n| resource_body(&format!("engines-db-{n}"))) },
        ),
        (3, platform_path(&platform, "/stacks"), {
            let entity = entity.clone();
            Box::new(move |n| json!({ "tenantId": entity, "name": format!("w{n}") }))
        }),
        (
            3,
            platform_path(&platform, &format!("/stacks/{stack}/dns")),
            {
                Box::new(move |n| {
                    json!({
                        "hostname": format!("n{n}.example.net"), "targetType": "worker",
                        "resourceId": resource, "environment": "prod",
                    })
                })
            },
        ),
        (4, platform_path(&platform, "/domains"), {
            Box::new(move |n| {
                let hostname = format!("d{n}.example.org");
                json!({ "dnsRecordId": dns, "hostname": hostname, "targetDns": TARGET })
            })
        }),
        (4, webhooks_of(&platform), {
            Box::new(
                |n| json!({ "url": format!("https://h{n}.example.org/"), "eventTypes": ["*"] }),
            )
        }),
        (
            4,
            platform_path(&platform, &format!("/entities/{entity}/features/activate")),
            {
                Box::new(|n| {
                    let feature = format!("f{n}");
                    json!({ "featureId": feature, "version": "1", "environment": "prod" })
                })
            },
        ),
        (4, PLATFORMS.to_owned(), {
            Box::new(|n| json!({ "name": "P", "slug": format!("p{n}") }))
        }),
    ];
    for (room, path, body) in &creations {
        let create = |number| {
            let (api, caller) = (world.registry.clone(), owner(&platform));
            let (path, body) = (path.clone(), body(number));
            async move { api.post(&caller, &path, body).await }
        };
        assert_room_at_once((*room, 4), path, create).await;
    }
}

async fn concurrent_requests_cannot_exceed_the_limit_of_queued_jobs_per_platform(world: World) {
    let world = world.with_limits(Limits {
        jobs_per_platform: 3,
        ..Limits::default()
    });
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let path = platform_path(&platform, &format!("/entities/{entity}/features/activate"));
    let activate = |number| {
        let (api, caller) = (world.registry.clone(), admin(&platform));
        let (path, feature) = (path.clone(), format!("f{number}"));
        let body = json!({ "featureId": feature, "version": "1", "environment": "prod" });
        async move { api.post(&caller, &path, body).await }
    };
    assert_room_at_once((3, 3), "jobs", activate).await;
    let body = json!({ "featureId": "by-operator", "version": "1", "environment": "prod" });
    let by_operator = world.registry.post(&operator(), &path, body).await;
    let _ = by_operator.expect(202);
    world.run_jobs().await;
    let _ = activate(9).await.expect(202);
}

on_every_store! {
    concurrent_requests_cannot_exceed_any_limit_of_a_platform,
    concurrent_requests_cannot_exceed_the_limit_of_queued_jobs_per_platform,
}

#[tokio::test]
async fn deleted_records_do_not_count_towards_a_limit() {
    let world = World::new().with_limits(Limits {
        entities_per_platform: 1,
        ..Limits::default()
    });
    let platform = world.create_platform("engines").await;
    let (path, caller) = (platform_path(&platform, "/entities"), owner(&platform));
    let body = |slug: &str| json!({ "name": "T", "slug": slug, "type": "tenant" });
    let first = world.registry.post(&caller, &path, body("first")).await;
    let first = first.expect(201).id();
    let second = world.registry.post(&caller, &path, body("second")).await;
    assert_limit(&second, 1, "entities");
    world.delete_record(&format!("{path}/{first}")).await;
    let second = world.registry.post(&caller, &path, body("second")).await;
    let _ = second.expect(201);
}

#[tokio::test]
async fn a_resource_has_no_more_secrets_than_the_limit() {
    let world = World::new().with_limits(Limits {
        secrets_per_resource: 1,
        ..Limits::default()
    });
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let resource = world.resource(&platform, &entity, "engines-api").await;
    let set = async |name: &str| {
        let path = platform_path(&platform, &format!("/resources/{resource}/secrets/{name}"));
        let body = json!({ "status": "set" });
        world.registry.post(&owner(&platform), &path, body).await
    };
    let _ = set("ONE").await.expect(201);
    assert_limit(&set("TWO").await, 1, "secrets");
    let _ = set("ONE").await.expect(200);
}

#[tokio::test]
async fn a_platform_has_no_more_open_deployments_than_the_limit() {
    let world = World::new().with_limits(Limits {
        open_deployments_per_platform: 1,
        ..Limits::default()
    });
    let platform = world.create_platform("engines").await;
    let deploy = async |branch: &str| {
        let (path, headers) = (
            platform_path(&platform, "/deploy"),
            [("x-core-deploy-branch", branch)],
        );
        world.deploy(&path, &owner(&platform), &headers).await
    };
    let _ = deploy("main").await.expect(202);
    assert_limit(&deploy("next").await, 1, "deployments");
    world.run_jobs().await;
    let _ = deploy("next").await.expect(202);
}
