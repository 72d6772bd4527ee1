//! Deployments: repeated requests, status, retries, and long polls.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::Timestamp;
use core_domain::port::SiteState;
use core_domain::registry::DeploymentStatus;
use serde_json::json;
use tokio::time::Instant;

use super::harness::{FailingOperation, UploadHarness};
use crate::world::{JobCommand, SITE, operator, platform_path};

const KEY: (&str, &str) = ("idempotency-key", "build-1");
const OTHER_SITE: &[u8] = b"index.html";

#[tokio::test]
async fn a_site_is_stored_and_queued_and_is_served_after_its_job() {
    let harness = UploadHarness::new().await;
    let queued = harness.deploy(&[KEY], SITE).await.expect(202);
    let (id, project) = (queued.text("deploymentId"), queued.text("projectName"));
    let named = project.starts_with("harness-") && project.ends_with("-prod-site");
    assert!(named, "{project}");
    let view = json!({ "deploymentId": id, "status": "queued", "projectName": project });
    assert_eq!(queued.json, view);
    assert_eq!(harness.blobs.count(), (0, 1));
    assert_eq!(harness.world.audit("deployment.created").await.len(), 1);
    let stored = harness.deployments().await.swap_remove(0);
    assert_eq!((stored.file_count, stored.total_bytes), (Some(2), Some(19)));
    assert_eq!(
        (stored.branch.as_str(), stored.id.as_str()),
        ("production", id)
    );

    harness.world.run_jobs().await;
    let shown = harness.show(id, "").await.expect(200);
    assert_eq!(shown.text("status"), "active");
    assert_eq!(shown.text("url"), format!("http://{id}.{project}.test"));
    assert_eq!(
        harness.blobs.count(),
        (0, 0),
        "the upload is no longer needed"
    );
}

#[tokio::test]
async fn a_repeated_idempotency_key_returns_the_deployments_current_status() {
    let harness = UploadHarness::new().await;
    let first = harness.deploy(&[KEY], SITE).await.expect(202);
    let again = harness.deploy(&[KEY], SITE).await.expect(200);
    assert_eq!(again.json, first.json);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(harness.blobs.count(), (0, 1));
    harness.world.run_jobs().await;
    harness.world.tick(24 * 3600);
    let again = harness.deploy(&[KEY], SITE).await.expect(200);
    assert_eq!(again.text("status"), "active");
    assert_eq!(again.text("deploymentId"), first.text("deploymentId"));
    assert_eq!(harness.world.audit("deployment.created").await.len(), 1);
}

#[tokio::test]
async fn an_idempotency_key_is_bound_to_its_content_branch_and_platform() {
    let harness = UploadHarness::new().await;
    let _ = harness.deploy(&[KEY], SITE).await.expect(202);
    harness.world.run_jobs().await;
    let preview = ("x-core-deploy-branch", "preview");
    for (headers, body) in [(&[KEY][..], OTHER_SITE), (&[KEY, preview], SITE)] {
        let refused = harness.deploy(headers, body).await;
        refused.expect_error(422, "IDEMPOTENCY_KEY_REUSED");
    }
    assert_eq!(harness.blobs.count(), (0, 0));
    let other = harness.world.create_platform("other").await;
    let path = platform_path(&other, "/deploy");
    let elsewhere = harness.world.deploy(&path, &operator(), &[KEY]).await;
    let _ = elsewhere.expect(202);
}

#[tokio::test]
async fn a_branch_has_one_pending_deployment_and_the_conflict_names_it() {
    let harness = UploadHarness::new().await;
    let first = harness.deploy(&[KEY], SITE).await.expect(202);
    for headers in [&[][..], &[("idempotency-key", "build-2")]] {
        let refused = harness.deploy(headers, OTHER_SITE).await;
        let details = &refused.json["error"]["details"];
        let known = json!({ "deploymentId": first.text("deploymentId"), "status": "queued" });
        assert_eq!(*details, known);
        refused.expect_error(409, "CONFLICT");
    }
    let preview = [("x-core-deploy-branch", "feature/x-1_2.3")];
    let _ = harness.deploy(&preview, OTHER_SITE).await.expect(202);
    assert_eq!(harness.blobs.count(), (0, 2));
    harness.world.run_jobs().await;
    let _ = harness.deploy(&[], OTHER_SITE).await.expect(202);
}

#[tokio::test]
async fn without_a_key_the_same_content_returns_the_same_deployment_for_ten_minutes() {
    let harness = UploadHarness::new().await;
    let first = harness.deploy(&[], SITE).await.expect(202);
    harness.world.run_jobs().await;
    harness.world.tick(600);
    let again = harness.deploy(&[], SITE).await.expect(200);
    assert_eq!(again.text("deploymentId"), first.text("deploymentId"));
    // An idempotency key makes it a new deployment.
    let _ = harness.deploy(&[KEY], SITE).await.expect(202);
    harness.world.run_jobs().await;
    harness.world.tick(601);
    let _ = harness.deploy(&[], SITE).await.expect(202);
}

/// Creates a deployment that fails at the provider, and returns the id of its job. The provider works again afterwards.
async fn create_failed_deployment(harness: &UploadHarness) -> String {
    let queued = harness.deploy(&[], SITE).await.expect(202);
    harness.world.provider.set_failing(true);
    harness.world.finish_jobs().await;
    harness.world.provider.set_failing(false);
    let shown = harness.show(queued.text("deploymentId"), "").await;
    assert_eq!(shown.text("status"), "failure");
    assert!(shown.text("errorMessage").contains("the provider refuses"));
    let failed = harness.deployments().await.swap_remove(0);
    failed.job_id.as_ref().unwrap().to_string()
}

#[tokio::test]
async fn the_content_of_a_failed_deployment_can_be_deployed_again_at_once() {
    let harness = UploadHarness::new().await;
    create_failed_deployment(&harness).await;
    let _ = harness.deploy(&[], SITE).await.expect(202);
    assert_eq!(
        harness.blobs.count(),
        (0, 2),
        "the first upload is kept for a retry"
    );
}

#[tokio::test]
async fn an_operators_retry_of_a_failed_deployment_deploys_the_same_upload_as_a_new_one() {
    let harness = UploadHarness::new().await;
    let job = create_failed_deployment(&harness).await;
    harness.world.operate(&job, JobCommand::Retry).await;
    harness.world.run_jobs().await;
    let all = harness.deployments().await;
    let statuses: Vec<_> = all.iter().map(|deployment| deployment.status).collect();
    assert_eq!(
        statuses,
        [DeploymentStatus::Active, DeploymentStatus::Failure]
    );
    assert_eq!(all[0].content_hash, all[1].content_hash);
    assert_eq!(
        (all[0].error_message.clone(), &all[0].url.is_some()),
        (None, &true)
    );
    assert_eq!(harness.blobs.count(), (0, 0));
}

#[tokio::test]
async fn a_retry_of_the_cleanup_after_an_active_deployment_does_not_deploy_again() {
    let harness = UploadHarness::new().await;
    let _ = harness.deploy(&[], SITE).await.expect(202);
    *harness.blobs.full.lock().unwrap() = Some(FailingOperation::Removal);
    harness.world.run_jobs().await;
    let job = harness.deployments().await[0].job_id.clone().unwrap();
    harness
        .world
        .operate(job.as_str(), JobCommand::Cancel)
        .await;
    harness.world.operate(job.as_str(), JobCommand::Retry).await;
    *harness.blobs.full.lock().unwrap() = None;
    harness.world.finish_jobs().await;
    let all = harness.deployments().await;
    let statuses: Vec<_> = all.iter().map(|deployment| deployment.status).collect();
    assert_eq!(statuses, [DeploymentStatus::Active]);
    let path = platform_path(&harness.platform, "/builds/latest");
    assert_eq!(
        harness.world.get_record(&path).await.text("buildStatus"),
        "success"
    );
    assert_eq!(harness.blobs.count(), (0, 0));
}

#[tokio::test]
async fn a_deployment_ends_with_its_job_and_its_upload_is_removed() {
    for (how, status, repeated) in [
        (JobCommand::Cancel, "canceled", 202),
        (JobCommand::ForceComplete, "active", 200),
    ] {
        let harness = UploadHarness::new().await;
        let queued = harness.deploy(&[], SITE).await.expect(202);
        let job = harness.deployments().await[0].job_id.clone().unwrap();
        harness.world.operate(job.as_str(), how).await;
        harness.world.finish_jobs().await;
        let shown = harness.show(queued.text("deploymentId"), "").await;
        assert_eq!(shown.text("status"), status);
        assert_eq!(harness.blobs.count(), (0, 0));
        assert_eq!(harness.deploy(&[], SITE).await.status, repeated, "{how:?}");
    }
}

#[tokio::test]
async fn a_provider_has_fifteen_minutes_to_serve_a_site() {
    let (slow, broken) = (
        SiteState::Deploying,
        SiteState::Failed("no page".to_owned()),
    );
    for (then, after, said) in [
        (Some(SiteState::Active), 2, ""),
        (Some(broken), 2, "DEPLOYMENT_FAILED: no page"),
        (None, 2, "DEPLOYMENT_LOST: "),
        (Some(slow.clone()), 902, "TIMEOUT: "),
    ] {
        let harness = UploadHarness::new().await;
        let queued = harness.deploy(&[], SITE).await.expect(202);
        let looked = async |seconds: u64| {
            harness.world.tick(seconds);
            harness.world.run_timers().await;
            harness.world.run_jobs().await;
            harness.show(queued.text("deploymentId"), "").await
        };
        harness.world.provider.set_site_state(Some(slow.clone()));
        let given = looked(0).await;
        assert_eq!(given.text("status"), "deploying");
        assert!(given.text("cfDeploymentId").starts_with("deployment-"));
        assert_eq!(looked(after - 2).await.text("status"), "deploying");
        harness.world.provider.set_site_state(then);
        let ended = looked(2).await;
        let wanted = if said.is_empty() { "active" } else { "failure" };
        assert_eq!(ended.text("status"), wanted, "{said}");
        assert!(
            ended.json["errorMessage"]
                .as_str()
                .unwrap_or_default()
                .starts_with(said)
        );
    }
}

#[tokio::test]
async fn a_client_that_disconnects_while_its_upload_is_stored_finds_its_deployment_later() {
    let harness = Arc::new(UploadHarness::new().await);
    harness.blobs.close();
    let client = Arc::clone(&harness);
    let leaving = tokio::spawn(async move { client.deploy(&[KEY], SITE).await });
    harness.blobs.wait_for_arrival().await;
    leaving.abort();
    assert!(leaving.await.unwrap_err().is_cancelled());
    harness.blobs.gate.add_permits(1_000);
    for _ in 0..10_000 {
        if !harness.deployments().await.is_empty() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let again = harness.deploy(&[KEY], SITE).await.expect(200);
    assert_eq!(again.text("status"), "queued");
    assert_eq!(harness.blobs.count(), (0, 1));
}

#[tokio::test]
async fn a_deployment_has_every_field_and_times_in_seconds() {
    let harness = UploadHarness::new().await;
    let made = harness.deploy(&[], SITE).await.expect(202);
    let id = made.text("deploymentId");
    let queued = harness.show(id, "").await.expect(200);
    let view = json!({
        "deploymentId": id, "status": "queued", "cfDeploymentId": null, "url": null,
        "errorMessage": null, "startedAt": null, "completedAt": null,
    });
    assert_eq!(queued.json, view);
    harness
        .rewrite(|deployment| {
            deployment.status = DeploymentStatus::Failure;
            deployment.cf_deployment_id = Some("cf-1".to_owned());
            deployment.url = Some("http://harness.test".to_owned());
            deployment.error_message = Some("no luck".to_owned());
            deployment.started_at = Some(Timestamp::from_seconds(5));
            deployment.completed_at = Some(Timestamp::from_seconds(12));
        })
        .await;
    let ended = harness.show(id, "").await.expect(200);
    let view = json!({
        "deploymentId": id, "status": "failure", "cfDeploymentId": "cf-1", "url": "http://harness.test",
        "errorMessage": "no luck", "startedAt": 5, "completedAt": 12,
    });
    assert_eq!(ended.json, view);
    assert_ne!(ended.header("etag"), queued.header("etag"));
}

#[tokio::test(start_paused = true)]
async fn a_long_poll_ends_with_the_deployment_or_after_its_wait() {
    let harness = Arc::new(UploadHarness::new().await);
    let made = harness.deploy(&[], SITE).await.expect(202);
    let id = made.text("deploymentId").to_owned();
    for (wait, issue) in [
        ("0", "too_small"),
        ("31", "too_big"),
        ("1.5", "invalid_type"),
    ] {
        let refused = harness.show(&id, &format!("?wait={wait}")).await;
        assert_eq!(refused.issues(), [format!("wait: {issue}")]);
    }
    let began = Instant::now();
    let held = harness.show(&id, "?wait=5").await.expect(200);
    assert_eq!(held.text("status"), "queued");
    assert!(began.elapsed() >= Duration::from_secs(5));
    let (client, path) = (Arc::clone(&harness), id.clone());
    let waiting = tokio::spawn(async move { client.show(&path, "?wait=20").await });
    tokio::time::sleep(Duration::from_secs(8)).await;
    harness.world.run_jobs().await;
    let began = Instant::now();
    assert_eq!(waiting.await.unwrap().text("status"), "active");
    assert!(began.elapsed() <= Duration::from_secs(1));
    let began = Instant::now();
    let _ = harness.show(&id, "?wait=20").await.expect(200);
    assert_eq!(began.elapsed(), Duration::ZERO);
}
