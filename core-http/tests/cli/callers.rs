//! Who may deploy, decided before a byte of the upload is read.

use core_domain::kernel::{
    Caller, Membership, OrganizationId, PermissionSet, PlatformId, Role, UserId,
};
use core_http::kernel::bytes_body;
use core_http::kernel::testing::{call, operator};
use http::StatusCode;
use serde_json::Value;

use crate::world::{SITE, World, pieces};

/// A member whose organization lets its members look alone.
fn reader(platform: &str) -> Caller {
    Caller::User {
        user_id: UserId::parse("rita").unwrap(),
        session_id: None,
        membership: Some(Membership {
            organization_id: OrganizationId::parse("readers").unwrap(),
            platform_id: PlatformId::parse(platform),
            role: Role::Member,
            permissions: PermissionSet::new(["*:read"]),
            operates: false,
        }),
    }
}

#[tokio::test]
async fn who_may_not_deploy_is_refused_before_a_byte_is_read() {
    let world = World::new().await;
    let missing = "/api/v1/platforms/no-such-platform/deploy".to_owned();
    let own = world.path();
    for (caller, path, expected) in [
        (Caller::Anonymous, &own, StatusCode::UNAUTHORIZED),
        (reader(&world.platform), &own, StatusCode::FORBIDDEN),
        (world.other_tenant(), &own, StatusCode::NOT_FOUND),
        (operator(), &missing, StatusCode::NOT_FOUND),
        (world.ada(), &missing, StatusCode::NOT_FOUND),
    ] {
        let (body, read) = pieces(1, SITE);
        // Whatever else is wrong is not told to who may not know.
        let headers = [("content-type", "text/html"), ("x-core-deploy-branch", " ")];
        let refused = world.deploy_as(&caller, path, &headers, body).await;
        assert_eq!(refused.status, expected, "{caller:?} {path}");
        assert!(
            !read.load(std::sync::atomic::Ordering::Relaxed),
            "{caller:?}"
        );
    }
    assert_eq!(world.kept.count(), 0);
}

#[tokio::test]
async fn a_foreign_platform_is_refused_exactly_as_a_missing_one() {
    let world = World::new().await;
    let eve = world.other_tenant();
    let missing = "/api/v1/platforms/no-such-platform/deploy";
    let mut answers = Vec::new();
    for path in [world.path().as_str(), missing] {
        let answer = world.deploy_as(&eve, path, &[], bytes_body(SITE)).await;
        let mut error = answer.json["error"].clone();
        error["requestId"] = Value::Null;
        answers.push((answer.status, error));
    }
    assert_eq!(answers[0], answers[1]);
}

#[tokio::test]
async fn a_cancelled_platform_takes_no_site_and_a_suspended_one_keeps_it_waiting() {
    let world = World::new().await;
    world.move_platform("suspend").await;
    let waiting = world.deploy(&[], SITE).await;
    assert_eq!(waiting.status, StatusCode::ACCEPTED);
    assert_eq!(waiting.json["status"], "queued");
    world.move_platform("restore").await;
    world.move_platform("cancel").await;
    let (body, read) = pieces(1, SITE);
    let refused = world
        .deploy_as(&world.ada(), &world.path(), &[], body)
        .await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(refused.code(), "INVALID_STATE");
    assert!(!read.load(std::sync::atomic::Ordering::Relaxed));
}

#[tokio::test]
async fn a_service_may_say_for_whom_it_deploys_and_nobody_else() {
    let world = World::new().await;
    let for_grace = [("x-core-user-id", "grace")];
    for (n, (caller, headers, expected)) in [
        (operator(), &for_grace[..], "grace"),
        (operator(), &[][..], "service-key"),
        (world.ada(), &for_grace[..], "ada"),
    ]
    .into_iter()
    .enumerate()
    {
        let branch = format!("b{n}");
        let mut headers = headers.to_vec();
        headers.push(("x-core-deploy-branch", &branch));
        let path = world.path();
        let made = world
            .deploy_as(&caller, &path, &headers, bytes_body(SITE))
            .await;
        assert_eq!(made.status, StatusCode::ACCEPTED);
        assert_eq!(world.user_of(&made.json["deploymentId"]).await, expected);
    }
    let nobody = [("x-core-user-id", "")];
    let path = world.path();
    let refused = world
        .deploy_as(&operator(), &path, &nobody, bytes_body(SITE))
        .await;
    assert_eq!(refused.issues(), ["x-core-user-id: pattern"]);
}

#[tokio::test]
async fn who_may_not_look_sees_no_deployment() {
    let world = World::new().await;
    let made = world.deploy(&[], SITE).await;
    let path = world.show_path(&made.json["deploymentId"]);
    for (caller, expected) in [
        (Caller::Anonymous, StatusCode::UNAUTHORIZED),
        (world.other_tenant(), StatusCode::NOT_FOUND),
        (reader(&world.platform), StatusCode::OK),
        (operator(), StatusCode::OK),
    ] {
        let answer = call(&world.service, "GET", &path, &caller, Value::Null).await;
        assert_eq!(answer.status, expected, "{caller:?}");
    }
    let other = world.new_platform("other").await;
    let elsewhere = path.replace(&world.platform, &other);
    let answer = call(&world.service, "GET", &elsewhere, &operator(), Value::Null).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
}
