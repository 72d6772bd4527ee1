//! What the worker of a suite does with steps that do not end well. Time is that of the test.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::port::{
    CreateResource, Infrastructure, ProviderError, Provisioned, ResourceRef, SiteDeployment,
    SiteUpload,
};
use core_domain::testing::MemoryInfrastructure;
use core_suite::SlowInfrastructure;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

use crate::world::{SERVICE_KEY, World, json_body, request, send};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// What becomes of every creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Creation {
    Hangs,
    Panics,
}

#[async_trait]
impl Infrastructure for Creation {
    async fn observe(&self, _: &ResourceRef) -> Result<Option<Provisioned>, ProviderError> {
        Ok(None)
    }

    async fn create(&self, _: &CreateResource) -> Result<Provisioned, ProviderError> {
        assert_eq!(*self, Self::Hangs, "asked for");
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

/// A suite with a job to make what a new platform needs; the path of the job.
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
async fn a_step_that_hangs_or_panics_is_a_failed_attempt_and_the_worker_goes_on() {
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
async fn a_stop_cuts_off_what_does_not_end_in_time_and_counts_no_attempt() {
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
async fn a_stop_lets_a_step_end_and_begins_no_other() {
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
