//! Features with ids that are no longer valid, and the resources that features run as.

use core_domain::access::RecordKey;
use core_domain::port::{Mode, Within};
use core_domain::registry::FeatureId;
use core_http::kernel::testing::Answer;
use serde_json::json;

use crate::world::{World, operator, owner, platform_path, resource_body};

/// Creates a platform with an active feature `search`. Returns the path of the entity and the id of the platform.
async fn with_feature(world: &World) -> (String, String) {
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    world.activate_feature(&platform, &entity, "search").await;
    world.run_jobs().await;
    (
        platform_path(&platform, &format!("/entities/{entity}")),
        platform,
    )
}

async fn ask(world: &World, entity: &str, word: &str, feature: &str) -> Answer {
    let body = json!({ "featureId": feature, "version": "1.0.0", "environment": "prod" });
    let path = format!("{entity}/features/{word}");
    world.registry.post(&operator(), &path, body).await
}

#[tokio::test]
async fn a_feature_with_an_invalid_id_can_be_listed_and_deactivated_but_not_activated() {
    let world = World::new();
    let (entity, _) = with_feature(&world).await;
    let path = format!("{entity}/features");
    let id = world.get_record(&path).await.each("id")[0].to_owned();
    let mut uow = world.app.store.begin(Mode::Write).await.unwrap();
    let repositories = uow.repositories(RecordKey::for_tests());
    let features = repositories.feature_activations();
    let seen = features.get(Within::Installation, &id).await.unwrap();
    let seen = seen.unwrap();
    let mut next = seen.edit();
    next.feature_id = FeatureId::parse("@core/search").unwrap();
    features.replace(&seen, next).await.unwrap();
    uow.commit().await.unwrap();
    let listed = world.get_record(&path).await;
    assert_eq!(listed.each("featureId"), ["@core/search"]);
    let asked = ask(&world, &entity, "deactivate", "@core/search").await;
    let _ = asked.expect(202);
    world.run_jobs().await;
    let listed = world.get_record(&path).await;
    assert_eq!(listed.each("status"), ["inactive"]);
    let again = ask(&world, &entity, "activate", "@core/search").await;
    again.expect_error(400, "VALIDATION_ERROR");
}

#[tokio::test]
async fn the_resource_of_a_feature_cannot_be_deleted_before_the_feature_ends() {
    let world = World::new();
    let (entity, platform) = with_feature(&world).await;
    let resources = format!("{entity}/resources");
    let listed = world.get_record(&resources).await;
    let one = |id: &str| platform_path(&platform, &format!("/resources/{id}"));
    let path = one(listed.each("id")[0]);
    for caller in [operator(), owner(&platform)] {
        let deleted = world.registry.delete(&caller, &path).await;
        let refused = deleted.expect_error(409, "CONFLICT");
        let details = &refused.json["error"]["details"];
        let wanted = json!({ "featureId": "search", "status": "active" });
        assert_eq!(*details, wanted);
        let body = json!({ "status": "deleted" });
        let changed = world.registry.patch(&caller, &path, body).await;
        changed.expect_error(409, "CONFLICT");
    }
    // A worker that does not belong to a feature.
    let mut other = resource_body("other");
    other["resourceType"] = json!("worker");
    let other = world.registry.post(&operator(), &resources, other).await;
    world.delete_record(&one(&other.expect(201).id())).await;
    let asked = ask(&world, &entity, "deactivate", "search").await;
    let _ = asked.expect(202);
    world.run_jobs().await;
    world.assert_missing(&path).await;
}
