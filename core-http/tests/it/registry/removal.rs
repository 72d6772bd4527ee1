//! Deletions: dry runs, cascades, and the hard deletion of platforms.

use core_domain::access::RecordKey;
use core_domain::iam::MemberQuery;
use core_domain::kernel::{Caller, Limits, OrganizationId, Role, UserId};
use core_domain::port::{Infrastructure, Mode, ObjectRequest, ResourceRef, Within};
use core_domain::registry::ResourceType;
use serde_json::{Value, json};

use crate::world::{JobCommand, PLATFORMS, World, on_every_store, operator, owner, platform_path};

#[tokio::test]
async fn a_dry_run_returns_the_plan_and_only_writes_an_audit_entry() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let parent = world.tenant(&platform, "parent").await;
    let child = world.subtenant(&platform, &parent, "child").await;
    let leaf = world.tenant(&platform, "leaf").await;
    let gone = world.subtenant(&platform, &child, "gone").await;
    let first = world.resource(&platform, &child, "a-db").await;
    world.resource(&platform, &parent, "b-db").await;
    world.workspace_stack(&platform, &parent, "shop").await;
    world.activate_feature(&platform, &child, "search").await;
    world.run_jobs().await;
    let removed = world.resource(&platform, &parent, "c-db").await;
    for path in [format!("/resources/{removed}"), format!("/entities/{gone}")] {
        world.delete_record(&platform_path(&platform, &path)).await;
    }
    let one = format!("/entities/{parent}?dryRun=true&cascade=true");
    for (method, rest, [entities, resources, stacks, features]) in [
        ("DELETE", "?dryRun=true", [0, 0, 0, 0]),
        ("POST", "/delete?dryRun=true", [3, 3, 1, 1]),
        ("DELETE", &one, [2, 3, 1, 1]),
        (
            "DELETE",
            &format!("/entities/{leaf}?dryRun=true"),
            [1, 0, 0, 0],
        ),
        (
            "DELETE",
            &format!("/resources/{first}?dryRun=true"),
            [0, 1, 0, 0],
        ),
    ] {
        let path = platform_path(&platform, rest);
        let asked = world
            .registry
            .send(&operator(), method, &path, &[], Value::Null)
            .await;
        let plan = json!({
            "entities": entities, "resources": resources, "stacks": stacks, "features": features,
            "dnsRecords": 0, "domains": 0,
        });
        assert_eq!(
            asked.expect(200).json,
            json!({ "dryRun": true, "plan": &plan })
        );
        world.tick(1);
        let marks = platform_path(&platform, "/audit?limit=1");
        let marks = world.get_record(&marks).await;
        let action = marks.each("action")[0];
        assert!(action.ends_with(".deletion_planned"), "{action}");
        let told = &marks.json["data"][0]["after"];
        let mut wanted = plan;
        wanted["dryRun"] = json!(true);
        assert_eq!(told, &wanted, "{rest}");
    }
    world.run_jobs().await;
    let kept = world
        .registry
        .get(&operator(), &platform_path(&platform, ""))
        .await;
    assert_eq!(
        (kept.text("status"), kept.header("etag")),
        ("active", "\"1\"")
    );
    for (list, count) in [("/entities", 3), ("/resources", 3), ("/lifecycle", 1)] {
        assert_eq!(
            world.count(&platform_path(&platform, list)).await,
            count,
            "{list}"
        );
    }
}

#[tokio::test]
async fn a_dry_run_is_refused_like_the_real_deletion() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let parent = world.tenant(&platform, "parent").await;
    let child = world.subtenant(&platform, &parent, "child").await;
    let resource = world.resource(&platform, &child, "engines-db").await;
    let ask = async |caller: &Caller, rest: &str, tag: &str| {
        let path = platform_path(&platform, rest);
        let tag: &[(&str, &str)] = &[("if-match", tag)];
        world
            .registry
            .send(caller, "DELETE", &path, tag, Value::Null)
            .await
    };
    let of_parent = format!("/entities/{parent}?dryRun=true");
    let of_child = format!("/entities/{child}?dryRun=true");
    let of_resource = format!("/resources/{resource}?dryRun=true");
    let tree = format!("{of_parent}&cascade=true");
    let caller = owner(&platform);
    for (rest, tag, status, code) in [
        (&*of_parent, "*", 409, "CONFLICT"),
        (&of_child, "*", 409, "CONFLICT"),
        (&tree, "*", 403, "FORBIDDEN"),
        ("?dryRun=true", "\"9\"", 412, "VERSION_CONFLICT"),
        (&of_parent, "\"9\"", 412, "VERSION_CONFLICT"),
        (&of_resource, "\"9\"", 412, "VERSION_CONFLICT"),
        ("?dryRun=maybe", "*", 400, "VALIDATION_ERROR"),
        (
            &format!("/entities/{parent}?cascade=7"),
            "*",
            400,
            "VALIDATION_ERROR",
        ),
    ] {
        ask(&caller, rest, tag).await.expect_error(status, code);
    }
    for rest in [
        format!("/resources/{resource}"),
        format!("/entities/{child}"),
    ] {
        world.delete_record(&platform_path(&platform, &rest)).await;
    }
    for rest in [&of_child, &of_resource] {
        ask(&caller, rest, "*").await.expect_error(404, "NOT_FOUND");
    }
    world.delete_record(&platform_path(&platform, "")).await;
    ask(&caller, "?dryRun=true", "*")
        .await
        .expect_error(409, "INVALID_STATE");
}

#[tokio::test]
async fn a_dry_run_refuses_a_resource_that_a_feature_runs_as() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    world.activate_feature(&platform, &entity, "search").await;
    world.run_jobs().await;
    let listed = world
        .get_record(&platform_path(&platform, "/resources"))
        .await;
    let worker = format!("/resources/{}", listed.each("id")[0]);
    for rest in [worker.clone(), format!("{worker}?dryRun=true")] {
        let path = platform_path(&platform, &rest);
        let refused = world.registry.delete(&operator(), &path).await;
        refused.expect_error(409, "CONFLICT");
    }
}

#[tokio::test]
async fn a_cascade_removes_the_provider_objects_of_its_entities() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let parent = world.tenant(&platform, "parent").await;
    let child = world.subtenant(&platform, &parent, "child").await;
    let other = world.tenant(&platform, "other").await;
    for (entity, name) in [(&parent, "a-db"), (&child, "b-db"), (&other, "c-db")] {
        world.resource(&platform, entity, name).await;
        create_object(&world, &platform, name).await;
    }
    world.resource(&platform, &child, "foreign-db").await;
    create_object(&world, "another", "foreign-db").await;
    world.activate_feature(&platform, &child, "search").await;
    world.run_jobs().await;
    assert_eq!(world.provider.names().len(), 5);
    let path = platform_path(&platform, &format!("/entities/{parent}?cascade=true"));
    let _ = world.registry.delete(&operator(), &path).await.expect(200);
    // An object whose name is recorded again before the job runs is in use again.
    world.resource(&platform, &other, "b-db").await;
    world.run_jobs().await;
    assert_eq!(world.provider.names(), ["b-db", "c-db", "foreign-db"]);
    let jobs = world.jobs(&platform).await;
    let told = (&jobs[0]["kind"], &jobs[0]["status"]);
    assert_eq!(told, (&json!("entity.remove"), &json!("COMPLETED")));
}

#[tokio::test]
async fn a_cascade_above_the_limit_is_refused_also_as_a_dry_run() {
    let world = World::new().with_limits(Limits {
        records_per_cascade: 3,
        ..Limits::default()
    });
    let platform = world.create_platform("engines").await;
    let parent = world.tenant(&platform, "parent").await;
    let child = world.subtenant(&platform, &parent, "child").await;
    world.resource(&platform, &child, "a-db").await;
    let extra = world.subtenant(&platform, &parent, "extra").await;
    let tree = format!("/entities/{parent}?cascade=true");
    for rest in [tree.clone(), format!("{tree}&dryRun=true")] {
        let path = platform_path(&platform, &rest);
        let refused = world.registry.delete(&operator(), &path).await;
        assert_eq!(refused.json["error"]["details"]["limit"], 3);
        refused.expect_error(409, "LIMIT_REACHED");
    }
    assert_eq!(world.count(&platform_path(&platform, "/entities")).await, 3);
    world
        .delete_record(&platform_path(&platform, &format!("/entities/{extra}")))
        .await;
    let deleted = world
        .registry
        .delete(&operator(), &platform_path(&platform, &tree))
        .await;
    let _ = deleted.expect(200);
    assert_eq!(world.count(&platform_path(&platform, "/entities")).await, 0);
}

/// Creates an object of the platform directly at the provider.
async fn create_object(world: &World, platform: &str, name: &str) {
    let request = ObjectRequest {
        resource: ResourceRef {
            resource_type: ResourceType::D1,
            name: name.to_owned(),
        },
        owner: platform.to_owned(),
        effect_key: name.to_owned(),
        config: json!({}),
    };
    world.provider.create(&request).await.unwrap();
}

#[tokio::test]
async fn a_hard_deleted_platform_is_visible_until_everything_is_removed() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    world.resource(&platform, &entity, "own-db").await;
    world.resource(&platform, &entity, "foreign-db").await;
    create_object(&world, &platform, "own-db").await;
    create_object(&world, "another", "foreign-db").await;
    world.provision(&platform).await;
    world.run_jobs().await;
    assert_eq!(world.provider.names().len(), 8);
    // An object whose record was deleted still belongs to the platform.
    let entered = world
        .get_record(&platform_path(&platform, "/resources?limit=1"))
        .await;
    let last = entered.each("id")[0];
    let last = platform_path(&platform, &format!("/resources/{last}"));
    world.delete_record(&last).await;
    world.begin_session_of(&owner(&platform)).await;
    let (path, why) = (
        platform_path(&platform, "/delete"),
        json!({ "reason": "law" }),
    );
    let deleted = world.registry.post(&owner(&platform), &path, why).await;
    let deleted = deleted.expect(200);
    assert_eq!(deleted.text("status"), "deleted");
    assert_eq!(deleted.text("deletedAt"), deleted.text("updatedAt"));
    assert_eq!(deleted.header("etag"), "\"2\"");
    for step in ["delete", "restore", "suspend", "cancel", "soft-delete"] {
        let moved = world.change_lifecycle(&platform, step, &operator()).await;
        moved.expect_error(409, "INVALID_STATE");
    }
    for body in [
        json!({ "status": "active" }),
        json!({ "status": "suspended" }),
    ] {
        let set = world
            .patch_record(&platform_path(&platform, ""), body)
            .await;
        set.expect_error(409, "INVALID_STATE");
    }
    let again = json!({ "platformId": platform });
    let path = "/api/v1/provision/platform/deprovision";
    let refused = world.provisioning.post(&operator(), path, again).await;
    refused.expect_error(409, "INVALID_STATE");
    let path = platform_path(&platform, "/lifecycle");
    let told = world.registry.get(&owner(&platform), &path).await;
    assert_eq!(told.each("toStatus"), ["deleted", "active"]);
    assert_eq!(told.json["data"][0]["reason"], "law");
    world.run_jobs().await;
    for rest in ["", "/lifecycle", "/entities", "/resources", "/audit"] {
        for caller in [operator(), owner(&platform)] {
            let missing = world
                .registry
                .get(&caller, &platform_path(&platform, rest))
                .await;
            missing.expect_error(404, "NOT_FOUND");
        }
    }
    let lookup = "/api/v1/lookup?cfName=own-db";
    world.assert_missing(lookup).await;
    assert_eq!(world.provider.names(), ["foreign-db"]);
    let kept = format!("/api/v1/audit?limit=100&platformId={platform}");
    let kept = world.get_record(&kept).await;
    for (action, count) in [
        ("platform.created", 1),
        ("platform.hard_deleted", 1),
        ("resource.deleted", 8),
        ("platform.purged", 1),
    ] {
        let told = kept.each("action").iter().filter(|a| **a == action).count();
        assert_eq!(told, count, "{action}");
    }
}

#[tokio::test]
async fn only_operators_can_repeat_a_removal_that_stopped() {
    let world = World::new();
    world.begin_session_of(&owner("any")).await;
    for (slug, how, jobs) in [
        ("failed", None, 1),
        ("declared-done", Some(JobCommand::ForceComplete), 2),
        ("cancelled", Some(JobCommand::Cancel), 1),
    ] {
        let platform = world.create_platform(slug).await;
        let entity = world.tenant(&platform, "tenant").await;
        world.resource(&platform, &entity, slug).await;
        world.provider.set_failing(true);
        world
            .change_lifecycle_as_operator(&platform, "delete")
            .await;
        if slug != "cancelled" {
            world.run_jobs().await;
        }
        let job = world.jobs(&platform).await.remove(0);
        if let Some(how) = how {
            world.operate(job["jobId"].as_str().unwrap(), how).await;
        }
        assert_eq!(world.status(&platform).await, "deleted");
        let refused = world
            .change_lifecycle(&platform, "delete", &owner(&platform))
            .await;
        refused.expect_error(409, "INVALID_STATE");
        world.provider.set_failing(false);
        let again = world
            .change_lifecycle(&platform, "delete", &operator())
            .await;
        assert_eq!(again.expect(200).text("status"), "deleted");
        assert_eq!(world.jobs(&platform).await.len(), jobs, "{slug}");
        let under_way = world
            .change_lifecycle(&platform, "delete", &operator())
            .await;
        under_way.expect_error(409, "INVALID_STATE");
        world.run_jobs().await;
        world.assert_missing(&platform_path(&platform, "")).await;
    }
}

#[tokio::test]
async fn a_suspended_platform_can_be_removed_and_leaves_no_suspension() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    for step in ["suspend", "delete"] {
        world.change_lifecycle_as_operator(&platform, step).await;
    }
    assert!(world.is_suspended(&platform).await);
    world.run_jobs().await;
    world.assert_missing(&platform_path(&platform, "")).await;
    let listed = world.registry.get(&owner(&platform), PLATFORMS).await;
    assert_eq!(listed.expect(200).total(), Some(0));
}

async fn a_removal_frees_the_slug_and_ends_an_organization_without_other_platforms(world: World) {
    let person = world.sign_up("ada@example.org").await;
    let mut before = Value::Null;
    for _ in 0..2 {
        let set_up = world
            .set_up_organization(&person, "engines")
            .await
            .expect(201);
        let platform = set_up.text("platformId");
        let acts_for = world.active_platform(&person).await;
        assert_eq!(acts_for, platform);
        assert_ne!(acts_for, before);
        before = acts_for;
        let again = world.set_up_organization(&person, "engines").await;
        again.expect_error(409, "SLUG_TAKEN");
        world.change_lifecycle_as_operator(platform, "delete").await;
        assert!(!world.is_slug_available("engines").await);
        world.run_jobs().await;
        assert!(world.is_slug_available("engines").await);
        assert_eq!(world.active_platform(&person).await, Value::Null);
    }
    assert_eq!(world.audit("organization.removed").await.len(), 2);
    assert!(world.provider.names().is_empty());
}

on_every_store! { a_removal_frees_the_slug_and_ends_an_organization_without_other_platforms }

#[tokio::test]
async fn an_organization_survives_a_removed_platform_and_ends_with_its_last_one() {
    let world = World::new();
    let person = world.sign_up("ada@example.org").await;
    let set_up = world
        .set_up_organization(&person, "engines")
        .await
        .expect(201);
    let first = set_up.text("platformId");
    let mut caller = person.member_of(first, Role::OWNER);
    if let Caller::User {
        membership: Some(membership),
        ..
    } = &mut caller
    {
        membership.organization_id = OrganizationId::parse(set_up.text("orgId")).unwrap();
    }
    let second = world.platform_by(&caller, "second").await;
    let deleted = world.change_lifecycle(first, "delete", &caller).await;
    let _ = deleted.expect(200);
    world.run_jobs().await;
    assert_eq!(world.active_platform(&person).await, Value::Null);
    let path = "/api/core/session";
    let session = world.iam.get(&person.caller(), path).await.expect(200);
    assert_eq!(session.json["organization"]["id"], set_up.json["orgId"]);
    assert!(!world.is_slug_available("engines").await);
    let shown = world
        .registry
        .get(&caller, &platform_path(&second, ""))
        .await;
    let _ = shown.expect(200);
    let _ = world
        .change_lifecycle(&second, "delete", &caller)
        .await
        .expect(200);
    world.run_jobs().await;
    assert!(world.is_slug_available("engines").await);
    let members = MemberQuery::OfUser(UserId::parse(&person.user_id).unwrap());
    let mut uow = world.app.store.begin(Mode::Read).await.unwrap();
    let repositories = uow.repositories(RecordKey::for_tests());
    let left = repositories.members().count(Within::Installation, &members);
    assert_eq!(left.await.unwrap(), 0);
}
