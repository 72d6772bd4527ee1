//! Planned deployments, whose uploads have only the files that the provider does not have.

use core_domain::kernel::hex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::harness::{MAX_UPLOAD_BYTES, UploadHarness};
use crate::world::{Answer, owner, plain_member, platform_path};

/// Returns the files of a plan. The content of each file is its path, as in the archives of these tests.
fn files(paths: &[&str]) -> Value {
    let file = |path: &&str| {
        let digest = hex(&Sha256::digest(path.as_bytes()));
        json!({ "path": path, "size": path.len(), "digest": digest })
    };
    json!({ "files": paths.iter().map(file).collect::<Vec<_>>() })
}

trait PlanAnswer {
    /// Returns the paths of the missing files.
    fn missing(&self) -> Vec<&str>;
}

impl PlanAnswer for Answer {
    fn missing(&self) -> Vec<&str> {
        let missing = self.json["missing"].as_array().unwrap().iter();
        missing.map(|path| path.as_str().unwrap()).collect()
    }
}

impl UploadHarness {
    async fn plan(&self, body: Value) -> Answer {
        let path = platform_path(&self.platform, "/deploy/plan");
        self.world.cli.post(&self.mary(), &path, body).await
    }

    async fn deploy_plan(&self, plan: &str, body: &'static [u8]) -> Answer {
        let path = format!("{}?plan={plan}", self.path());
        let body = core_http::kernel::bytes_body(body);
        self.world.upload(&path, &self.mary(), &[], body).await
    }
}

#[tokio::test]
async fn only_the_contents_that_the_provider_lacks_are_uploaded() {
    let harness = UploadHarness::new().await;
    let first = harness
        .plan(files(&["index.html", "a.css"]))
        .await
        .expect(201);
    assert_eq!(first.missing(), ["index.html", "a.css"]);
    assert_eq!(first.json["totalBytes"], 15);
    assert_eq!(first.json["missingBytes"], 15);
    assert_eq!(first.json["maxUploadBytes"], MAX_UPLOAD_BYTES);
    let expires = first.json["expiresAt"].as_i64().unwrap();
    assert_eq!(expires - harness.world.clock_seconds(), 15 * 60);
    let queued = harness
        .deploy_plan(first.text("planId"), b"index.html\na.css")
        .await
        .expect(202);
    harness.world.run_jobs().await;
    let shown = harness.show(queued.text("deploymentId"), "").await;
    assert_eq!(shown.text("status"), "active");

    let second = harness
        .plan(files(&["index.html", "a.css", "b.css"]))
        .await
        .expect(201);
    assert_eq!(second.missing(), ["b.css"]);
    let queued = harness
        .deploy_plan(second.text("planId"), b"b.css")
        .await
        .expect(202);
    harness.world.run_jobs().await;
    let shown = harness.show(queued.text("deploymentId"), "").await;
    assert_eq!(shown.text("status"), "active");
    let stored = harness.deployments().await.swap_remove(0);
    assert_eq!((stored.file_count, stored.total_bytes), (Some(3), Some(20)));

    // Nothing is missing, so the upload is empty.
    let third = harness
        .plan(files(&["index.html", "b.css"]))
        .await
        .expect(201);
    assert!(third.missing().is_empty());
    let queued = harness
        .deploy_plan(third.text("planId"), b"")
        .await
        .expect(202);
    harness.world.run_jobs().await;
    let shown = harness.show(queued.text("deploymentId"), "").await;
    assert_eq!(shown.text("status"), "active");
    // Only the lists of the three plans are stored.
    assert_eq!(harness.blobs.count(), (0, 3));
}

#[tokio::test]
async fn a_plan_is_valid_for_fifteen_minutes_and_for_its_caller_alone() {
    let harness = UploadHarness::new().await;
    let other = harness.world.create_platform("other").await;
    let plan = harness.plan(files(&["index.html"])).await.expect(201);
    let plan = plan.text("planId");
    let path = format!("{}?plan={plan}", harness.path());
    let site = || core_http::kernel::bytes_body(&b"index.html"[..]);
    let owner = owner(&harness.platform);
    let foreign = harness.world.upload(&path, &owner, &[], site()).await;
    foreign.expect_error(404, "NOT_FOUND");
    let path = platform_path(&other, &format!("/deploy?plan={plan}"));
    let foreign = harness
        .world
        .upload(&path, &plain_member(&other), &[], site())
        .await;
    foreign.expect_error(404, "NOT_FOUND");
    harness
        .deploy_plan("missing", b"index.html")
        .await
        .expect_error(404, "NOT_FOUND");
    harness.world.tick(15 * 60 - 1);
    let _ = harness.deploy_plan(plan, b"index.html").await.expect(202);
    harness.world.tick(1);
    harness
        .deploy_plan(plan, b"index.html")
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn an_upload_must_match_its_plan() {
    let harness = UploadHarness::new().await;
    let plan = harness
        .plan(files(&["index.html", "a.css"]))
        .await
        .expect(201);
    let plan = plan.text("planId");
    let other = harness.deploy_plan(plan, b"index.html\nb.css").await;
    assert_eq!(other.issues(), ["file: not_planned"]);
    // A file that is neither uploaded nor stored.
    let missing = harness.deploy_plan(plan, b"index.html").await;
    assert_eq!(
        missing.json["error"]["details"],
        json!({ "missing": ["a.css"] })
    );
    missing.expect_error(409, "CONFLICT");
    assert_eq!(harness.blobs.count(), (0, 1));
}

#[tokio::test]
async fn contents_that_disappear_after_the_plan_are_reported_and_break_no_site() {
    let harness = UploadHarness::new().await;
    let plan = harness
        .plan(files(&["index.html", "a.css"]))
        .await
        .expect(201);
    let first = harness
        .deploy_plan(plan.text("planId"), b"index.html\na.css")
        .await
        .expect(202);
    harness.world.run_jobs().await;
    let plan = harness
        .plan(files(&["index.html", "b.css"]))
        .await
        .expect(201);
    // The contents disappear before the upload.
    harness.world.provider.forget_contents();
    let refused = harness.deploy_plan(plan.text("planId"), b"b.css").await;
    assert_eq!(
        refused.json["error"]["details"],
        json!({ "missing": ["index.html"] })
    );
    refused.expect_error(409, "CONFLICT");
    // The contents disappear between the upload and its job.
    let plan = harness
        .plan(files(&["index.html", "c.css"]))
        .await
        .expect(201);
    let queued = harness
        .deploy_plan(plan.text("planId"), b"index.html\nc.css")
        .await
        .expect(202);
    harness.world.run_jobs().await;
    let plan = harness
        .plan(files(&["index.html", "d.css"]))
        .await
        .expect(201);
    let lost = harness
        .deploy_plan(plan.text("planId"), b"d.css")
        .await
        .expect(202);
    harness.world.provider.forget_contents();
    harness.world.finish_jobs().await;
    let shown = harness.show(lost.text("deploymentId"), "").await;
    assert_eq!(shown.text("status"), "failure");
    let project = first.text("projectName");
    let live = harness
        .world
        .provider
        .live_deployment(project, "production");
    assert_eq!(live.as_deref(), Some(queued.text("deploymentId")));
}

#[tokio::test]
async fn planned_files_obey_the_rules_of_an_archive() {
    let harness = UploadHarness::new().await;
    let mut large = files(&["index.html"]);
    large["files"][0]["size"] = json!(26 * 1024 * 1024);
    let mut negative = files(&["index.html"]);
    negative["files"][0]["size"] = json!(-1);
    let mut upper = files(&["index.html"]);
    upper["files"][0]["digest"] = json!("A".repeat(64));
    for (body, issue) in [
        (files(&[]), "files: too_short"),
        (files(&["a.html"]), "files: no_front_page"),
        (
            files(&["index.html", "../x"]),
            "files.1.path: path_leaves_site",
        ),
        (
            files(&["index.html", "INDEX.HTML"]),
            "files.1.path: duplicate_name",
        ),
        (large, "files.0.path: too_large"),
        (negative, "files.0.size: too_small"),
        (upper, "files.0.digest: pattern"),
    ] {
        let refused = harness.plan(body).await;
        assert_eq!(refused.issues(), [issue]);
        refused.expect_error(400, "VALIDATION_ERROR");
    }
    assert_eq!(harness.blobs.count(), (0, 0));
}

#[tokio::test]
async fn the_plans_of_a_platform_are_limited_and_expire() {
    let harness = UploadHarness::new().await;
    for _ in 0..20 {
        let _ = harness.plan(files(&["index.html"])).await.expect(201);
    }
    let refused = harness.plan(files(&["index.html"])).await;
    refused.expect_error(409, "LIMIT_REACHED");
    assert_eq!(harness.blobs.count(), (0, 20));
    harness.world.tick(15 * 60);
    let _ = harness.plan(files(&["index.html"])).await.expect(201);
}

#[tokio::test]
async fn the_same_planned_content_without_a_key_is_the_same_deployment() {
    let harness = UploadHarness::new().await;
    let plan = harness
        .plan(files(&["index.html", "a.css"]))
        .await
        .expect(201);
    let first = harness
        .deploy_plan(plan.text("planId"), b"index.html\na.css")
        .await
        .expect(202);
    harness.world.run_jobs().await;
    // The files are listed in another order, and nothing is uploaded.
    let plan = harness
        .plan(files(&["a.css", "index.html"]))
        .await
        .expect(201);
    let again = harness
        .deploy_plan(plan.text("planId"), b"")
        .await
        .expect(200);
    assert_eq!(again.text("deploymentId"), first.text("deploymentId"));
}
