//! Totals of lists that are too long to be counted for every request.

use core_domain::access::RecordKey;
use core_domain::kernel::{EntityId, Name, PlatformId, Slug};
use core_domain::port::transact;
use core_domain::registry::{CreateEntity, Entity, EntityType};
use serde_json::json;

use crate::world::{World, manual_clock, on_every_store, operator, platform_path};

on_every_store! {
    a_long_list_has_the_right_total_after_every_change,
    every_page_of_a_walk_has_the_total_of_its_first_page,
    filtered_audit_lists_have_the_right_total_before_and_after_sealing,
}

/// Adds `count` tenants in one commit, more than any commit of the suite adds.
async fn many_tenants(world: &World, platform: &str, count: usize) {
    use core_domain::kernel::Clock;

    let platform = PlatformId::parse(platform).unwrap();
    let now = manual_clock().now();
    let tenant = |n: usize| {
        let command = CreateEntity {
            name: Name::parse("Tenant").unwrap(),
            slug: Slug::parse(&format!("tenant-{n}")).unwrap(),
            entity_type: EntityType::Tenant,
            parent_id: None,
        };
        let id = EntityId::parse(&format!("many-{n:05}")).unwrap();
        Entity::create(id, &platform, 0, command, now)
    };
    let tenants: Vec<Entity> = (0..count).map(tenant).collect();
    let added = transact(world.app.store.as_ref(), |uow, _| {
        let tenants = tenants.clone();
        Box::pin(async move {
            let entities = uow.repositories(RecordKey::for_tests()).entities();
            Ok(entities.append_many(tenants).await?)
        })
    });
    added.await.unwrap();
}

async fn a_long_list_has_the_right_total_after_every_change(world: World) {
    let platform = world.create_platform("engines").await;
    let other = world.create_platform("looms").await;
    many_tenants(&world, &platform, 1_200).await;
    let path = platform_path(&platform, "/entities");
    let total = async || world.get_record(&path).await.total().unwrap();
    assert_eq!([total().await, total().await], [1_200, 1_200]);
    let made = world.tenant(&platform, "one-more").await;
    assert_eq!(total().await, 1_201);
    // Sealing moves entries and does not change the total.
    world.seal().await;
    assert_eq!(total().await, 1_201);
    let one = platform_path(&platform, &format!("/entities/{made}"));
    let _ = world.registry.delete(&operator(), &one).await.expect(200);
    assert_eq!(total().await, 1_200);
    world.tenant(&platform, "before-the-seal").await;
    world.seal().await;
    assert_eq!(total().await, 1_201);
    world.tenant(&other, "of-another").await;
    assert_eq!(total().await, 1_201);
    // A refused request does not change the total.
    let refused = json!({ "name": "E", "slug": "one-more", "type": "nothing" });
    let answer = world.registry.post(&operator(), &path, refused).await;
    answer.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(total().await, 1_201);
}

async fn every_page_of_a_walk_has_the_total_of_its_first_page(world: World) {
    let platform = world.create_platform("engines").await;
    for slug in ["one", "two", "three"] {
        world.tenant(&platform, slug).await;
    }
    let path = platform_path(&platform, "/entities?limit=1");
    let (mut ids, mut next) = (Vec::new(), path.clone());
    for added in ["four", "five", "six"] {
        let page = world.get_record(&next).await;
        assert_eq!(page.total(), Some(3));
        ids.extend(page.each("id").into_iter().map(str::to_owned));
        next = format!(
            "{path}&cursor={}",
            page.json["pagination"]["nextCursor"]
                .as_str()
                .unwrap_or_default()
        );
        world.tenant(&platform, added).await;
    }
    let found: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(found.len(), 3);
    assert_eq!(world.get_record(&path).await.total(), Some(6));
}

async fn filtered_audit_lists_have_the_right_total_before_and_after_sealing(world: World) {
    let platform = world.create_platform("engines").await;
    let lists = [
        platform_path(&platform, "/audit?action=entity.created"),
        format!("/api/v1/audit?platformId={platform}&eventType=entity"),
        "/api/v1/audit?eventType=entity.created".to_owned(),
    ];
    for made in 1..=6 {
        world.tenant(&platform, &format!("tenant-{made}")).await;
        if made % 3 == 0 {
            world.seal().await;
        }
        for list in &lists {
            let shown = world.get_record(list).await;
            assert_eq!(shown.total(), Some(made), "{list}");
            let ids = shown.each("id");
            assert_eq!(ids.len() as u64, made, "{list}");
        }
    }
}
