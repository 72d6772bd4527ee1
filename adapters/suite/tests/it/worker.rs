//! Steps that hang, panic or are interrupted by a stop. The tests control the time.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::port::{
    CreateResource, Infrastructure, ProviderError, ProviderObject, ResourceRef, SiteDeployment,
    SiteUpload,
};
use core_domain::testing::MemoryInfrastructure;
use core_suite::SlowInfrastructure;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

use crate::world::{SERVICE_KEY, World, json_body, request, send};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// The behaviour of every creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Creation {
    Hangs,
    Panics,
}

#[async_trait]
impl Infrastructure for Creation {
    async fn observe(&self, _: &ResourceRef) -> Result<Option<ProviderObject>, ProviderError> {
        Ok(None)
    }

    async fn create(&self, _: &CreateResource) -> Result<ProviderObject, ProviderError> {
        assert_eq!(*self, Self::Hangs, "this creation panics");
        std::future::pending().await
    }

    async fn remove(&self, _: &ResourceRef, _: &str) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn deploy_site(&self, _: SiteUpload) -> Result<SiteDeployment, ProviderError> {
        std::future::pending().await
    }

    async fn site_deployment(
        &self,
        _: &str,
        _: &str,
    ) -> Result<Option<SiteDeployment>, ProviderError> {
        Ok(None)
    }
}

/// Starts a suite and queues the job that provisions a new platform. Returns the path of the job.
async fn provisioning(provider: impl Infrastructure + 'static) -> (World, String) {
    let world = World::at(provider).await;
    let platform = world.platform("shop").await;
    let body =
        json!({ "platformId": platform, "planTier": "starter", "billingEmail": "ada@example.org" });
    let path = "/api/v1/provisioning/platform";
    let job = world
        .call("POST", path, SERVICE_KEY, body)
        .await
        .expect(202);
    let path = format!("/api/v1/provision/jobs/{}", job.text("jobId"));
    (world, path)
}

async fn job(world: &World, path: &str) -> Value {
    let asked = json_body(request("GET", path, SERVICE_KEY), &Value::Null);
    send(world.suite.provisioning(), asked)
        .await
        .expect(200)
        .json
}

#[tokio::test(start_paused = true)]
async fn a_step_that_hangs_or_panics_fails_the_attempt_but_not_the_worker() {
    for (creation, pause) in [
        (Creation::Hangs, HOUR),
        (Creation::Panics, Duration::from_secs(1)),
    ] {
        let (world, path) = provisioning(creation).await;
        sleep(pause).await;
        let job = job(&world, &path).await;
        assert_eq!(job["status"], "QUEUED", "{creation:?}: {job}");
        assert_eq!(job["attempts"], 1, "{creation:?}: {job}");
        let start = Instant::now();
        world.suite.shutdown().await;
        assert_eq!(Instant::now(), start, "nothing runs");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_aborts_a_step_after_the_drain_time_without_counting_the_attempt() {
    let (world, path) = provisioning(Creation::Hangs).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(job(&world, &path).await["status"], "RUNNING");
    let provisioning = world.suite.provisioning();
    let start = Instant::now();
    world.suite.shutdown().await;
    assert_eq!(Instant::now() - start, Duration::from_secs(25));
    let asked = json_body(request("GET", &path, SERVICE_KEY), &Value::Null);
    let job = send(provisioning, asked).await.expect(200).json;
    assert_eq!(
        (&job["status"], &job["attempts"]),
        (&json!("QUEUED"), &json!(0))
    );
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_the_running_step_and_starts_no_other() {
    let provider = MemoryInfrastructure::default();
    let latency = Duration::from_secs(2);
    let slow = SlowInfrastructure::new(Arc::new(provider.clone()), latency);
    let (world, path) = provisioning(slow).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(job(&world, &path).await["status"], "RUNNING");
    assert!(provider.names().is_empty(), "it waits before the change");
    let start = Instant::now();
    world.suite.shutdown().await;
    assert_eq!(provider.names().len(), 1);
    let rest = latency * 2 - Duration::from_secs(1);
    assert_eq!((Instant::now() - start).as_secs(), rest.as_secs());
}
