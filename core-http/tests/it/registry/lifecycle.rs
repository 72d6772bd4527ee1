//! Suspending, restoring, cancelling and deleting platforms: the effects on the status, the lifecycle, the audit log,
//! messages, callers and jobs.

use core_domain::access::RecordKey;
use core_domain::kernel::{Caller, Timestamp};
use core_domain::port::{Mode, Repository, Within};
use core_domain::shared::{OutboxMessage, OutboxQuery};
use core_domain::testing::cases;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{World, admin, on_every_store, operator, owner, platform_path};

const DAY: u64 = 86_400;

/// Returns the operation that moves an active platform into a status; `None` for `active`.
fn way_to(status: &str) -> Option<&'static str> {
    match status {
        "suspended" => Some("suspend"),
        "cancelled" => Some("cancel"),
        "deleted" => Some("soft-delete"),
        _ => None,
    }
}

#[tokio::test]
async fn every_operation_is_allowed_from_the_statuses_of_the_table_and_no_others() {
    const ALL: [&str; 4] = ["active", "suspended", "cancelled", "deleted"];
    let world = World::new();
    for (step, sources, target) in [
        ("suspend", &ALL[..1], "suspended"),
        ("restore", &ALL[1..], "active"),
        ("cancel", &ALL[..2], "cancelled"),
        ("soft-delete", &ALL[..3], "deleted"),
        ("delete", &ALL[..], "deleted"),
    ] {
        for status in ALL {
            let platform = world.create_platform(&format!("{step}-{status}")).await;
            if let Some(way) = way_to(status) {
                world.change_lifecycle_as_operator(&platform, way).await;
            }
            let answer = world.change_lifecycle(&platform, step, &operator()).await;
            if sources.contains(&status) {
                let _ = answer.expect(200);
                assert_eq!(world.status(&platform).await, target, "{step} {status}");
            } else {
                let details = &answer.expect_error(409, "INVALID_STATE").json["error"]["details"];
                let wanted = json!({ "status": status, "allowedFrom": sources });
                assert_eq!(*details, wanted, "{step}");
                assert_eq!(world.status(&platform).await, status, "{step}");
            }
        }
    }
}

#[tokio::test]
async fn a_deleted_platform_can_be_restored_for_thirty_days() {
    let world = World::new();
    let late = world.create_platform("late").await;
    let in_time = world.create_platform("in-time").await;
    for platform in [&late, &in_time] {
        world
            .change_lifecycle_as_operator(platform, "soft-delete")
            .await;
    }
    world.tick(30 * DAY - 1);
    world
        .change_lifecycle_as_operator(&in_time, "restore")
        .await;
    let refused = world.change_lifecycle(&late, "restore", &operator()).await;
    refused.expect_error(409, "INVALID_STATE");
    assert_eq!(world.status(&late).await, "deleted");
}

#[tokio::test]
async fn a_reason_is_stored_with_the_platform_and_in_its_lifecycle_with_its_author() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let act = async |caller: &Caller, step: &str, reason: &str| {
        let (path, why) = (platform_path(&platform, step), json!({ "reason": reason }));
        let moved = world.registry.post(caller, &path, why).await.expect(200);
        world.tick(1);
        moved
    };
    let caller = owner(&platform);
    let suspended = act(&caller, "/suspend", "late").await;
    assert_eq!(suspended.text("suspensionReason"), "late");
    assert_eq!(suspended.text("suspendedAt"), "2027-01-15T08:00:01.000Z");
    let restored = act(&operator(), "/restore", "paid").await.json;
    assert!(restored["suspensionReason"].is_null() && restored["suspendedAt"].is_null());
    let cancelled = act(&caller, "/cancel", "enough").await;
    assert_eq!(cancelled.text("cancellationReason"), "enough");
    let path = platform_path(&platform, "/lifecycle");
    let records = world.registry.get(&caller, &path).await.expect(200);
    let fields = "fromStatus toStatus reason triggeredBy triggerType metadata/event";
    let told = records.json["data"].as_array().unwrap().iter();
    let field = |r: &Value, name: &str| r.pointer(&format!("/{name}")).cloned();
    let fields = |r: &Value| fields.split(' ').map(|name| field(r, name)).collect();
    let told: Vec<Vec<Option<Value>>> = told.map(fields).collect();
    let wanted = json!([
        ["active", "cancelled", "enough", "olga", "user", "cancel"],
        [
            "suspended",
            "active",
            "paid",
            "service-key",
            "service",
            "restore"
        ],
        ["active", "suspended", "late", "olga", "user", "suspend"],
        [null, "active", null, "service-key", "service", "create"],
    ]);
    assert_eq!(json!(told), wanted);
}

/// Returns the payloads of the outbox messages, oldest first.
async fn messages(world: &World) -> Vec<Value> {
    let mut uow = world.app.store.begin(Mode::Read).await.unwrap();
    let all = OutboxQuery::DueAt(Timestamp::from_seconds(4_000_000_000));
    let outbox: &mut dyn Repository<OutboxMessage> =
        uow.repositories(RecordKey::for_tests()).outbox_messages();
    let messages = outbox.list(Within::Installation, &all, 100).await.unwrap();
    messages.iter().map(|m| m.payload.clone()).collect()
}

#[tokio::test]
async fn every_operation_writes_one_record_entry_and_message_and_a_refused_one_nothing() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let written = async || {
        let mut counts = Vec::new();
        for list in ["/lifecycle", "/audit?entity=platform"] {
            counts.push(world.count(&platform_path(&platform, list)).await);
        }
        counts.push(messages(&world).await.len() as u64);
        counts
    };
    let mut expected = 1;
    for (step, status, suspended) in [
        ("suspend", "suspended", true),
        ("cancel", "cancelled", true),
        ("soft-delete", "deleted", true),
        ("restore", "active", false),
    ] {
        world.change_lifecycle_as_operator(&platform, step).await;
        expected += 1;
        assert_eq!(written().await, [expected; 3], "{step}");
        let message = json!({ "platformId": platform, "status": status, "suspended": suspended });
        assert_eq!(messages(&world).await.pop(), Some(message));
        if step != "soft-delete" {
            let again = world.change_lifecycle(&platform, step, &operator()).await;
            again.expect_error(409, "INVALID_STATE");
            assert_eq!(written().await, [expected; 3], "{step} refused");
        }
    }
    let actions = world
        .registry
        .get(&operator(), &platform_path(&platform, "/audit"))
        .await;
    let wanted = [
        "platform.restored",
        "platform.deleted",
        "platform.cancelled",
        "platform.suspended",
        "platform.created",
    ];
    assert_eq!(actions.each("action"), wanted);
}

/// Returns whether the platform's callers are refused, and whether the job is held.
async fn effects(world: &World, platform: &str, job: &str) -> (bool, bool) {
    let held = &world.job(job).await["holdReason"];
    assert!(held.is_null() || held == "suspension", "{held}");
    (world.is_suspended(platform).await, !held.is_null())
}

async fn only_operators_can_lift_a_suspension_by_an_operator(world: World) {
    let platform = world.create_platform("engines").await;
    let caller = owner(&platform);
    let try_all = async || {
        for step in ["restore", "cancel", "soft-delete", "delete"] {
            let refused = world.change_lifecycle(&platform, step, &caller).await;
            refused.expect_error(451, "PLATFORM_SUSPENDED");
        }
        let (path, body) = (platform_path(&platform, ""), json!({ "status": "active" }));
        let refused = world.registry.patch(&caller, &path, body).await;
        refused.expect_error(451, "PLATFORM_SUSPENDED");
    };
    world
        .change_lifecycle_as_operator(&platform, "suspend")
        .await;
    try_all().await;
    world
        .change_lifecycle_as_operator(&platform, "restore")
        .await;
    // Owners can lift their own suspension, until an operator suspends the platform too.
    let _ = world
        .change_lifecycle(&platform, "suspend", &caller)
        .await
        .expect(200);
    let by_admin = world
        .change_lifecycle(&platform, "restore", &admin(&platform))
        .await;
    by_admin.expect_error(403, "FORBIDDEN");
    let _ = world
        .change_lifecycle(&platform, "restore", &caller)
        .await
        .expect(200);
    let _ = world
        .change_lifecycle(&platform, "suspend", &caller)
        .await
        .expect(200);
    world.set_platform_status(&platform, "suspended").await;
    try_all().await;
    assert_eq!(world.audit("platform_access.suspended").await.len(), 1);
    world.set_platform_status(&platform, "active").await;
    assert!(!world.is_suspended(&platform).await);
}

async fn each_platform_of_an_organization_is_suspended_independently(world: World) {
    let first = world.create_platform("engines").await;
    let caller = owner(&first);
    let second = world.platform_by(&caller, "second").await;
    let ask = async |platform: &str, suspended: bool| {
        let job = json!({ "platformId": platform, "planTier": "x", "billingEmail": "a@b.test" });
        let jobs = format!("/api/v1/provision/jobs?platformId={platform}");
        let answers = [
            world
                .registry
                .get(&caller, &platform_path(platform, ""))
                .await,
            world.provisioning.get(&caller, &jobs).await,
            world
                .provisioning
                .post(&caller, "/api/v1/provision/platform", job)
                .await,
            world
                .deploy(&platform_path(platform, "/deploy"), &caller, &[])
                .await,
        ];
        for answer in answers {
            let code = if suspended { "PLATFORM_SUSPENDED" } else { "" };
            assert_eq!(answer.code(), code, "{}", answer.json);
        }
    };
    for platform in [&second, &first] {
        ask(platform, false).await;
    }
    world.change_lifecycle_as_operator(&second, "suspend").await;
    ask(&second, true).await;
    ask(&first, false).await;
}

on_every_store! {
    only_operators_can_lift_a_suspension_by_an_operator,
    each_platform_of_an_organization_is_suspended_independently,
}

#[tokio::test]
async fn a_restore_lifts_a_suspension_by_another_service() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let job = world.provision(&platform).await;
    world.set_platform_status(&platform, "suspended").await;
    assert_eq!(effects(&world, &platform, &job).await, (true, true));
    assert_eq!(world.status(&platform).await, "active");
    for step in ["cancel", "restore"] {
        world.change_lifecycle_as_operator(&platform, step).await;
    }
    assert_eq!(effects(&world, &platform, &job).await, (false, false));
}

/// Returns the last status in a platform's lifecycle. Asserts that each record starts with the status at which the
/// previous one ended.
async fn last_status(world: &World, platform: &str) -> Value {
    let path = platform_path(platform, "/lifecycle?limit=100");
    let records = world.get_record(&path).await;
    let records = records.json["data"].as_array().unwrap().clone();
    records.iter().rev().fold(Value::Null, |status, record| {
        assert_eq!(record["fromStatus"], status);
        record["toStatus"].clone()
    })
}

async fn apply_step(world: &World, platform: &str, job: &str, step: &str) {
    let answer = if ["active", "suspended", "deleted"].contains(&step) {
        let (path, body) = (platform_path(platform, ""), json!({ "status": step }));
        world.patch_record(&path, body).await
    } else {
        world.change_lifecycle(platform, step, &operator()).await
    };
    world.tick(1);
    let status = answer.status.as_u16();
    assert!([200, 409].contains(&status), "{step}: {}", answer.json);
    let shown = world
        .registry
        .get(&operator(), &platform_path(platform, ""))
        .await
        .json;
    assert_eq!(last_status(world, platform).await, shown["status"]);
    let suspended = !shown["suspendedAt"].is_null();
    let effects = effects(world, platform, job).await;
    assert_eq!(effects, (suspended, suspended), "{step}: {shown}");
    assert!(shown["status"] != "suspended" || suspended);
    assert!(shown["status"] != "active" || !suspended);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(32)))]
    #[test]
    fn status_lifecycle_refusals_and_holds_agree_after_any_sequence_of_operations(
        steps in prop::collection::vec(prop::sample::select(&[
            "suspend", "restore", "cancel", "soft-delete", "active", "suspended", "deleted",
        ][..]), 1..15),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = World::new();
            let platform = world.create_platform("engines").await;
            let job = world.provision(&platform).await;
            for step in steps {
                apply_step(&world, &platform, &job, step).await;
            }
        });
    }
}
