//! `POST /internal/platform-status`: the flag the gateway obeys and the hold on the platform's jobs, together.

use core_domain::kernel::{Caller, PlatformId, Role};
use core_domain::port::Mode;
use core_domain::use_case::iam::platform_is_suspended;
use core_http::kernel::testing::{Answer, operator};
use futures_util::future::join_all;
use http::StatusCode;
use serde_json::{Value, json};

use super::world::{World, refused, tenant, with_role};

const PATH: &str = "/internal/platform-status";

async fn set(world: &World, platform: &str, status: &str, caller: &Caller) -> Answer {
    let body = json!({ "platformId": platform, "status": status });
    world.post(PATH, caller, body).await
}

/// What the gateway asks.
async fn is_suspended(world: &World, platform: &str) -> bool {
    let mut uow = world.app.store.begin(Mode::Read).await.unwrap();
    let platform = PlatformId::parse(platform).unwrap();
    platform_is_suspended(uow.as_mut(), &platform)
        .await
        .unwrap()
}

async fn hold_of(world: &World, job: &str) -> Value {
    let shown = world.get(&format!("/jobs/{job}"), &operator()).await;
    shown.json["holdReason"].clone()
}

#[tokio::test]
async fn the_flag_and_the_hold_follow_the_status_together_and_twice_is_once() {
    let world = World::new();
    let platform = world.platform("acme").await;
    let job = world.job(&platform).await;
    for (status, suspended, reason) in [
        ("suspended", true, json!("suspension")),
        ("suspended", true, json!("suspension")),
        ("active", false, Value::Null),
        ("active", false, Value::Null),
    ] {
        let answer = set(&world, &platform, status, &operator()).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.json);
        assert_eq!(
            answer.json,
            json!({ "platformId": platform, "status": status })
        );
        assert_eq!(is_suspended(&world, &platform).await, suspended);
        assert_eq!(hold_of(&world, &job).await, reason);
    }
    assert_eq!(world.audited("platform_access.suspended").await, 1);
    assert_eq!(world.audited("platform_access.restored").await, 1);
}

#[tokio::test]
async fn it_sets_nothing_but_flag_and_hold_and_a_restore_in_the_registry_lifts_both() {
    let world = World::new();
    let platform = world.platform("acme").await;
    let job = world.job(&platform).await;
    set(&world, &platform, "suspended", &operator()).await;
    let path = format!("/{platform}");
    let shown = world
        .in_registry("GET", &path, &operator(), Value::Null)
        .await;
    assert_eq!(
        shown.json["status"], "active",
        "the platform's own status stays"
    );
    world.move_platform(&platform, "suspend").await;
    world.move_platform(&platform, "restore").await;
    assert!(!is_suspended(&world, &platform).await);
    assert_eq!(hold_of(&world, &job).await, Value::Null);
}

#[tokio::test]
async fn one_platforms_suspension_is_no_other_ones() {
    let world = World::new();
    let job = world.job("p2").await;
    assert_eq!(
        set(&world, "p1", "suspended", &operator()).await.status,
        StatusCode::OK
    );
    assert!(is_suspended(&world, "p1").await);
    assert!(!is_suspended(&world, "p2").await);
    assert_eq!(hold_of(&world, &job).await, Value::Null);
}

#[tokio::test]
async fn only_services_set_it() {
    let world = World::new();
    for (caller, status, code) in [
        (Caller::Anonymous, 401, "UNAUTHORIZED"),
        (tenant("p1"), 403, "FORBIDDEN"),
        (with_role("p1", Role::Owner), 403, "FORBIDDEN"),
    ] {
        refused(&set(&world, "p1", "suspended", &caller).await, status, code);
    }
    assert!(!is_suspended(&world, "p1").await);
}

#[tokio::test]
async fn what_is_wrong_with_a_body_is_said_and_nothing_is_set() {
    let world = World::new();
    let long = "p".repeat(129);
    for (body, issues) in [
        (json!({}), vec!["platformId: required", "status: required"]),
        (
            json!({ "platformId": "p1", "status": "asleep" }),
            vec!["status: invalid_enum"],
        ),
        (
            json!({ "platformId": "p1", "status": "SUSPENDED" }),
            vec!["status: invalid_enum"],
        ),
        (
            json!({ "platformId": "", "status": null }),
            vec!["platformId: too_short", "status: invalid_type"],
        ),
        (
            json!({ "platformId": long, "status": "suspended" }),
            vec!["platformId: too_long"],
        ),
        (
            json!({ "platformId": 7, "status": ["suspended"] }),
            vec!["platformId: invalid_type", "status: invalid_type"],
        ),
    ] {
        let answer = world.post(PATH, &operator(), body.clone()).await;
        refused(&answer, 400, "VALIDATION_ERROR");
        assert_eq!(answer.issues(), issues, "{body}");
    }
    assert!(!is_suspended(&world, "p1").await);
}

#[tokio::test]
async fn twenty_at_once_suspend_once() {
    let world = World::new();
    let caller = operator();
    let answers = join_all((0..20).map(|_| set(&world, "p1", "suspended", &caller))).await;
    assert!(answers.iter().all(|a| a.status == StatusCode::OK));
    assert!(is_suspended(&world, "p1").await);
    assert_eq!(world.audited("platform_access.suspended").await, 1);
    let key = "again";
    let body = json!({ "platformId": "p1", "status": "active" });
    world.post_with_key(PATH, &caller, key, body.clone()).await;
    set(&world, "p1", "suspended", &caller).await;
    let replayed = world.post_with_key(PATH, &caller, key, body).await;
    assert_eq!(replayed.header("idempotency-replayed"), "true");
    assert!(
        is_suspended(&world, "p1").await,
        "a repeated request does nothing again"
    );
}
