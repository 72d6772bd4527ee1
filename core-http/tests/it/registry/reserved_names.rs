//! Resource names that jobs derive are reserved for the platform of the job.

use core_domain::kernel::{EntityId, Environment, PlatformId, Slug};
use core_domain::registry::{
    FeatureId, ResourceType, auth_worker_name, feature_worker_name, resource_name,
};
use serde_json::json;

use crate::world::{World, on_every_store, operator, owner, platform_path, resource_body};

on_every_store! { a_name_that_a_job_derives_is_refused_for_every_other_platform }

async fn a_name_that_a_job_derives_is_refused_for_every_other_platform(world: World) {
    let victim = world.create_platform("victim").await;
    let tenant = world.tenant(&victim, "tenant").await;
    let stranger = world.create_platform("stranger").await;
    let annex = world.tenant(&stranger, "annex").await;
    let (id, slug) = (
        PlatformId::parse(&victim).unwrap(),
        Slug::parse("victim").unwrap(),
    );
    let feature = FeatureId::parse("search").unwrap();
    let entity = EntityId::parse(&tenant).unwrap();
    let of_feature = feature_worker_name(&id, &slug, &entity, &feature, Environment::Prod);
    let mut names = vec![auth_worker_name(&id, &slug, Environment::Stg), of_feature];
    for environment in Environment::ALL {
        names.push(resource_name(&id, &slug, *environment, ResourceType::D1));
    }
    let path = platform_path(&stranger, &format!("/entities/{annex}/resources"));
    for name in &names {
        for caller in [operator(), owner(&stranger)] {
            let body = resource_body(name);
            let refused = world.registry.post(&caller, &path, body).await;
            refused.expect_error(409, "CONFLICT");
        }
    }
    assert_eq!(
        world.count(&platform_path(&stranger, "/resources")).await,
        0
    );
    // The platform itself may record these names, and that of a feature's worker once the entity has the feature.
    let path = platform_path(&victim, &format!("/entities/{tenant}/resources"));
    for name in &names {
        let mut body = resource_body(name);
        body["resourceType"] = json!("worker");
        if *name == names[1] {
            let refused = world.registry.post(&operator(), &path, body.clone()).await;
            refused.expect_error(409, "CONFLICT");
            world.activate_feature(&victim, &tenant, "search").await;
        }
        let entered = world.registry.post(&operator(), &path, body).await;
        let _ = entered.expect(201);
    }
    let job = world.provision(&victim).await;
    world.run_jobs().await;
    assert_eq!(world.job(&job).await["status"], "COMPLETED");
}
