//! The limit on the bytes of a platform's sites. A site over the limit is refused before anything is stored.

use core_domain::kernel::Limits;
use core_domain::registry::DeploymentStatus;
use serde_json::json;

use super::harness::{FailingOperation, UploadHarness};
use crate::world::{SITE, operator, platform_path};

/// The bytes of the files in [`SITE`].
const SITE_BYTES: u64 = 19;
const KEY: (&str, &str) = ("idempotency-key", "build-1");
const PREVIEW: (&str, &str) = ("x-core-deploy-branch", "preview");
const WEEK: u64 = 7 * 24 * 3600;

/// Returns a harness that limits the sites of a platform to `bytes` bytes.
async fn with_room(bytes: u64) -> UploadHarness {
    let mut harness = UploadHarness::new().await;
    harness.world = harness.world.with_limits(Limits {
        site_bytes_per_platform: bytes,
        ..Limits::default()
    });
    harness
}

#[tokio::test]
async fn a_site_over_the_limit_is_refused_before_anything_is_stored() {
    let harness = with_room(SITE_BYTES - 1).await;
    // Storing the upload would fail with another error.
    *harness.blobs.full.lock().unwrap() = Some(FailingOperation::Store);
    let refused = harness.deploy(&[KEY], SITE).await;
    let refused = refused.expect_error(409, "LIMIT_REACHED");
    let limit = &refused.json["error"]["details"]["limit"];
    assert_eq!(*limit, json!(SITE_BYTES - 1));
    let path = platform_path(&harness.platform, "/deploy");
    let by_operator = harness.world.deploy(&path, &operator(), &[KEY]).await;
    by_operator.expect_error(409, "LIMIT_REACHED");
    assert_eq!(harness.blobs.count(), (0, 0));
    assert!(harness.deployments().await.is_empty());
}

#[tokio::test]
async fn pending_deployments_count_towards_the_limit_until_they_end() {
    let harness = with_room(2 * SITE_BYTES - 1).await;
    let first = harness.deploy(&[KEY], SITE).await.expect(202);
    let preview = || harness.deploy(&[PREVIEW], SITE);
    preview().await.expect_error(409, "LIMIT_REACHED");
    assert_eq!(harness.blobs.count(), (0, 1));
    // A repetition of the accepted deployment gets the same response.
    let again = harness.deploy(&[KEY], SITE).await.expect(200);
    assert_eq!(again.text("deploymentId"), first.text("deploymentId"));
    harness.world.run_jobs().await;
    let _ = preview().await.expect(202);
}

#[tokio::test]
async fn a_failed_deployment_counts_towards_the_limit_while_its_upload_is_kept() {
    let harness = with_room(2 * SITE_BYTES - 1).await;
    let _ = harness.deploy(&[], SITE).await.expect(202);
    harness
        .rewrite(|deployment| deployment.status = DeploymentStatus::Failure)
        .await;
    let preview = || harness.deploy(&[PREVIEW], SITE);
    preview().await.expect_error(409, "LIMIT_REACHED");
    harness.world.tick(WEEK);
    preview().await.expect_error(409, "LIMIT_REACHED");
    harness.world.tick(1);
    let _ = preview().await.expect(202);
}

#[tokio::test]
async fn the_upload_of_a_deployment_that_ended_outside_its_job_is_removed() {
    for ended in [DeploymentStatus::Failure, DeploymentStatus::Active] {
        let harness = UploadHarness::new().await;
        let _ = harness.deploy(&[], SITE).await.expect(202);
        harness
            .rewrite(|deployment| deployment.status = ended)
            .await;
        assert_eq!(harness.blobs.count(), (0, 1));
        harness.world.run_jobs().await;
        assert_eq!(harness.blobs.count(), (0, 0), "{ended:?}");
    }
}
