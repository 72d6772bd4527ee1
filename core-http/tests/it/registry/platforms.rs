//! Creating, changing and listing platforms.

use serde_json::{Value, json};

use crate::world::{
    PLATFORMS, World, admin, operator, owner, plain_member, platform_path,
    user_without_organization,
};

#[tokio::test]
async fn a_new_platform_is_active_and_missing_fields_are_null_or_the_default() {
    let world = World::new();
    let body = json!({ "name": "Engines", "slug": "engines", "repoName": "org/engines" });
    let created = world.registry.post(&operator(), PLATFORMS, body).await;
    let created = created.expect(201);
    let instant = "2027-01-15T08:00:00.000Z";
    let wanted = json!({
        "id": created.id(), "name": "Engines", "slug": "engines", "status": "active", "tier": "starter",
        "cfAccountId": null, "repoName": "org/engines", "paymentCustomerId": null, "ownerUserId": null,
        "cancelledAt": null, "cancellationReason": null, "suspendedAt": null, "suspensionReason": null,
        "trialEndsAt": null, "createdAt": instant, "updatedAt": instant, "deletedAt": null,
    });
    assert_eq!(created.json, wanted);
    let path = platform_path(&created.id(), "");
    let shown = world.get_record(&path).await;
    assert_eq!((&shown.json, shown.header("etag")), (&wanted, "\"1\""));
}

#[tokio::test]
async fn a_slug_is_unique_among_platforms_that_are_not_deleted() {
    let world = World::new();
    let first = world.create_platform("engines").await;
    let again = json!({ "name": "Others", "slug": "engines" });
    let create = async || {
        let body = again.clone();
        world.registry.post(&operator(), PLATFORMS, body).await
    };
    create().await.expect_error(409, "SLUG_TAKEN");
    world.change_lifecycle_as_operator(&first, "cancel").await;
    create().await.expect_error(409, "SLUG_TAKEN");
    world
        .change_lifecycle_as_operator(&first, "soft-delete")
        .await;
    let _ = create().await.expect(201);
    let restored = world.change_lifecycle(&first, "restore", &operator()).await;
    restored.expect_error(409, "SLUG_TAKEN");
    let (path, back) = (platform_path(&first, ""), json!({ "status": "active" }));
    let set = world.patch_record(&path, back).await;
    set.expect_error(409, "SLUG_TAKEN");
    assert_eq!(world.status(&first).await, "deleted");
}

#[tokio::test]
async fn a_change_affects_only_the_given_fields() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let patch = async |body: Value| {
        let path = platform_path(&platform, "");
        let changed = world.registry.patch(&admin(&platform), &path, body).await;
        changed.expect(200)
    };
    let body = json!({ "name": "Looms", "cfAccountId": "acc", "repoName": "org/looms" });
    let changed = patch(body.clone()).await;
    for (field, value) in body.as_object().unwrap() {
        assert_eq!(&changed.json[field], value);
    }
    assert_eq!(changed.text("updatedAt"), "2027-01-15T08:00:01.000Z");
    let cleared = patch(json!({ "repoName": null, "name": null })).await;
    let fields = ["repoName", "name", "cfAccountId"].map(|field| cleared.json[field].clone());
    assert_eq!(fields, [Value::Null, json!("Looms"), json!("acc")]);
    // A request that changes nothing creates neither a version nor an audit entry.
    let entries = world.count(&platform_path(&platform, "/audit")).await;
    for body in [
        json!({}),
        json!({ "name": "Looms" }),
        json!({ "tier": "starter", "status": "active" }),
    ] {
        assert_eq!(patch(body).await.header("etag"), "\"3\"");
    }
    assert_eq!(
        world.count(&platform_path(&platform, "/audit")).await,
        entries
    );
}

#[tokio::test]
async fn only_operators_can_give_a_platform_more_than_the_entry_tier() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let create = async |caller, tier: &str| {
        let body = json!({ "name": "P", "slug": tier, "tier": tier });
        world.registry.post(&caller, PLATFORMS, body).await
    };
    let raise = async |caller, tier: &str| {
        let (path, body) = (
            platform_path(&platform, ""),
            json!({ "tier": tier, "cfAccountId": "acc" }),
        );
        world.registry.patch(&caller, &path, body).await
    };
    for tier in ["growth", "scale"] {
        create(owner(&platform), tier)
            .await
            .expect_error(403, "FORBIDDEN");
        raise(owner(&platform), tier)
            .await
            .expect_error(403, "FORBIDDEN");
        let created = create(operator(), tier).await.expect(201);
        assert_eq!(created.text("tier"), tier);
        let raised = raise(operator(), tier).await.expect(200);
        assert_eq!(
            (raised.text("tier"), raised.text("cfAccountId")),
            (tier, "acc")
        );
    }
}

#[tokio::test]
async fn a_status_can_be_set_from_every_other_status() {
    let world = World::new();
    for from in ["active", "suspended", "cancelled", "deleted"] {
        for to in ["active", "suspended", "deleted"] {
            let platform = world.create_platform(&format!("{from}-{to}")).await;
            let set = async |body: Value| {
                let path = platform_path(&platform, "");
                let changed = world.patch_record(&path, body).await;
                changed.expect(200).json
            };
            match from {
                "active" => {}
                "cancelled" => {
                    world
                        .change_lifecycle_as_operator(&platform, "cancel")
                        .await;
                }
                status => {
                    set(json!({ "status": status })).await;
                }
            }
            let shown = set(json!({ "status": to })).await;
            assert_eq!(shown["status"], to, "{from}");
            let dated = ["suspendedAt", "deletedAt", "cancelledAt"].map(|f| !shown[f].is_null());
            assert_eq!(dated[1], to == "deleted", "{from} {to}: {shown}");
            assert!(to != "suspended" || dated[0], "{from} {to}: {shown}");
            assert!(
                to != "active" || dated == [false; 3],
                "{from} {to}: {shown}"
            );
        }
    }
}

#[tokio::test]
async fn only_managers_of_a_platform_can_set_its_status_with_other_fields() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let set = async |caller, status: &str| {
        let body = json!({ "status": status, "name": status });
        let path = platform_path(&platform, "");
        world.registry.patch(&caller, &path, body).await
    };
    for status in ["suspended", "deleted"] {
        set(admin(&platform), status)
            .await
            .expect_error(403, "FORBIDDEN");
    }
    for status in ["deleted", "active"] {
        let changed = set(owner(&platform), status).await.expect(200);
        assert_eq!(
            (changed.text("status"), changed.text("name")),
            (status, status)
        );
    }
}

#[tokio::test]
async fn a_list_has_the_platforms_of_the_callers_organization_and_all_for_operators() {
    let world = World::new();
    let first = world.platform_by(&owner("home"), "engines").await;
    let other = world.create_platform("looms").await;
    let new = json!({ "name": "Second", "slug": "second" });
    let create = async |caller| world.registry.post(&caller, PLATFORMS, new.clone()).await;
    create(user_without_organization())
        .await
        .expect_error(403, "FORBIDDEN");
    let second = create(admin("home")).await.expect(201);
    assert_eq!(second.text("ownerUserId"), "adam");
    let second = second.id();
    for (caller, wanted) in [
        (plain_member("home"), vec![&second, &first]),
        // A caller who acts for a platform of another organization.
        (owner(&other), vec![&other]),
        (user_without_organization(), vec![]),
        (operator(), vec![&second, &other, &first]),
    ] {
        let listed = world.registry.get(&caller, PLATFORMS).await.expect(200);
        assert_eq!(listed.each("id"), wanted, "{caller:?}");
        assert_eq!(listed.total(), Some(wanted.len() as u64), "{caller:?}");
    }
    let member = plain_member("home");
    let shown = world
        .registry
        .get(&member, &platform_path(&second, ""))
        .await;
    let _ = shown.expect(200);
    let change = json!({ "name": "X" });
    let changed = world
        .registry
        .patch(&member, &platform_path(&second, ""), change)
        .await;
    changed.expect_error(403, "FORBIDDEN");
    let foreign = world
        .registry
        .get(&owner(&other), &platform_path(&second, ""))
        .await;
    foreign.expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn deleted_platforms_entities_and_resources_are_listed_for_operators_on_request() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let resource = world.resource(&platform, &entity, "engines-db").await;
    let own = format!("/entities/{entity}");
    let kept = world.tenant(&platform, "kept").await;
    let of_kept = platform_path(&platform, &format!("/entities/{kept}/resources"));
    let second = world.resource(&platform, &kept, "second-db").await;
    for gone in [
        format!("/resources/{resource}"),
        format!("/resources/{second}"),
        own,
        String::new(),
    ] {
        let path = platform_path(&platform, &gone);
        let _ = world.registry.delete(&operator(), &path).await.expect(200);
    }
    for (list, here, all) in [
        (platform_path(&platform, "/resources"), 0, 2),
        (of_kept, 0, 1),
        (platform_path(&platform, "/entities"), 1, 2),
        (PLATFORMS.to_owned(), 0, 1),
    ] {
        let more = format!("{list}?includeDeleted=true");
        for (path, caller, count) in [
            (&list, operator(), here),
            (&more, operator(), all),
            (&more, owner(&platform), here),
        ] {
            let listed = world.registry.get(&caller, path).await.expect(200);
            assert_eq!(listed.total(), Some(count), "{path} {caller:?}");
        }
    }
}

#[tokio::test]
async fn names_are_trimmed_and_blank_names_are_refused() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    for path in [PLATFORMS, &platform_path(&platform, "/entities")] {
        let send = async |name: &str| {
            let body = json!({ "slug": "fresh", "type": "tenant", "name": name });
            world.registry.post(&operator(), path, body).await
        };
        for blank in [" ", "\u{2003}\u{a0}"] {
            let refused = send(blank).await.expect_error(400, "VALIDATION_ERROR");
            assert!(refused.issues()[0].starts_with("name: "), "{blank:?}");
        }
        let created = send(" \u{2003}Fine name ").await.expect(201);
        assert_eq!(created.text("name"), "Fine name");
    }
}
