//! Removing a platform for good.

use core_domain::kernel::PlatformId;
use core_domain::port::Mode;
use core_domain::registry::{EntityQuery, ResourceQuery};
use serde_json::{Value, json};

use super::world::{How, Says, World, at, owner, resource_body};
use crate::kernel::testing::operator;

#[tokio::test]
async fn a_hard_deletion_answers_deleted_until_everything_is_removed_and_then_not_found() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let resource = world.resource(&platform, &entity, "engines-db").await;
    world
        .provider
        .objects
        .lock()
        .unwrap()
        .insert("engines-db".to_owned(), platform.clone());
    world
        .provider
        .objects
        .lock()
        .unwrap()
        .insert("foreign".to_owned(), "other".to_owned());
    let gone = world
        .post(
            &operator(),
            &at(&platform, "/delete"),
            json!({ "reason": "law" }),
        )
        .await
        .expect(200);
    assert_eq!(gone.json["status"], "deleted");
    assert!(!gone.json["deletedAt"].is_null());
    for step in ["delete", "restore", "suspend", "cancel", "soft-delete"] {
        world
            .moved(&platform, step)
            .await
            .refused(409, "INVALID_STATE");
    }
    for status in ["active", "suspended"] {
        let body = json!({ "status": status });
        world
            .patch(&operator(), &at(&platform, ""), body)
            .await
            .refused(409, "INVALID_STATE");
    }
    assert_eq!(world.status(&platform).await, "deleted");
    world.run_jobs().await;
    for rest in ["", "/lifecycle", "/entities", "/resources", "/audit"] {
        world
            .get(&operator(), &at(&platform, rest))
            .await
            .refused(404, "NOT_FOUND");
        world
            .get(&owner(&platform), &at(&platform, rest))
            .await
            .refused(404, "NOT_FOUND");
    }
    world
        .get(
            &operator(),
            &at(&platform, &format!("/resources/{resource}")),
        )
        .await
        .refused(404, "NOT_FOUND");
    world
        .get(&operator(), "/api/v1/lookup?cfName=engines-db")
        .await
        .refused(404, "NOT_FOUND");
    assert_eq!(world.provider.objects.lock().unwrap().len(), 1);
    let kept = world
        .get(&operator(), &format!("/api/v1/audit?platformId={platform}"))
        .await
        .expect(200);
    let actions = kept.each("action");
    for action in [
        "platform.purged",
        "platform.hard_deleted",
        "platform.created",
        "resource.deleted",
    ] {
        assert!(actions.contains(&action), "{action} in {actions:?}");
    }
    // The slug is free again.
    world.platform("engines").await;
}

#[tokio::test]
async fn a_hard_deletion_that_fails_can_be_asked_for_again() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    world.resource(&platform, &entity, "engines-db").await;
    *world.provider.refuses.lock().unwrap() = true;
    world.moved(&platform, "delete").await.expect(200);
    world.run_jobs().await;
    assert_eq!(world.status(&platform).await, "deleted");
    *world.provider.refuses.lock().unwrap() = false;
    let jobs = crate::provisioning::service(world.app.clone()).unwrap();
    let list = format!("/jobs?platformId={platform}");
    let caller = operator();
    let found = crate::kernel::testing::call(&jobs, "GET", &list, &caller, Value::Null)
        .await
        .expect(200);
    assert_eq!(found.json["data"][0]["status"], "FAILED");
    let job = found.json["data"][0]["jobId"].as_str().unwrap();
    world.operate(job, How::Retry).await;
    world.run_jobs().await;
    world
        .get(&operator(), &at(&platform, ""))
        .await
        .refused(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_suspended_platform_is_removed_all_the_same_and_leaves_no_flag_behind() {
    let world = World::new();
    let platform = world.platform("engines").await;
    world.moved(&platform, "suspend").await.expect(200);
    world.moved(&platform, "delete").await.expect(200);
    world.run_jobs().await;
    world
        .get(&operator(), &at(&platform, ""))
        .await
        .refused(404, "NOT_FOUND");
    assert_eq!(world.suspended(&platform).await, (false, false));
}

#[tokio::test]
async fn what_is_written_while_a_platform_is_hard_deleted_is_refused_or_removed_with_it() {
    for _ in 0..20 {
        let world = World::new();
        let platform = world.platform("engines").await;
        let entity = world.tenant(&platform, "tenant").await;
        let caller = operator();
        let entity_body = json!({ "name": "E", "slug": "e", "type": "tenant" });
        let resources = at(&platform, &format!("/entities/{entity}/resources"));
        let (entities, end) = (at(&platform, "/entities"), at(&platform, "/delete"));
        let (gone, made, entered) = tokio::join!(
            world.post(&caller, &end, Value::Null),
            world.post(&caller, &entities, entity_body),
            world.post(&caller, &resources, resource_body("x")),
        );
        gone.expect(200);
        for answer in [made, entered] {
            assert!(
                [201, 409].contains(&answer.status.as_u16()),
                "{}",
                answer.json
            );
        }
        world.run_jobs().await;
        let mut uow = world.app.store.begin(Mode::Read).await.unwrap();
        let platform_id = PlatformId::parse(&platform).unwrap();
        let resources = ResourceQuery::OfPlatform {
            platform_id: platform_id.clone(),
            deleted: true,
        };
        assert_eq!(uow.resources().count(&resources).await.unwrap(), 0);
        let entities = EntityQuery::OfPlatform {
            platform_id,
            entity_type: None,
            deleted: true,
        };
        assert_eq!(uow.entities().count(&entities).await.unwrap(), 0);
    }
}
