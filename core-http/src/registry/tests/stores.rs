//! The main path, the same on every store.

use core_storage::{postgres, sqlite, testing};
use serde_json::{Value, json};

use super::world::{PLATFORMS, Says, World, at, owner, resource_body, start};
use crate::kernel::testing::operator;

const KEY: [u8; 32] = [7; 32];

async fn on_sqlite() -> World {
    let clock = start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("registry.db");
    let mut config = sqlite::SqliteConfig::new(path, clock.clone(), KEY);
    config.survive_power_cut = false;
    let store = sqlite::open(config).await.unwrap();
    World::over(store, clock, Box::new(folder))
}

async fn on_postgres() -> World {
    let clock = start();
    let database = testing::postgres().await;
    let mut config = postgres::PostgresConfig::new(&database.url, KEY);
    config.clock = Some(clock.clone());
    let store = postgres::open(config).await.unwrap();
    World::over(store, clock, Box::new(database))
}

async fn the_main_path(world: World) {
    // A person is given a platform, its tenant and its infrastructure.
    let start = json!({ "platformName": "Engines", "slug": "engines" });
    let person = world.person().await;
    let started = world
        .post(&person, "/api/v1/onboarding/start", start)
        .await
        .expect(202);
    world.tick(1);
    world.run_jobs().await;
    let status = format!(
        "/api/v1/onboarding/status/{}",
        started.json["onboardingId"].as_str().unwrap()
    );
    let status = world.get(&person, &status).await.expect(200);
    assert_eq!(status.json["status"], "COMPLETED");
    let platform = status.json["platformId"].as_str().unwrap();
    let caller = owner(platform);
    let same = json!({ "name": "Others", "slug": "engines" });
    world
        .post(&operator(), PLATFORMS, same)
        .await
        .refused(409, "SLUG_TAKEN");

    // A tree of entities with a resource in it.
    let tenants = world
        .get(&caller, &at(platform, "/entities"))
        .await
        .expect(200);
    let tenant = tenants.each("id")[0].to_owned();
    let child = world.subtenant(platform, &tenant, "child").await;
    let leaf = world.subtenant(platform, &child, "leaf").await;
    let above = at(platform, &format!("/entities/{leaf}/ancestors"));
    assert_eq!(
        world.get(&caller, &above).await.expect(200).each("id"),
        [&tenant, &child]
    );
    let below = at(platform, &format!("/entities/{tenant}/descendants"));
    assert_eq!(
        world.get(&caller, &below).await.expect(200).each("id"),
        [&child, &leaf]
    );
    let resource = world.resource(platform, &leaf, "leaf-db").await;
    let again = at(platform, &format!("/entities/{child}/resources"));
    world
        .post(&caller, &again, resource_body("leaf-db"))
        .await
        .refused(409, "CONFLICT");
    let one = at(platform, &format!("/resources/{resource}"));
    let config = json!({ "config": { "n": 9_007_199_254_740_993_i64 }, "status": "provisioning" });
    let changed = world
        .send(
            &caller,
            "PATCH",
            &one,
            &[("if-match", "\"1\"")],
            config.clone(),
        )
        .await
        .expect(200);
    assert_eq!(changed.json["config"], config["config"]);
    world
        .send(&caller, "PATCH", &one, &[("if-match", "\"1\"")], config)
        .await
        .refused(412, "VERSION_CONFLICT");
    assert_eq!(
        world
            .get(&caller, "/api/v1/lookup?cfName=leaf-db")
            .await
            .expect(200)
            .id(),
        resource
    );
    world
        .delete(&caller, &at(platform, &format!("/entities/{leaf}")))
        .await
        .refused(409, "CONFLICT");
    let all = world
        .get(&caller, &at(platform, "/resources?limit=4"))
        .await
        .expect(200);
    assert_eq!(
        (all.each("id").len(), &all.json["pagination"]["total"]),
        (4, &json!(7))
    );
    let cursor = all.json["pagination"]["nextCursor"].as_str().unwrap();
    let rest = world
        .get(
            &caller,
            &at(platform, &format!("/resources?limit=4&cursor={cursor}")),
        )
        .await
        .expect(200);
    assert_eq!(
        (rest.each("id").len(), &rest.json["pagination"]["hasMore"]),
        (3, &json!(false))
    );

    // Its life, once with a key.
    let key = [("idempotency-key", "once")];
    for replayed in ["", "true"] {
        let why = json!({ "reason": "late" });
        let answer = world
            .send(&caller, "POST", &at(platform, "/suspend"), &key, why)
            .await
            .expect(200);
        assert_eq!(
            (
                answer.header("idempotency-replayed"),
                &answer.json["status"]
            ),
            (replayed, &json!("suspended"))
        );
        world.tick(1);
    }
    world
        .post(&caller, &at(platform, "/suspend"), Value::Null)
        .await
        .refused(409, "INVALID_STATE");
    world
        .post(&operator(), &at(platform, "/restore"), Value::Null)
        .await
        .expect(200);
    world.tick(1);
    world
        .post(&caller, &at(platform, "/cancel"), Value::Null)
        .await
        .expect(200);
    world.tick(1);
    let life = world
        .get(&caller, &at(platform, "/lifecycle"))
        .await
        .expect(200);
    assert_eq!(
        life.each("toStatus"),
        ["cancelled", "active", "suspended", "active"]
    );
    let moves = world
        .get(&caller, &at(platform, "/audit?entity=platform"))
        .await
        .expect(200);
    let wanted = [
        "platform.cancelled",
        "platform.restored",
        "platform.suspended",
        "platform.created",
    ];
    assert_eq!(moves.each("action"), wanted);
    world
        .get(&owner("another"), &at(platform, ""))
        .await
        .refused(404, "NOT_FOUND");

    // Its end.
    let gone = world
        .post(&caller, &at(platform, "/delete"), Value::Null)
        .await
        .expect(200);
    assert_eq!(gone.json["status"], "deleted");
    world.tick(1);
    world.run_jobs().await;
    world
        .get(&operator(), &at(platform, ""))
        .await
        .refused(404, "NOT_FOUND");
    assert!(world.provider.objects.lock().unwrap().is_empty());
    let kept = world
        .get(&operator(), &format!("/api/v1/audit?platformId={platform}"))
        .await
        .expect(200);
    assert!(kept.each("action").contains(&"platform.purged"));
}

#[tokio::test]
async fn the_main_path_on_memory() {
    the_main_path(World::new()).await;
}

#[tokio::test]
async fn the_main_path_on_sqlite() {
    the_main_path(on_sqlite().await).await;
}

#[tokio::test]
async fn the_main_path_on_postgres() {
    the_main_path(on_postgres().await).await;
}

/// Two requests at once, on threads of their own.
async fn races(world: World) {
    let platform = world.platform("engines").await;
    let (service, caller) = (world.service.clone(), operator());
    let send = |method: &'static str, path: String, body: Value| {
        let (service, caller) = (service.clone(), caller.clone());
        tokio::spawn(async move {
            let tag: &[(&str, &str)] = if method == "PATCH" {
                &[("if-match", "\"1\"")]
            } else {
                &[]
            };
            let answer =
                crate::kernel::testing::call_with(&service, method, &path, &caller, tag, body)
                    .await;
            answer.status.as_u16()
        })
    };
    let new = json!({ "name": "P", "slug": "p" });
    let posts = [0; 4].map(|_| send("POST", PLATFORMS.to_owned(), new.clone()));
    let mut statuses = futures_util::future::join_all(posts)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect::<Vec<_>>();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409]);
    let patches =
        ["a", "b", "c", "d"].map(|name| send("PATCH", at(&platform, ""), json!({ "name": name })));
    let mut statuses = futures_util::future::join_all(patches)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect::<Vec<_>>();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412, 412, 412]);
    let moves = ["suspend", "cancel", "suspend"]
        .map(|step| send("POST", at(&platform, &format!("/{step}")), Value::Null));
    futures_util::future::join_all(moves).await;
    let life = world
        .get(&operator(), &at(&platform, "/lifecycle"))
        .await
        .expect(200);
    // Whichever came first, the records tell a story that can have happened.
    let mut ends = life.each("toStatus");
    ends.sort_unstable();
    let story = ["active", "cancelled", "suspended"];
    assert!(ends == story || ends == story[..2], "{ends:?}");
    let now = world.get(&operator(), &at(&platform, "")).await.expect(200);
    assert_eq!(now.json["status"], "cancelled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn races_on_memory() {
    races(World::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn races_on_sqlite() {
    races(on_sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn races_on_postgres() {
    races(on_postgres().await).await;
}
