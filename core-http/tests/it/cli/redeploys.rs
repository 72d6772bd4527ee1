//! Rollbacks, promotions and pins.

use core_domain::registry::DeploymentStatus;
use serde_json::{Value, json};

use super::harness::UploadHarness;
use crate::world::{Answer, operator, platform_path};

const OTHER_SITE: &[u8] = b"index.html";
const PREVIEW: (&str, &str) = ("x-core-deploy-branch", "preview");

impl UploadHarness {
    /// Deploys a site and runs its job. Returns the id of the deployment. Advances the clock by a second.
    async fn deploy_and_finish(&self, headers: &[(&str, &str)], site: &[u8]) -> String {
        let queued = self.deploy(headers, site).await.expect(202);
        self.world.run_jobs().await;
        self.world.tick(1);
        queued.text("deploymentId").to_owned()
    }

    /// Sends a command about a deployment: `rollback`, `promote` or `pin`.
    async fn command(&self, id: &str, command: &str) -> Answer {
        let path = platform_path(&self.platform, &format!("/deployments/{id}/{command}"));
        self.world.cli.post(&self.mary(), &path, json!({})).await
    }

    async fn list(&self, query: &str) -> Vec<Value> {
        let path = platform_path(&self.platform, &format!("/deployments{query}"));
        let list = self.world.cli.get(&self.mary(), &path).await.expect(200);
        list.json["data"].as_array().unwrap().clone()
    }

    /// Returns the content that visitors of a branch see: the id of the deployment that uploaded it.
    async fn live_content(&self, branch: &str) -> String {
        let listed = self.list(&format!("?branch={branch}")).await;
        let live = listed.iter().find(|one| one["isLive"] == true).unwrap();
        let key = live["deploymentId"].as_str().unwrap();
        let project = live["projectName"].as_str().unwrap();
        let at_provider = self.world.provider.live_deployment(project, branch);
        assert_eq!(at_provider.as_deref(), Some(key));
        let source = live["sourceDeploymentId"].as_str().unwrap_or(key);
        source.to_owned()
    }
}

#[tokio::test]
async fn a_rollback_is_a_new_deployment_with_the_earlier_content() {
    let harness = UploadHarness::new().await;
    let first = harness.deploy_and_finish(&[], b"index.html\na").await;
    let second = harness.deploy_and_finish(&[], b"index.html\nb").await;
    assert_eq!(harness.live_content("production").await, second);
    let queued = harness.command(&first, "rollback").await.expect(202);
    assert_eq!(queued.text("status"), "queued");
    harness.world.run_jobs().await;
    harness.world.tick(1);
    assert_eq!(harness.live_content("production").await, first);
    let listed = harness.list("").await;
    assert_eq!(listed.len(), 3);
    let newest = &listed[0];
    assert_eq!(newest["deploymentId"], queued.json["deploymentId"]);
    assert_eq!(newest["sourceDeploymentId"], json!(first));
    assert_eq!(newest["fileCount"], 2);
    assert!(newest["permalink"].is_string());
    // A rollback of the rollback has the content of the second deployment.
    let _ = harness.command(&second, "rollback").await.expect(202);
    harness.world.run_jobs().await;
    assert_eq!(harness.live_content("production").await, second);
    assert_eq!(harness.blobs.count(), (0, 0));
}

#[tokio::test]
async fn a_rollback_to_the_live_content_queues_nothing() {
    let harness = UploadHarness::new().await;
    let first = harness.deploy_and_finish(&[], b"index.html\na").await;
    let same = harness.command(&first, "rollback").await.expect(200);
    assert_eq!(same.text("deploymentId"), first);
    harness.deploy_and_finish(&[], OTHER_SITE).await;
    let again = harness.command(&first, "rollback").await.expect(202);
    harness.world.run_jobs().await;
    let same = harness.command(&first, "rollback").await.expect(200);
    assert_eq!(same.text("deploymentId"), again.text("deploymentId"));
    assert_eq!(harness.list("").await.len(), 3);
}

#[tokio::test]
async fn after_a_rollback_the_replaced_content_can_be_deployed_again_at_once() {
    let harness = UploadHarness::new().await;
    let first = harness.deploy_and_finish(&[], b"index.html\na").await;
    let second = harness.deploy_and_finish(&[], OTHER_SITE).await;
    let _ = harness.command(&first, "rollback").await.expect(202);
    harness.world.run_jobs().await;
    harness.world.tick(1);
    let third = harness.deploy_and_finish(&[], OTHER_SITE).await;
    assert_ne!(third, second);
    assert_eq!(harness.live_content("production").await, third);
}

#[tokio::test]
async fn a_promotion_deploys_the_content_of_a_preview_to_production() {
    let harness = UploadHarness::new().await;
    let old = harness.deploy_and_finish(&[], b"index.html\nold").await;
    let preview = harness
        .deploy_and_finish(&[PREVIEW], b"index.html\nnew")
        .await;
    let _ = harness.command(&preview, "promote").await.expect(202);
    harness.world.run_jobs().await;
    harness.world.tick(1);
    assert_eq!(harness.live_content("production").await, preview);
    assert_eq!(harness.live_content("preview").await, preview);
    let _ = harness.command(&preview, "promote").await.expect(200);
    // Only a preview can be promoted.
    let refused = harness.command(&old, "promote").await;
    refused.expect_error(409, "INVALID_STATE");
}

#[tokio::test]
async fn only_deployments_that_were_active_can_be_deployed_again() {
    let harness = UploadHarness::new().await;
    let live = harness.deploy_and_finish(&[], b"index.html\na").await;
    harness.world.provider.set_failing(true);
    let failed = harness.deploy(&[], OTHER_SITE).await.expect(202);
    harness.world.finish_jobs().await;
    harness.world.provider.set_failing(false);
    let failed = failed.text("deploymentId");
    for command in ["rollback", "promote"] {
        let refused = harness.command(failed, command).await;
        refused.expect_error(409, "INVALID_STATE");
        let missing = harness.command("missing", command).await;
        missing.expect_error(404, "NOT_FOUND");
    }
    assert_eq!(harness.live_content("production").await, live);
}

#[tokio::test]
async fn a_rollback_waits_for_the_deployment_in_progress() {
    let harness = UploadHarness::new().await;
    let first = harness.deploy_and_finish(&[], b"index.html\na").await;
    harness.deploy_and_finish(&[], b"index.html\nb").await;
    let pending = harness.deploy(&[], b"index.html\nc").await.expect(202);
    let refused = harness.command(&first, "rollback").await;
    let named = json!({ "deploymentId": pending.text("deploymentId"), "status": "queued" });
    assert_eq!(refused.json["error"]["details"], named);
    refused.expect_error(409, "CONFLICT");
}

#[tokio::test]
async fn a_rollback_whose_content_was_cleaned_up_fails_and_keeps_the_live_site() {
    let harness = UploadHarness::new().await;
    let first = harness.deploy_and_finish(&[], b"index.html\na").await;
    let second = harness.deploy_and_finish(&[], b"index.html\nb").await;
    harness.world.provider.forget_contents();
    let queued = harness.command(&first, "rollback").await.expect(202);
    harness.world.finish_jobs().await;
    let shown = harness.show(queued.text("deploymentId"), "").await;
    assert_eq!(shown.text("status"), "failure");
    let message = shown.text("errorMessage");
    assert!(
        message.contains("content of the earlier deployment"),
        "{message}"
    );
    assert_eq!(harness.live_content("production").await, second);
    // A retry by an operator would make an old request live, so it is refused.
    let job = harness.deployments().await[0].job_id.clone().unwrap();
    let path = format!("/api/v1/provision/jobs/{job}/retry");
    let retried = harness
        .world
        .provisioning
        .post(&operator(), &path, json!({}))
        .await;
    retried.expect_error(409, "INVALID_STATE");
}

#[tokio::test]
async fn a_pinned_deployment_is_replaced_by_nothing_until_it_is_unpinned() {
    let harness = UploadHarness::new().await;
    let first = harness.deploy_and_finish(&[], b"index.html\na").await;
    let preview = harness
        .deploy_and_finish(&[PREVIEW], b"index.html\np")
        .await;
    let live = harness.deploy_and_finish(&[], b"index.html\nb").await;
    // Only the live deployment can be pinned.
    harness
        .command(&first, "pin")
        .await
        .expect_error(409, "INVALID_STATE");
    harness
        .command(&preview, "pin")
        .await
        .expect_error(409, "INVALID_STATE");
    let pinned = harness.command(&live, "pin").await.expect(200);
    assert_eq!(
        (&pinned.json["isPinned"], &pinned.json["isLive"]),
        (&json!(true), &json!(true))
    );
    let _ = harness.command(&live, "pin").await.expect(200);
    assert_eq!(harness.world.audit("deployment.pinned").await.len(), 1);

    let uploaded = harness.deploy(&[], b"index.html\nc").await;
    let rolled_back = harness.command(&first, "rollback").await;
    let promoted = harness.command(&preview, "promote").await;
    let path = platform_path(&harness.platform, "/deployments");
    let record = json!({ "idempotencyKey": "k", "userId": "ci", "projectName": "site" });
    let external = harness
        .world
        .registry
        .post(&operator(), &path, record)
        .await;
    for refused in [uploaded, rolled_back, promoted, external] {
        let pinned = &refused.json["error"]["details"]["pinnedDeploymentId"];
        assert_eq!(*pinned, json!(live));
        refused.expect_error(409, "CONFLICT");
    }
    assert_eq!(harness.blobs.count(), (0, 0));
    // Previews are not affected.
    harness
        .deploy_and_finish(&[PREVIEW], b"index.html\nq")
        .await;
    let path = platform_path(&harness.platform, &format!("/deployments/{live}/pin"));
    let unpinned = harness
        .world
        .cli
        .delete(&harness.mary(), &path)
        .await
        .expect(200);
    assert_eq!(unpinned.json["isPinned"], json!(false));
    let _ = harness
        .world
        .cli
        .delete(&harness.mary(), &path)
        .await
        .expect(200);
    let next = harness.deploy_and_finish(&[], b"index.html\nc").await;
    assert_eq!(harness.live_content("production").await, next);
}

#[tokio::test]
async fn a_deployment_in_progress_cannot_be_overtaken_by_a_pin() {
    let harness = UploadHarness::new().await;
    let live = harness.deploy_and_finish(&[], b"index.html\na").await;
    let _ = harness.deploy(&[], OTHER_SITE).await.expect(202);
    harness
        .command(&live, "pin")
        .await
        .expect_error(409, "CONFLICT");
}

#[tokio::test]
async fn an_operators_retry_does_not_replace_a_pinned_deployment() {
    let harness = UploadHarness::new().await;
    let live = harness.deploy_and_finish(&[], b"index.html\na").await;
    harness.world.provider.set_failing(true);
    let _ = harness.deploy(&[], OTHER_SITE).await.expect(202);
    harness.world.finish_jobs().await;
    harness.world.provider.set_failing(false);
    let job = harness.deployments().await[0].job_id.clone().unwrap();
    let _ = harness.command(&live, "pin").await.expect(200);
    let path = format!("/api/v1/provision/jobs/{job}/retry");
    let retried = harness
        .world
        .provisioning
        .post(&operator(), &path, json!({}))
        .await;
    retried.expect_error(409, "CONFLICT");
    assert_eq!(harness.live_content("production").await, live);
}

#[tokio::test]
async fn the_list_is_filtered_by_branch_and_status_and_has_pages() {
    let harness = UploadHarness::new().await;
    for site in ["a", "b", "c"] {
        let body = format!("index.html\n{site}");
        harness.deploy_and_finish(&[], body.as_bytes()).await;
    }
    harness.deploy_and_finish(&[PREVIEW], OTHER_SITE).await;
    assert_eq!(harness.list("").await.len(), 4);
    assert_eq!(harness.list("?branch=preview").await.len(), 1);
    assert_eq!(
        harness.list("?branch=production&status=active").await.len(),
        3
    );
    assert_eq!(harness.list("?status=failure").await.len(), 0);
    let live: Vec<_> = harness
        .list("")
        .await
        .iter()
        .map(|one| one["isLive"].clone())
        .collect();
    assert_eq!(live, [true, true, false, false]);
    let path = platform_path(&harness.platform, "/deployments?limit=3");
    let page = harness
        .world
        .cli
        .get(&harness.mary(), &path)
        .await
        .expect(200);
    let next = format!("{path}&cursor={}", page.text("cursor"));
    let rest = harness
        .world
        .cli
        .get(&harness.mary(), &next)
        .await
        .expect(200);
    assert_eq!(rest.json["data"].as_array().unwrap().len(), 1);
    assert_eq!(rest.json["cursor"], json!(null));
    for query in ["?branch=a%20b", "?status=lost"] {
        let path = platform_path(&harness.platform, &format!("/deployments{query}"));
        let refused = harness.world.cli.get(&harness.mary(), &path).await;
        refused.expect_error(400, "VALIDATION_ERROR");
    }
}

#[tokio::test]
async fn deployments_of_other_programs_fail_after_fifteen_minutes_without_an_update() {
    let harness = UploadHarness::new().await;
    let record = json!({ "idempotencyKey": "k", "userId": "ci", "projectName": "site" });
    let path = platform_path(&harness.platform, "/deployments");
    let created = harness
        .world
        .registry
        .post(&operator(), &path, record)
        .await
        .expect(201);
    let held = harness.deploy(&[PREVIEW], OTHER_SITE).await.expect(202);
    harness.world.tick(15 * 60);
    harness.world.fail_stuck_deployments().await;
    assert_eq!(
        harness.show(&created.id(), "").await.text("status"),
        "queued"
    );
    harness.world.tick(1);
    harness.world.fail_stuck_deployments().await;
    let failed = harness.show(&created.id(), "").await;
    assert_eq!(failed.text("status"), "failure");
    assert!(failed.text("errorMessage").starts_with("TIMEOUT"));
    // A deployment with a job waits for it, for example while its platform is suspended.
    let held = held.text("deploymentId");
    assert_eq!(harness.show(held, "").await.text("status"), "queued");
    let ended = harness.deployments().await;
    let ended = ended
        .iter()
        .filter(|one| one.status == DeploymentStatus::Failure);
    assert_eq!(ended.count(), 1);
}
