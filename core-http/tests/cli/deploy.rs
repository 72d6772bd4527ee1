//! A deployment is asked for once, however often it is asked for.

use std::sync::atomic::Ordering;

use core_domain::provisioning::JobStatus;
use core_domain::registry::{DeploymentChange, DeploymentStatus};
use http::StatusCode;

use crate::world::{SITE, World};

const KEY: (&str, &str) = ("idempotency-key", "build-1");

#[tokio::test]
async fn a_site_is_queued_with_its_upload_its_job_and_its_audit_entry() {
    let world = World::new().await;
    let answer = world.deploy(&[KEY], SITE).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    assert_eq!(answer.json["status"], "queued");
    let project = answer.json["projectName"].as_str().unwrap();
    assert!(
        project.starts_with("shop-") && project.ends_with("-prod-site"),
        "{project}"
    );
    assert_eq!(answer.json.as_object().unwrap().len(), 3);
    assert!(world.kept.has(&answer.json["deploymentId"]));
    assert_eq!(world.audited("deployment.created").await, 1);
    let job = world.job_of(&answer.json["deploymentId"]).await;
    assert_eq!(
        (job.kind.as_str(), job.status),
        ("deploy", JobStatus::Queued)
    );
    assert!(world.woken.count() > 0);
}

#[tokio::test]
async fn the_same_key_answers_where_the_deployment_stands_and_keeps_no_second_upload() {
    let world = World::new().await;
    let first = world.deploy(&[KEY], SITE).await.json;
    let again = world.deploy(&[KEY], SITE).await;
    assert_eq!(again.status, StatusCode::OK);
    assert_eq!(again.json, first);
    assert_eq!(again.headers["idempotency-replayed"], "true");
    world.activate(&first["deploymentId"]).await;
    let again = world.deploy(&[KEY], SITE).await;
    assert_eq!(again.json["status"], "active");
    assert_eq!(again.json["deploymentId"], first["deploymentId"]);
    assert_eq!(world.kept.count(), 1);
    assert_eq!(world.audited("deployment.created").await, 1);
}

#[tokio::test]
async fn a_key_belongs_to_its_content_and_its_branch_and_to_its_platform() {
    let world = World::new().await;
    let first = world.deploy(&[KEY], SITE).await;
    world.activate(&first.json["deploymentId"]).await;
    let preview = ("x-core-deploy-branch", "preview");
    for (headers, body) in [
        (&[KEY][..], &b"index.html"[..]),
        (&[KEY, preview][..], SITE),
    ] {
        let refused = world.deploy(headers, body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(refused.code(), "IDEMPOTENCY_KEY_REUSED");
    }
    assert_eq!(world.kept.count(), 1);
    let other = world.new_platform("other").await;
    let path = format!("/api/v1/platforms/{other}/deploy");
    let operator = core_http::kernel::testing::operator();
    let body = core_http::kernel::bytes_body(SITE);
    let elsewhere = world.deploy_as(&operator, &path, &[KEY], body).await;
    assert_eq!(elsewhere.status, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn one_deployment_of_a_branch_at_a_time_and_the_refusal_names_the_other() {
    let world = World::new().await;
    let first = world.deploy(&[KEY], SITE).await;
    let refused = world.deploy(&[], b"index.html").await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(refused.code(), "CONFLICT");
    let details = &refused.json["error"]["details"];
    assert_eq!(details["deploymentId"], first.json["deploymentId"]);
    let preview = [("x-core-deploy-branch", "feature/x-1_2.3")];
    let beside = world.deploy(&preview, b"index.html").await;
    assert_eq!(beside.status, StatusCode::ACCEPTED);
    assert_eq!(world.kept.count(), 2);
    world.activate(&first.json["deploymentId"]).await;
    let next = world.deploy(&[], b"index.html").await;
    assert_eq!(next.status, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn without_a_key_the_same_content_is_the_same_deployment_for_ten_minutes() {
    let world = World::new().await;
    let first = world.deploy(&[], SITE).await;
    world.activate(&first.json["deploymentId"]).await;
    world.later(599);
    let again = world.deploy(&[], SITE).await;
    assert_eq!(again.status, StatusCode::OK);
    assert_eq!(again.json["deploymentId"], first.json["deploymentId"]);
    world.later(2);
    let new = world.deploy(&[], SITE).await;
    assert_eq!(new.status, StatusCode::ACCEPTED);
    assert_ne!(new.json["deploymentId"], first.json["deploymentId"]);
}

#[tokio::test]
async fn content_that_did_not_work_may_be_tried_again_at_once() {
    let world = World::new().await;
    let first = world.deploy(&[], SITE).await;
    let failed = DeploymentChange {
        status: Some(DeploymentStatus::Failure),
        ..DeploymentChange::default()
    };
    world.advance(&first.json["deploymentId"], &failed).await;
    let again = world.deploy(&[], SITE).await;
    assert_eq!(again.status, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn when_uploads_cannot_be_kept_nothing_is_queued_and_it_is_not_our_500() {
    let world = World::new().await;
    world.kept.fails.store(true, Ordering::Relaxed);
    let refused = world.deploy(&[KEY], SITE).await;
    assert_eq!(refused.status, StatusCode::BAD_GATEWAY);
    assert_eq!(refused.code(), "UPSTREAM_ERROR");
    assert!(!refused.json.to_string().contains("disk"));
    assert_eq!(world.audited("deployment.created").await, 0);
    world.kept.fails.store(false, Ordering::Relaxed);
    let again = world.deploy(&[KEY], SITE).await;
    assert_eq!(again.status, StatusCode::ACCEPTED);
}
