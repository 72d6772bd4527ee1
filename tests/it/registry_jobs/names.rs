//! The names that jobs derive. A record that was created by hand under such a name never blocks a job, and no object of
//! another owner is touched.

use core_domain::kernel::{EntityId, Environment, PlatformId, ResourceId};
use core_domain::provisioning::JobStatus;
use core_domain::registry::{
    FeatureActivation, FeatureActivationQuery, Platform, ProviderName, Resource, ResourceStatus,
    ResourceType, resource_name,
};
use core_domain::testing::named_uuid;
use core_domain::use_case::registry::resource;

use super::others::{by_hand, make};
use super::scenarios::{Request, Scenario, tenant};
use crate::world::{Platforms, as_operator, on_every_store};

on_every_store! {
    Platforms:
        records_created_by_hand_under_derived_names_never_block_a_job,
        deleting_a_feature_keeps_the_stores_of_its_platform,
}

/// Inserts a record by hand, as it was possible before names were reserved.
async fn enter_unchecked(
    world: &Platforms,
    platform: &PlatformId,
    entity: EntityId,
    named: (ResourceType, &str),
) -> ResourceId {
    let row = world.find::<Platform>(platform).await.unwrap();
    let id = ResourceId::parse(&named_uuid(&format!("by-hand-{}", named.0))).unwrap();
    let command = by_hand(named, Environment::Stg);
    let resource = Resource::create(id.clone(), &row, entity, command, row.created_at);
    world.insert(resource).await;
    id
}

async fn records_created_by_hand_under_derived_names_never_block_a_job(world: Platforms) {
    let platform = &world.complete().await;
    let other = &world
        .set_up_by("bob@example.org", "looms")
        .await
        .platform_id;
    world.until_idle().await;
    let slug = world.find::<Platform>(platform).await.unwrap().slug;
    let name = |of| resource_name(platform, &slug, Environment::Dev, of);
    // One record of another platform, and one of the platform itself with a wrong environment.
    let theirs = tenant(&world, other).await;
    let stolen = (ResourceType::D1, &*name(ResourceType::D1));
    let stolen = enter_unchecked(&world, other, theirs, stolen).await;
    let own = tenant(&world, platform).await;
    let misplaced = (ResourceType::Kv, &*name(ResourceType::Kv));
    let misplaced = enter_unchecked(&world, platform, own, misplaced).await;
    let objects_of_other = world.objects(other).await;
    let entries_of_other = world.entries(other, false).await.len();
    let job = world.provision(platform, Environment::Dev).await;
    world.until_idle().await;
    let ended = world.job(&job).await;
    assert_eq!(ended.status, JobStatus::Completed, "{:?}", ended.error);
    let stolen = world.find::<Resource>(&stolen).await.unwrap();
    assert_eq!(stolen.status, ResourceStatus::Deleted);
    let misplaced = world.find::<Resource>(&misplaced).await.unwrap();
    let seen = (misplaced.status, misplaced.environment);
    assert_eq!(seen, (ResourceStatus::Active, Environment::Dev));
    let entries = world.entries(platform, false).await.into_iter();
    assert_eq!(
        entries
            .filter(|e| e.environment == Environment::Dev)
            .count(),
        6
    );
    assert_eq!(world.objects(other).await, objects_of_other);
    assert_eq!(
        world.entries(other, false).await.len(),
        entries_of_other - 1
    );
}

/// A feature has the same name as a store of the platform. Only the data of the feature is deleted.
async fn deleting_a_feature_keeps_the_stores_of_its_platform(world: Platforms) {
    let scenario = Scenario {
        before: &[Request::Provision, Request::FeatureNamed("db")],
        request: Request::NoFeatureNamed("db"),
        undoes: false,
    };
    let platform = &scenario.create_platform(&world).await;
    let entity = &tenant(&world, platform).await;
    make(&world, ResourceType::D1, "own-data", platform.as_str()).await;
    let mut own = by_hand((ResourceType::D1, "own-data"), Environment::Prod);
    own.service_name = ProviderName::parse("db").unwrap();
    let own = &own;
    let entered = as_operator!(world, platform, |cx, scope, uow| resource::create(
        cx,
        scope,
        uow,
        entity,
        own.clone()
    ));
    let features = FeatureActivationQuery::OfPlatform {
        environment: None,
        inactive: true,
    };
    let mut features: Vec<FeatureActivation> = world.list(features).await;
    features.retain(|feature| feature.platform_id == *platform);
    assert_eq!(
        entered.feature_activation_id.as_ref(),
        Some(&features[0].id)
    );
    let before = world.objects(platform).await;
    let job = scenario.ask(&world, platform).await;
    world.until_idle().await;
    assert_eq!(world.status(&job).await, JobStatus::Completed);
    let left = world.objects(platform).await;
    let removed: Vec<&String> = before.difference(&left).collect();
    assert_eq!(removed.len(), 2, "the worker and its own data: {removed:?}");
    assert!(
        left.iter().any(|name| name.ends_with("-prod-db")),
        "{left:?}"
    );
    assert!(!left.contains("own-data"));
}

/// An object without a record belongs to the platform if the provider names it as the owner. Removing an environment
/// removes only objects of that environment.
#[tokio::test]
async fn a_removal_also_removes_objects_that_only_the_provider_knows() {
    for for_good in [false, true] {
        let world = Platforms::memory().await;
        let platform = &world.complete().await;
        let slug = world.find::<Platform>(platform).await.unwrap().slug;
        let of_dev = resource_name(platform, &slug, Environment::Dev, ResourceType::R2);
        for name in ["unknown", "forgotten-prod", "forgotten-stg", &of_dev] {
            make(&world, ResourceType::R2, name, platform.as_str()).await;
        }
        make(&world, ResourceType::R2, "of-others", "somebody-else").await;
        let entity = &tenant(&world, platform).await;
        for (name, environment) in [
            ("forgotten-prod", Environment::Prod),
            ("forgotten-stg", Environment::Stg),
        ] {
            let new = &by_hand((ResourceType::R2, name), environment);
            let entered = as_operator!(world, platform, |cx, scope, uow| resource::create(
                cx,
                scope,
                uow,
                entity,
                new.clone()
            ));
            let id = &entered.id;
            as_operator!(world, platform, |cx, scope, uow| resource::delete(
                cx, scope, uow, id
            ));
        }
        world.tick(1);
        // There are more objects than one attempt removes.
        let more = if for_good { 230 } else { 0 };
        for number in 0..more {
            let name = format!("more-{number:03}");
            make(&world, ResourceType::Kv, &name, platform.as_str()).await;
        }
        if for_good {
            world.hard_delete(platform).await;
        } else {
            world.deprovision(platform, Environment::Prod).await;
        }
        world.until_idle().await;
        let left: Vec<String> = world.objects(platform).await.into_iter().collect();
        if for_good {
            world
                .assert_nothing_left(platform, "removed for good")
                .await;
        } else {
            assert_eq!(left, [&*of_dev, "forgotten-stg", "unknown"]);
        }
        let all = world.provider.inventory().await.unwrap();
        assert!(all.iter().any(|(object, _)| object.name == "of-others"));
    }
}
