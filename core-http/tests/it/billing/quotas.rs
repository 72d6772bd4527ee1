//! Quotas: the numbers of objects that a plan allows, if they are enforced.

use std::sync::Arc;

use core_domain::billing::PlanCatalog;
use core_domain::kernel::Limits;
use core_domain::port::transact;
use core_domain::use_case::billing::plan::store_versions;
use serde_json::{Value, json};

use super::platform_with_card;
use crate::world::{World, admin, on_every_store, operator, platform_path, send_concurrently};

/// Returns a world that enforces quotas, with a platform that has a card and no subscription.
async fn enforcing(world: World) -> (World, String) {
    let plans = PlanCatalog::default();
    let plans = &plans;
    let stored = transact(world.app.store.as_ref(), |uow, _| {
        Box::pin(async move { store_versions(uow, plans).await })
    });
    stored.await.unwrap();
    let (platform, _) = platform_with_card(&world).await;
    let world = world.with_limits(Limits {
        enforce_quotas: true,
        ..Limits::default()
    });
    (world, platform)
}

fn tenant(number: usize) -> Value {
    json!({ "name": "T", "slug": format!("t{number}"), "type": "tenant" })
}

async fn concurrent_creators_never_exceed_a_quota(world: World) {
    let (world, platform) = enforcing(world).await;
    let path = platform_path(&platform, "/entities");
    let requests = (0..16).map(|number| {
        let (registry, path, caller) = (world.registry.clone(), path.clone(), admin(&platform));
        async move { registry.post(&caller, &path, tenant(number)).await }
    });
    let answers = send_concurrently(requests).await;
    let created = answers.iter().filter(|answer| answer.is_success());
    // The tier `free` allows three entities.
    assert_eq!(created.count(), 3);
    for answer in answers.iter().filter(|answer| !answer.is_success()) {
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (403, "QUOTA_EXCEEDED")
        );
        let details = &answer.json["error"]["details"];
        assert_eq!(
            *details,
            json!({ "metric": "entities", "used": 3, "limit": 3 })
        );
    }
}

on_every_store! {
    concurrent_creators_never_exceed_a_quota,
}

#[tokio::test]
async fn the_plan_of_the_subscription_decides() {
    let (world, platform) = enforcing(World::new()).await;
    let path = platform_path(&platform, "/entities");
    let create = async |number| {
        world
            .registry
            .post(&admin(&platform), &path, tenant(number))
            .await
    };
    for number in 0..3 {
        let _ = create(number).await.expect(201);
    }
    create(3).await.expect_error(403, "QUOTA_EXCEEDED");
    let _ = world.subscribe(&platform, "starter").await.expect(201);
    for number in 3..20 {
        let _ = create(number).await.expect(201);
    }
    create(20).await.expect_error(403, "QUOTA_EXCEEDED");
    let _ = world
        .registry
        .post(&operator(), &path, tenant(20))
        .await
        .expect(201);
    let limits = &world.usage_of(&platform, "/usage/current").await["limits"];
    assert_eq!(
        limits[2],
        json!({ "limit": "entities", "used": 21, "max": 20 })
    );
}

#[tokio::test]
async fn stacks_and_domains_have_quotas() {
    let (world, platform) = enforcing(World::new()).await;
    let entity = world.tenant(&platform, "tenant").await;
    let stacks = platform_path(&platform, "/stacks");
    let stack = |name: &str| json!({ "tenantId": entity, "name": name });
    let first = world
        .registry
        .post(&admin(&platform), &stacks, stack("one"))
        .await
        .expect(201);
    let refused = world
        .registry
        .post(&admin(&platform), &stacks, stack("two"))
        .await;
    refused.expect_error(403, "QUOTA_EXCEEDED");
    let resource = world.resource(&platform, &entity, "engines-api").await;
    let dns = world
        .dns_record(&platform, &first.id(), &resource, "one.example.net")
        .await;
    let domain = json!({ "dnsRecordId": dns, "hostname": "www.example.org", "targetDns": crate::world::TARGET });
    let domains = platform_path(&platform, "/domains");
    let refused = world
        .registry
        .post(&admin(&platform), &domains, domain)
        .await;
    refused.expect_error(403, "QUOTA_EXCEEDED");
}

#[tokio::test]
async fn quotas_are_not_enforced_by_default() {
    let world = World::new();
    let (platform, _) = platform_with_card(&world).await;
    assert!(!Arc::clone(&world.app.options.limits).enforce_quotas);
    let path = platform_path(&platform, "/entities");
    for number in 0..4 {
        let created = world
            .registry
            .post(&admin(&platform), &path, tenant(number))
            .await;
        let _ = created.expect(201);
    }
    let limits = &world.usage_of(&platform, "/usage/current").await["limits"];
    assert_eq!(
        limits[2],
        json!({ "limit": "entities", "used": 4, "max": 3 })
    );
}
