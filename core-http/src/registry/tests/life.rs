//! Suspending, restoring, cancelling, deleting: status, lifecycle, audit, flag, hold and job in one.

use core_domain::kernel::{PlatformId, Timestamp};
use core_domain::port::Mode;
use core_domain::provisioning::{JobHoldQuery, LaneKey};
use core_domain::shared::OutboxQuery;
use core_domain::use_case::iam::platform_is_suspended;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{Says, World, at, owner};
use crate::kernel::testing::{Answer, operator};

const DAY: u64 = 86_400;

impl World {
    pub(super) async fn moved(&self, platform: &str, step: &str) -> Answer {
        let answer = match step {
            "soft-delete" => self.delete(&operator(), &at(platform, "")).await,
            step => {
                self.post(&operator(), &at(platform, &format!("/{step}")), Value::Null)
                    .await
            }
        };
        self.tick(1);
        answer
    }

    pub(super) async fn status(&self, platform: &str) -> Value {
        self.get(&operator(), &at(platform, ""))
            .await
            .expect(200)
            .json["status"]
            .clone()
    }

    /// Whether the gateway refuses its callers, and whether its jobs are held.
    pub(super) async fn suspended(&self, platform: &str) -> (bool, bool) {
        let id = PlatformId::parse(platform).unwrap();
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let flag = platform_is_suspended(uow.as_mut(), &id).await.unwrap();
        let on_lane = JobHoldQuery::OnLane(LaneKey::platform(&id));
        let holds = uow.job_holds().list(&on_lane, 10).await.unwrap();
        (flag, !holds.is_empty())
    }
}

/// How a platform gets into a status.
fn way_to(status: &str) -> &'static [&'static str] {
    match status {
        "active" => &[],
        "suspended" => &["suspend"],
        "cancelled" => &["cancel"],
        "deleted" => &["soft-delete"],
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn every_move_is_made_from_the_statuses_of_the_table_and_refused_from_the_others() {
    let table: [(&str, &[&str], &str); 5] = [
        ("suspend", &["active"], "suspended"),
        ("restore", &["suspended", "cancelled", "deleted"], "active"),
        ("cancel", &["active", "suspended"], "cancelled"),
        (
            "soft-delete",
            &["active", "suspended", "cancelled"],
            "deleted",
        ),
        (
            "delete",
            &["active", "suspended", "cancelled", "deleted"],
            "deleted",
        ),
    ];
    let world = World::new();
    for (step, sources, target) in table {
        for status in ["active", "suspended", "cancelled", "deleted"] {
            let platform = world.platform(&format!("{step}-{status}")).await;
            for way in way_to(status) {
                world.moved(&platform, way).await.expect(200);
            }
            let answer = world.moved(&platform, step).await;
            if sources.contains(&status) {
                assert_eq!(
                    answer.status.as_u16(),
                    200,
                    "{step} {status}: {}",
                    answer.json
                );
                let shown = &answer.json;
                assert!(
                    step == "soft-delete" || shown["status"] == target,
                    "{step} {status}: {shown}"
                );
                assert_eq!(world.status(&platform).await, target, "{step} {status}");
            } else {
                let answer = answer.refused(409, "INVALID_STATE");
                let details = &answer.json["error"]["details"];
                assert_eq!(details["status"], status, "{step}");
                assert_eq!(details["allowedFrom"], json!(sources), "{step}");
                assert_eq!(world.status(&platform).await, status, "{step}");
            }
        }
    }
}

#[tokio::test]
async fn a_deleted_platform_is_restored_for_thirty_days() {
    let world = World::new();
    let (in_time, late) = (
        world.platform("in-time").await,
        world.platform("late").await,
    );
    world.delete(&operator(), &at(&late, "")).await.expect(200);
    world.tick(1);
    world
        .delete(&operator(), &at(&in_time, ""))
        .await
        .expect(200);
    world.tick(30 * DAY);
    world.moved(&in_time, "restore").await.expect(200);
    world
        .moved(&late, "restore")
        .await
        .refused(409, "INVALID_STATE");
    assert_eq!(world.status(&late).await, "deleted");
}

#[tokio::test]
async fn a_reason_is_kept_with_the_platform_and_in_its_lifecycle_by_who_gave_it() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let why = |text: &str| json!({ "reason": text });
    let caller = owner(&platform);
    let suspended = world
        .post(&caller, &at(&platform, "/suspend"), why("late"))
        .await
        .expect(200);
    assert_eq!(suspended.json["suspensionReason"], "late");
    assert_eq!(suspended.json["suspendedAt"], "2027-01-15T08:00:01.000Z");
    world.tick(1);
    let restored = world
        .post(&operator(), &at(&platform, "/restore"), why("paid"))
        .await
        .expect(200);
    assert_eq!(
        (
            &restored.json["suspensionReason"],
            &restored.json["suspendedAt"]
        ),
        (&Value::Null, &Value::Null)
    );
    world.tick(1);
    let cancelled = world
        .post(&caller, &at(&platform, "/cancel"), why("enough"))
        .await
        .expect(200);
    assert_eq!(cancelled.json["cancellationReason"], "enough");
    let rows = world
        .get(&caller, &at(&platform, "/lifecycle"))
        .await
        .expect(200);
    let told: Vec<_> = rows.json["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| {
            json!([
                r["fromStatus"],
                r["toStatus"],
                r["reason"],
                r["triggeredBy"],
                r["triggerType"]
            ])
        })
        .collect();
    let wanted = [
        json!(["active", "cancelled", "enough", "olga", "user"]),
        json!(["suspended", "active", "paid", "service-key", "service"]),
        json!(["active", "suspended", "late", "olga", "user"]),
        json!([null, "active", null, "service-key", "service"]),
    ];
    assert_eq!(told, wanted);
    let actions = world
        .get(&caller, &at(&platform, "/audit?entity=platform"))
        .await
        .expect(200);
    let wanted = [
        "platform.cancelled",
        "platform.restored",
        "platform.suspended",
        "platform.created",
    ];
    assert_eq!(actions.each("action"), wanted);
}

#[tokio::test]
async fn status_flag_and_hold_move_together() {
    let world = World::new();
    let platform = world.platform("engines").await;
    assert_eq!(world.suspended(&platform).await, (false, false));
    for (step, held) in [
        ("suspend", true),
        ("restore", false),
        ("suspend", true),
        // Whoever is suspended stays so until restored, whatever else happens.
        ("cancel", true),
        ("soft-delete", true),
        ("restore", false),
        ("cancel", false),
        ("restore", false),
    ] {
        world.moved(&platform, step).await.expect(200);
        assert_eq!(world.suspended(&platform).await, (held, held), "{step}");
    }
    for (status, held) in [
        ("suspended", true),
        ("active", false),
        ("deleted", false),
        ("suspended", true),
    ] {
        world
            .patch(&operator(), &at(&platform, ""), json!({ "status": status }))
            .await
            .expect(200);
        assert_eq!(world.suspended(&platform).await, (held, held), "{status}");
    }
}

#[tokio::test]
async fn a_restore_lifts_a_suspension_that_was_set_from_outside() {
    let world = World::new();
    let outside = crate::provisioning::service(world.app.clone()).unwrap();
    let platform = world.platform("engines").await;
    let set = json!({ "platformId": platform, "status": "suspended" });
    let caller = operator();
    let path = "/internal/platform-status";
    crate::kernel::testing::call(&outside, "POST", path, &caller, set)
        .await
        .expect(200);
    assert_eq!(world.suspended(&platform).await, (true, true));
    assert_eq!(world.status(&platform).await, "active");
    world.moved(&platform, "cancel").await.expect(200);
    world.moved(&platform, "restore").await.expect(200);
    assert_eq!(world.suspended(&platform).await, (false, false));
}

#[tokio::test]
async fn every_move_writes_one_lifecycle_record_one_audit_entry_and_one_message_and_a_refused_one_nothing()
 {
    let world = World::new();
    let platform = world.platform("engines").await;
    let written = async || {
        let total = async |path: &str| {
            let list = world
                .get(&operator(), &at(&platform, path))
                .await
                .expect(200);
            list.json["pagination"]["total"].as_u64().unwrap()
        };
        let later = Timestamp::from_seconds(4_000_000_000);
        let mut uow = world.app.store.begin(Mode::Read).await.unwrap();
        let messages = uow
            .outbox_messages()
            .count(&OutboxQuery::DueAt(later))
            .await
            .unwrap();
        [total("/lifecycle").await, total("/audit").await, messages]
    };
    let mut expected = written().await;
    assert_eq!(expected, [1, 1, 1]);
    for step in [
        "suspend",
        "restore",
        "suspend",
        "cancel",
        "restore",
        "soft-delete",
        "restore",
    ] {
        world.moved(&platform, step).await.expect(200);
        expected = expected.map(|count| count + 1);
        assert_eq!(written().await, expected, "{step}");
        let repeated = if step == "soft-delete" {
            "cancel"
        } else {
            step
        };
        world
            .moved(&platform, repeated)
            .await
            .refused(409, "INVALID_STATE");
        assert_eq!(written().await, expected, "{step} refused");
    }
}

/// The story a platform's lifecycle tells, oldest first, each record beginning where the one before it ended.
async fn told(world: &World, platform: &str) -> Value {
    let rows = world
        .get(&operator(), &at(platform, "/lifecycle?limit=100"))
        .await
        .expect(200);
    let mut status = Value::Null;
    for row in rows.json["data"].as_array().unwrap().iter().rev() {
        assert_eq!(row["fromStatus"], status);
        status = row["toStatus"].clone();
    }
    status
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn whatever_is_asked_in_whatever_order_status_story_flag_and_hold_agree(
        steps in prop::collection::vec(prop::sample::select(&[
            "suspend", "restore", "cancel", "soft-delete", "active", "suspended", "deleted",
        ][..]), 1..15),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = World::new();
            let platform = world.platform("engines").await;
            for step in steps {
                let answer = match step {
                    "active" | "suspended" | "deleted" => {
                        let body = json!({ "status": step });
                        let answer = world.patch(&operator(), &at(&platform, ""), body).await;
                        world.tick(1);
                        answer
                    }
                    step => world.moved(&platform, step).await,
                };
                assert!([200, 409].contains(&answer.status.as_u16()), "{}", answer.json);
                let shown = world.get(&operator(), &at(&platform, "")).await.expect(200).json;
                assert_eq!(told(&world, &platform).await, shown["status"]);
                let (flag, held) = world.suspended(&platform).await;
                let suspended = !shown["suspendedAt"].is_null();
                assert_eq!((flag, held), (suspended, suspended), "{step}: {shown}");
                assert!(shown["status"] != "suspended" || suspended);
                assert!(shown["status"] != "active" || !suspended);
            }
        });
    }
}
