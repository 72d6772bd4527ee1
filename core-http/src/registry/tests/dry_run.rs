//! A deletion with `dryRun` tells what would go, and nothing goes.

use serde_json::{Value, json};

use super::world::{Says, World, admin, at, owner, plain_member};
use crate::kernel::testing::operator;

#[tokio::test]
async fn a_dry_run_tells_what_would_go_and_leaves_a_mark_in_the_audit_alone() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let parent = world.tenant(&platform, "parent").await;
    let child = world.subtenant(&platform, &parent, "child").await;
    let leaf = world.tenant(&platform, "leaf").await;
    let first = world.resource(&platform, &child, "a-db").await;
    world.resource(&platform, &parent, "b-db").await;
    let plan = |entities: u64, resources: u64| json!({ "dryRun": true, "plan": { "entities": entities, "resources": resources } });
    let of = |rest: String| at(&platform, &rest);
    let one = format!("/entities/{parent}");
    let cases = [
        ("DELETE", of("?dryRun=true".into()), plan(0, 0)),
        ("POST", of("/delete?dryRun=true".into()), plan(3, 2)),
        (
            "DELETE",
            of(format!("{one}?dryRun=true&cascade=true")),
            plan(2, 2),
        ),
        (
            "DELETE",
            of(format!("/entities/{leaf}?dryRun=true")),
            plan(1, 0),
        ),
        (
            "DELETE",
            of(format!("/resources/{first}?dryRun=true")),
            plan(0, 1),
        ),
    ];
    for (method, path, wanted) in &cases {
        let answer = world
            .send(&operator(), method, path, &[], Value::Null)
            .await
            .expect(200);
        assert_eq!(answer.json, *wanted, "{path}");
        world.tick(1);
    }
    let marks = world
        .get(&operator(), &at(&platform, "/audit?limit=5"))
        .await
        .expect(200);
    let actions = marks.each("action");
    assert!(
        actions
            .iter()
            .all(|action| action.ends_with(".deletion_planned")),
        "{actions:?}"
    );
    let kept = world.get(&operator(), &at(&platform, "")).await.expect(200);
    assert_eq!(
        (&kept.json["status"], kept.header("etag")),
        (&json!("active"), "\"1\"")
    );
    for (list, count) in [("/entities", 3), ("/resources", 2), ("/lifecycle", 1)] {
        let rows = world
            .get(&operator(), &at(&platform, list))
            .await
            .expect(200);
        assert_eq!(rows.json["pagination"]["total"], count, "{list}");
    }
    world.run_jobs().await;
    world.get(&operator(), &at(&platform, "")).await.expect(200);
}

#[tokio::test]
async fn what_would_be_refused_is_refused_dry_as_well() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let parent = world.tenant(&platform, "parent").await;
    world.subtenant(&platform, &parent, "child").await;
    let one = at(&platform, &format!("/entities/{parent}?dryRun=true"));
    world
        .delete(&owner(&platform), &one)
        .await
        .refused(409, "CONFLICT");
    let tree = format!("{one}&cascade=true");
    world
        .delete(&owner(&platform), &tree)
        .await
        .refused(403, "FORBIDDEN");
    world
        .delete(&plain_member(&platform), &one)
        .await
        .refused(403, "FORBIDDEN");
    let whole = at(&platform, "?dryRun=true");
    world
        .delete(&admin(&platform), &whole)
        .await
        .refused(403, "FORBIDDEN");
    world
        .delete(&owner("another"), &whole)
        .await
        .refused(404, "NOT_FOUND");
    let stale = [("if-match", "\"9\"")];
    world
        .send(&operator(), "DELETE", &whole, &stale, Value::Null)
        .await
        .refused(412, "VERSION_CONFLICT");
    world
        .delete(&operator(), &at(&platform, ""))
        .await
        .expect(200);
    world
        .delete(&operator(), &whole)
        .await
        .refused(409, "INVALID_STATE");
    let bad = at(&platform, "?dryRun=maybe");
    world
        .delete(&operator(), &bad)
        .await
        .refused(400, "VALIDATION_ERROR");
}
