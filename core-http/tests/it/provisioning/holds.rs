//! Holds, which keep jobs from running. They are set by operators and by the suspension of a platform.

use core_domain::access::authorize_operator;
use core_domain::kernel::{PlatformId, Reason};
use core_domain::port::transact;
use core_domain::provisioning::{HoldScope, LaneKey};
use core_domain::use_case::provisioning;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::world::{
    Api, JobCommand, World, on_every_store, operator, platform_path, send_concurrently,
};

impl World {
    /// Sets an operator's hold, or releases it if `on` is false.
    pub(super) async fn hold(&self, held: &HoldScope, on: bool) {
        let cx = &self.cx();
        let scope = &authorize_operator(cx).unwrap();
        let why = &Reason::parse("repairs").unwrap();
        let done = transact(self.app.store.as_ref(), |uow, _| {
            let held = held.clone();
            Box::pin(async move {
                if on {
                    provisioning::set_operator_hold(cx, scope, uow, held, Some(why)).await
                } else {
                    provisioning::lift_operator_hold(cx, scope, uow, held).await
                }
            })
        });
        done.await.unwrap();
    }

    async fn hold_reason(&self, job: &str) -> Value {
        self.job(job).await["holdReason"].clone()
    }
}

async fn an_operators_hold_blocks_matching_jobs_until_it_is_released(world: World) {
    let platform = world.create_platform("engines").await;
    let job = world.provision(&platform).await;
    let other = world.create_platform("looms").await;
    let lane = |platform: &str| LaneKey::platform(&PlatformId::parse(platform).unwrap());
    for (held, holds) in [
        (HoldScope::All, true),
        (HoldScope::Kind("platform".to_owned()), true),
        (HoldScope::Kind("deploy".to_owned()), false),
        (HoldScope::Lane(lane(&platform)), true),
        (HoldScope::Lane(lane(&other)), false),
    ] {
        // A repetition has no effect.
        world.hold(&held, true).await;
        world.hold(&held, true).await;
        let reason = if holds { json!("repairs") } else { Value::Null };
        assert_eq!(world.hold_reason(&job).await, reason, "{held:?}");
        let next = world.next_job().await;
        assert_eq!(next, (!holds).then(|| job.clone()), "{held:?}");
        world.hold(&held, false).await;
        world.hold(&held, false).await;
        assert_eq!(world.hold_reason(&job).await, Value::Null, "{held:?}");
        assert_eq!(world.next_job().await.as_deref(), Some(&*job), "{held:?}");
    }
    for action in ["job_hold.set", "job_hold.lifted"] {
        let entries = world.audit(action).await;
        assert_eq!(entries.len(), 5, "{action}");
        assert!(entries.iter().all(|entry| entry.actor_id == "service-key"));
    }
}

async fn a_suspension_holds_all_jobs_but_removals_whatever_holds_are_released(world: World) {
    let platform = world.create_platform("engines").await;
    let why = json!({ "reason": "late" });
    let path = platform_path(&platform, "/suspend");
    let suspended = world.registry.post(&operator(), &path, why).await;
    let _ = suspended.expect(200);
    let job = world.provision(&platform).await;
    assert_eq!(world.hold_reason(&job).await, "late");
    assert_eq!(world.next_job().await, None);
    let lane = LaneKey::platform(&PlatformId::parse(&platform).unwrap());
    let held = HoldScope::Lane(lane);
    world.hold(&held, true).await;
    world.hold(&held, false).await;
    assert_eq!(world.next_job().await, None);
    // An ended job is not held, even if its lane is.
    let ended = world.provision(&platform).await;
    world.operate(&ended, JobCommand::Cancel).await;
    for shown in world.jobs(&platform).await {
        let held = shown["jobId"] != *ended;
        assert_eq!(shown["holdReason"].is_string(), held, "{shown}");
    }
    let removal = world.deprovision(&platform, "prod").await;
    assert_eq!(world.hold_reason(&removal).await, Value::Null);
    assert_eq!(world.next_job().await, Some(removal));
    world.run_jobs().await;
    let restored = world
        .change_lifecycle(&platform, "restore", &operator())
        .await;
    let _ = restored.expect(200);
    assert_eq!(world.next_job().await, Some(job));
}

const STATUS: &str = "/internal/platform-status";

async fn set(api: &Api, platform: &str, status: &str) {
    let body = json!({ "platformId": platform, "status": status });
    let answer = api.post(&operator(), STATUS, body.clone()).await;
    assert_eq!(answer.expect(200).json, body);
}

async fn repeated_suspensions_by_other_services_take_effect_once(world: World) {
    let platform = world.create_platform("engines").await;
    let job = world.provision(&platform).await;
    for (count, api) in (1..).zip([&world.iam, &world.provisioning]) {
        for (status, action) in [("suspended", "suspended"), ("active", "restored")] {
            join_all((0..4).map(|_| set(api, &platform, status))).await;
            set(api, &platform, status).await;
            let suspended = status == "suspended";
            assert_eq!(world.is_suspended(&platform).await, suspended);
            assert_eq!(world.hold_reason(&job).await.is_null(), !suspended);
            let entries = world.audit(&format!("platform_access.{action}")).await;
            assert_eq!(entries.len(), count);
        }
        assert_eq!(world.status(&platform).await, "active");
        let nothing = json!({ "platformId": "nothing", "status": "suspended" });
        let refused = api.post(&operator(), STATUS, nothing).await;
        refused.expect_error(404, "NOT_FOUND");
    }
    assert_eq!(world.audit("job_hold.set").await.len(), 2);
}

const HOLDS: &str = "/api/v1/provision/holds";

async fn operators_create_and_delete_holds_over_http(world: World) {
    let platform = world.create_platform("engines").await;
    let job = world.provision(&platform).await;
    let (kind, id) = (Value::Null, Value::Null);
    for (scope, kind, id) in [
        ("all", kind.clone(), id.clone()),
        ("kind", json!("platform"), id),
        ("platform", kind, json!(platform)),
    ] {
        let body = json!({ "scope": scope, "kind": kind, "platformId": id, "reason": "repairs" });
        let sets = (0..4).map(|_| {
            let (api, body) = (world.provisioning.clone(), body.clone());
            async move { api.post(&operator(), HOLDS, body).await }
        });
        let mut set = send_concurrently(sets).await;
        set.sort_by_key(|answer| std::cmp::Reverse(answer.status));
        let new = set.remove(0).expect(201);
        let hold = new.id();
        let wanted = json!({
            "id": hold, "scope": scope, "kind": kind, "platformId": id, "source": "operator",
            "reason": "repairs", "actor": "service-key", "createdAt": new.json["createdAt"],
        });
        assert_eq!(new.json, wanted);
        for known in set {
            assert_eq!(known.expect(200).json, wanted);
        }
        let path = format!("{HOLDS}/{hold}");
        let shown = world.provisioning.get(&operator(), &path).await.expect(200);
        assert_eq!(shown.json, wanted);
        let listed = world.provisioning.get(&operator(), HOLDS).await.expect(200);
        assert_eq!((listed.total(), listed.each("id")), (Some(1), vec![&*hold]));
        assert_eq!(world.hold_reason(&job).await, "repairs");
        assert_eq!(world.next_job().await, None, "{scope}");
        let lifted = world.provisioning.delete(&operator(), &path).await;
        assert_eq!(lifted.expect(204).json, Value::Null);
        let again = world.provisioning.delete(&operator(), &path).await;
        again.expect_error(404, "NOT_FOUND");
        assert_eq!(world.hold_reason(&job).await, Value::Null);
        assert_eq!(world.next_job().await.as_deref(), Some(&*job), "{scope}");
    }
    for action in ["job_hold.set", "job_hold.lifted"] {
        assert_eq!(world.audit(action).await.len(), 3, "{action}");
    }
}

on_every_store! {
    an_operators_hold_blocks_matching_jobs_until_it_is_released,
    a_suspension_holds_all_jobs_but_removals_whatever_holds_are_released,
    repeated_suspensions_by_other_services_take_effect_once,
    operators_create_and_delete_holds_over_http,
}

#[tokio::test]
async fn the_hold_of_a_suspension_is_listed_and_ends_only_with_the_suspension() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    world
        .change_lifecycle_as_operator(&platform, "suspend")
        .await;
    let listed = world.provisioning.get(&operator(), HOLDS).await.expect(200);
    let hold = &listed.json["data"][0];
    let told = [&hold["source"], &hold["scope"], &hold["platformId"]];
    assert_eq!(told, ["suspension", "platform", &*platform]);
    let path = format!("{HOLDS}/{}", hold["id"].as_str().unwrap());
    let refused = world.provisioning.delete(&operator(), &path).await;
    refused.expect_error(409, "INVALID_STATE");
    world
        .change_lifecycle_as_operator(&platform, "restore")
        .await;
    let gone = world.provisioning.get(&operator(), &path).await;
    gone.expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_hold_names_an_existing_target_and_no_other_fields() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    for (body, status, field) in [
        (json!({ "scope": "kind" }), 400, "kind"),
        (json!({ "scope": "kind", "kind": "weaving" }), 400, "kind"),
        (json!({ "scope": "platform" }), 400, "platformId"),
        (json!({ "scope": "all", "kind": "platform" }), 400, "kind"),
        (
            json!({ "scope": "all", "platformId": platform }),
            400,
            "platformId",
        ),
        (
            json!({ "scope": "platform", "platformId": "nothing" }),
            404,
            "",
        ),
    ] {
        let asked = world.provisioning.post(&operator(), HOLDS, body).await;
        if status == 404 {
            asked.expect_error(404, "NOT_FOUND");
            continue;
        }
        let refused = asked.expect_error(400, "VALIDATION_ERROR");
        let issue = &refused.json["error"]["details"]["issues"][0];
        assert_eq!(issue["path"], json!([field]));
    }
    assert!(world.audit("job_hold.set").await.is_empty());
}
