//! Authorization of deployments, and refusals that are sent before the body is read.

use std::sync::atomic::Ordering;

use core_domain::kernel::{Caller, PermissionSet};
use core_domain::registry::DeploymentStatus;
use core_http::kernel::bytes_body;
use http::Request;
use serde_json::json;

use super::harness::{MAX_UPLOAD_BYTES, UploadHarness, pieces};
use crate::world::{SERVICE_KEY, SITE, operator, owner, platform_path};

/// Returns `mary` with a role that has no permission except `deployment:read`.
fn reader(mary: &Caller) -> Caller {
    let mut reader = mary.clone();
    if let Caller::User { membership, .. } = &mut reader {
        let known = membership.as_mut().unwrap();
        known.permissions = PermissionSet::new(["deployment:read"]);
    }
    reader
}

#[tokio::test]
async fn refusals_that_do_not_depend_on_the_body_are_sent_before_it_is_read() {
    let harness = UploadHarness::new().await;
    let (own, mary) = (harness.path(), harness.mary());
    let missing = platform_path("no-such-platform", "/deploy");
    // An unauthorized caller gets the authorization error, not the error in the request.
    let wrong = ("content-type", "text/html");
    let long = (MAX_UPLOAD_BYTES + 1).to_string();
    let too_long = ("content-length", long.as_str());
    for (caller, path, header, status, code) in [
        (&Caller::Anonymous, &own, wrong, 401, "UNAUTHORIZED"),
        (&reader(&mary), &own, wrong, 403, "FORBIDDEN"),
        (&owner("another"), &own, wrong, 404, "NOT_FOUND"),
        (&mary, &missing, wrong, 404, "NOT_FOUND"),
        (&operator(), &missing, wrong, 404, "NOT_FOUND"),
        (&mary, &own, wrong, 415, "UNSUPPORTED_MEDIA_TYPE"),
        (&mary, &own, too_long, 413, "PAYLOAD_TOO_LARGE"),
    ] {
        let (body, read) = pieces(1, SITE);
        let refused = harness.world.upload(path, caller, &[header], body).await;
        refused.expect_error(status, code);
        assert!(!read.load(Ordering::Relaxed), "{status}");
    }
    assert_eq!(harness.blobs.count(), (0, 0));
}

#[tokio::test]
async fn cancelled_platforms_refuse_sites_and_suspended_ones_queue_an_operators_deployment() {
    let harness = UploadHarness::new().await;
    let (world, operator) = (&harness.world, operator());
    let moved = async |step: &str| {
        let moved = world
            .change_lifecycle(&harness.platform, step, &operator)
            .await;
        let _ = moved.expect(200);
        world.run_jobs().await;
    };
    moved("suspend").await;
    let waiting = world
        .deploy(&harness.path(), &operator, &[])
        .await
        .expect(202);
    world.run_jobs().await;
    assert_eq!(
        harness.deployments().await[0].status,
        DeploymentStatus::Queued
    );
    moved("restore").await;
    let shown = harness.show(waiting.text("deploymentId"), "").await;
    assert_eq!(shown.text("status"), "active");
    moved("cancel").await;
    let (body, read) = pieces(1, SITE);
    let refused = harness.send(&[], body).await;
    refused.expect_error(409, "INVALID_STATE");
    assert!(!read.load(Ordering::Relaxed));
}

#[tokio::test]
async fn a_service_can_deploy_only_for_members_of_the_platforms_organization() {
    let harness = UploadHarness::new().await;
    let world = &harness.world;
    let member = world.sign_up("ada@example.org").await;
    let stranger = world.sign_up("eve@example.org").await;
    let set_up = world
        .set_up_organization(&member, "engines")
        .await
        .expect(201);
    let other = world
        .set_up_organization(&stranger, "looms")
        .await
        .expect(201);
    for (platform, user, status) in [
        (set_up.text("platformId"), &member, 202),
        (set_up.text("platformId"), &stranger, 404),
        (other.text("platformId"), &member, 404),
        // A platform without an organization has no members.
        (harness.platform.as_str(), &member, 404),
    ] {
        // A raw request: the service identifies the caller from the headers.
        let request = Request::post(platform_path(platform, "/deploy"))
            .header("authorization", format!("Bearer {SERVICE_KEY}"))
            .header("x-core-user-id", &user.user_id);
        let answer = world.cli.raw(request.body(bytes_body(SITE)).unwrap()).await;
        assert_eq!(answer.status, status, "{}", answer.json);
    }
    let created = world.audit("deployment.created").await.swap_remove(0);
    assert_eq!(created.actor_id, member.user_id);
    let credential = json!({ "type": "service", "id": "service-key" });
    assert_eq!(created.metadata.value()["credential"], credential);
}

#[tokio::test]
async fn a_service_can_name_the_deploying_user_and_a_person_cannot() {
    let harness = UploadHarness::new().await;
    let grace = [("x-core-user-id", "grace")];
    let (service, mary) = (operator(), harness.mary());
    for (site, caller, headers, expected) in [
        ("a", &service, &grace[..], "grace"),
        ("b", &service, &[], "service-key"),
        ("c", &mary, &grace, "mary"),
    ] {
        let branch = [headers, &[("x-core-deploy-branch", site)]].concat();
        let made = harness.world.deploy(&harness.path(), caller, &branch).await;
        let made = made.expect(202);
        harness.world.tick(1);
        let newest = harness.deployments().await.swap_remove(0);
        assert_eq!(newest.id.as_str(), made.text("deploymentId"));
        assert_eq!(newest.user_id, expected);
    }
    let nobody = [("x-core-user-id", "")];
    let refused = harness
        .world
        .deploy(&harness.path(), &service, &nobody)
        .await;
    assert_eq!(refused.issues(), ["x-core-user-id: pattern"]);
}
