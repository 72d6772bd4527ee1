//! Auth workers: the uploaded script, and exactly one worker even if its job is interrupted.

use core_domain::kernel::{Environment, PlatformId};
use core_domain::provisioning::JobStatus;
use core_domain::registry::Resource;
use core_domain::use_case::registry::auth_worker;
use core_local::FaultMoment;

use crate::world::{Platforms, as_operator};

async fn upgrade(world: &Platforms, platform: &PlatformId) {
    as_operator!(world, platform, |cx, scope, uow| auth_worker::upgrade(
        cx, scope, uow
    ));
}

/// Returns the record of the auth worker. Checks that it exists once, besides the platform's own six.
async fn entry(world: &Platforms, platform: &PlatformId, context: &str) -> Resource {
    let objects = world.objects(platform).await;
    let mut entries = world.entries(platform, false).await;
    assert_eq!((objects.len(), entries.len()), (7, 7), "{context}");
    entries.retain(|entry| entry.service_name.as_str() == "auth");
    assert_eq!(entries.len(), 1, "{context}");
    entries.remove(0)
}

#[tokio::test]
async fn an_auth_worker_is_configured_with_its_platform_and_the_url_of_iam() {
    let world = Platforms::memory().await;
    let platform = &world.complete().await;
    upgrade(&world, platform).await;
    world.until_idle().await;
    let entry = entry(&world, platform, "upgraded").await;
    assert_eq!(entry.environment, Environment::Prod);
    let worker = world.provider.worker(entry.cf_name.as_str()).await.unwrap();
    let script = worker.unwrap().script;
    assert!(script.modules[&script.main_module].contains("from \"./config.js\""));
    let settings = &script.modules["config.js"];
    let wanted = [
        format!("platformId = \"{platform}\";"),
        "sessionUrl = \"http://iam.test/api/core/session\";".to_owned(),
    ];
    assert!(
        wanted.iter().all(|line| settings.contains(line)),
        "{settings}"
    );
}

#[tokio::test]
async fn after_crashes_and_lost_replies_there_is_exactly_one_auth_worker() {
    for units in 1.. {
        let world = Platforms::memory().await;
        let platform = &world.complete().await;
        upgrade(&world, platform).await;
        let died = world.dies_after(units).await;
        world.restart().await;
        entry(&world, platform, &format!("{units} units")).await;
        if !died {
            assert!(units > 3, "a run has only {units} units");
            break;
        }
    }
    for moment in [FaultMoment::Before, FaultMoment::Staged, FaultMoment::Done] {
        let world = Platforms::memory().await;
        let platform = &world.complete().await;
        upgrade(&world, platform).await;
        world.leave_unanswered("create", 0, moment);
        world.until_idle().await;
        assert!(world.has_failed(), "{moment:?} was not met");
        let jobs = world.jobs().await;
        assert!(jobs.iter().all(|job| job.status == JobStatus::Completed));
        entry(&world, platform, &format!("{moment:?}")).await;
    }
}
