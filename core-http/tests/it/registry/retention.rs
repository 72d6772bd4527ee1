//! Old builds, lifecycle records and deployments are removed.

use core_domain::testing::named_uuid;
use std::time::Duration;

use core_domain::access::RecordKey;
use core_domain::kernel::{DeploymentId, PlatformId, Timestamp};
use core_domain::port::{Mode, Within, transact};
use core_domain::registry::{
    BuildQuery, CreateDeployment, Deployment, DeploymentQuery, DeploymentStatus, LifecycleQuery,
};
use core_domain::use_case::registry::retention::{
    remove_old_builds, remove_old_deployments, remove_old_lifecycle_records,
};
use serde_json::{from_value, json};

use crate::world::{World, on_every_store, operator};

const DAY: u64 = 24 * 60 * 60;
const YEAR: Duration = Duration::from_secs(365 * DAY);

impl World {
    async fn count_history(&self) -> (u64, u64) {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let records = uow.repositories(RecordKey::for_tests());
        let all = Within::Installation;
        let builds = records.builds().count(all, &BuildQuery::All).await;
        let lifecycle = records.lifecycle_records();
        let lifecycle = lifecycle.count(all, &LifecycleQuery::All).await;
        (builds.unwrap(), lifecycle.unwrap())
    }

    async fn remove_old_history(&self) -> (u64, u64) {
        let removed = transact(self.app.store.as_ref(), |uow, _| {
            Box::pin(async move {
                let builds = remove_old_builds(uow, YEAR, 1_000).await?;
                let lifecycle = remove_old_lifecycle_records(uow, YEAR, 1_000).await?;
                Ok((builds, lifecycle))
            })
        });
        removed.await.unwrap()
    }

    /// Stores deployments of a platform in the order of their creation, one second apart.
    async fn store_deployments(&self, deployments: &[Deployment]) {
        let stored = transact(self.app.store.as_ref(), |uow, _| {
            Box::pin(async move {
                let records = uow.repositories(RecordKey::for_tests());
                let deployments = deployments.to_vec();
                records.deployments().insert_many(deployments).await?;
                Ok(())
            })
        });
        stored.await.unwrap();
    }

    /// Removes old deployments in slices of this size. Returns the numbers of examined deployments.
    async fn remove_old_deployments(&self, limit: u32) -> Vec<u64> {
        let (mut examined, mut position) = (Vec::new(), None);
        loop {
            let removed = transact(self.app.store.as_ref(), |uow, _| {
                let after = position.clone();
                Box::pin(remove_old_deployments(uow, YEAR, after, limit))
            });
            let removed = removed.await.unwrap();
            if removed.examined == 0 {
                return examined;
            }
            examined.push(removed.examined);
            position = removed.position;
        }
    }

    async fn deployment_ids(&self) -> Vec<String> {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let records = uow.repositories(RecordKey::for_tests());
        let all = DeploymentQuery::All { in_flight: false };
        let found = records.deployments().list(Within::Installation, &all, 100);
        let found = found.await.unwrap();
        found.iter().rev().map(|one| one.id.to_string()).collect()
    }
}

async fn old_builds_and_lifecycle_records_go_and_later_ones_stay(world: World) {
    let platform = world.create_platform("engines").await;
    world.deployment(&platform, &operator()).await;
    world.run_jobs().await;
    world
        .change_lifecycle_as_operator(&platform, "suspend")
        .await;
    let old = world.count_history().await;
    assert!(old.0 == 1 && old.1 >= 1, "{old:?}");
    world.tick(364 * DAY);
    assert_eq!(world.remove_old_history().await, (0, 0));
    world
        .change_lifecycle_as_operator(&platform, "restore")
        .await;
    let both = world.count_history().await;
    world.tick(2 * DAY);
    assert_eq!(world.remove_old_history().await, old);
    assert_eq!(
        world.count_history().await,
        (both.0 - old.0, both.1 - old.1)
    );
    assert_eq!(world.remove_old_history().await, (0, 0));
}

/// Returns a deployment that was created at this second.
fn deployment(platform: &PlatformId, id: &str, status: DeploymentStatus, at: i64) -> Deployment {
    let command: CreateDeployment = from_value(json!({
        "idempotencyKey": id, "userId": "ada", "projectName": "engines-site", "branch": "production",
    }))
    .unwrap();
    let now = Timestamp::from_seconds(at);
    let id = DeploymentId::parse(&named_uuid(id)).unwrap();
    Deployment {
        status,
        ..Deployment::create(id, platform, command, now)
    }
}

async fn old_deployments_go_unless_they_are_live_or_pinned_or_another_one_has_their_content(
    world: World,
) {
    use DeploymentStatus::{Active, Canceled, Failure, Queued};
    let platform = world.create_platform("engines").await;
    let platform = PlatformId::parse(&platform).unwrap();
    let start = world.clock_seconds();
    let one = |id, status, at| deployment(&platform, id, status, start + at);
    let source = one("a-source", Active, 0);
    let copy = Deployment {
        source_id: Some(source.id.clone()),
        ..one("f-copy", Active, 5)
    };
    let pinned = Deployment {
        pinned_at: Some(Timestamp::from_seconds(start)),
        ..one("d-pinned", Active, 3)
    };
    let preview = Deployment {
        branch: serde_json::from_value(json!("preview")).unwrap(),
        ..one("g-preview", Active, 6)
    };
    world
        .store_deployments(&[
            source,
            one("b-replaced", Active, 1),
            one("c-failed", Failure, 2),
            pinned,
            one("e-canceled", Canceled, 4),
            copy,
            preview,
            one("h-queued", Queued, 7),
        ])
        .await;
    world.tick(364 * DAY);
    assert_eq!(world.remove_old_deployments(3).await, [0_u64; 0]);
    world.tick(2 * DAY);
    assert_eq!(world.remove_old_deployments(3).await, [3, 3, 1]);
    let left = ["a-source", "d-pinned", "f-copy", "g-preview", "h-queued"].map(named_uuid);
    assert_eq!(world.deployment_ids().await, left);
    // Nothing else goes later.
    assert_eq!(world.remove_old_deployments(100).await, [4]);
    assert_eq!(world.deployment_ids().await, left);
}

on_every_store! {
    old_builds_and_lifecycle_records_go_and_later_ones_stay,
    old_deployments_go_unless_they_are_live_or_pinned_or_another_one_has_their_content,
}
