//! Tests of every type of object: creation, lookup by name, ownership and removal.

use core_domain::port::{Infrastructure, ProviderError};
use core_domain::registry::ResourceType;
use core_local::{FaultMoment, Faults, LocalConfig, LocalInfrastructure};
use serde_json::json;

use crate::support::{OWNER, request, resource, world, world_with};

#[tokio::test]
async fn every_type_can_be_created_found_and_removed() {
    let world = world().await;
    for &kind in ResourceType::ALL {
        let name = format!("acme-{kind}");
        let target = resource(kind, &name);
        assert_eq!(world.infra.observe(&target).await, Ok(None), "{kind}");
        let made = world.infra.create(&request(kind, &name)).await.unwrap();
        assert_eq!(made.owner.as_deref(), Some(OWNER));
        assert_eq!(world.infra.observe(&target).await, Ok(Some(made.clone())));
        let again = world.infra.create(&request(kind, &name)).await.unwrap();
        assert_eq!(again, made, "{kind}: a repeated request is the same object");
    }
    assert_eq!(world.infra.inventory().await.unwrap().len(), 6);
    for &kind in ResourceType::ALL {
        let target = resource(kind, &format!("acme-{kind}"));
        world.infra.remove(&target, OWNER).await.unwrap();
        assert_eq!(world.infra.observe(&target).await, Ok(None), "{kind}");
        assert_eq!(
            world.infra.remove(&target, OWNER).await,
            Ok(()),
            "removal is idempotent"
        );
    }
    assert!(world.infra.inventory().await.unwrap().is_empty());
    assert!(world.staging().is_empty());
}

#[tokio::test]
async fn objects_survive_a_restart() {
    let world = world().await;
    for &kind in ResourceType::ALL {
        let request = request(kind, "acme-thing");
        world.infra.create(&request).await.unwrap();
    }
    let before = world.infra.inventory().await.unwrap();
    let world = world.reopen().await;
    assert_eq!(world.infra.inventory().await.unwrap(), before);
}

#[tokio::test]
async fn object_of_another_owner_is_neither_returned_nor_removed() {
    let world = world().await;
    for &kind in ResourceType::ALL {
        let mine = request(kind, "shared-name");
        world.infra.create(&mine).await.unwrap();
        let mut foreign = mine.clone();
        foreign.owner = "platform-2".to_owned();
        let taken = Err(ProviderError::NameTaken("shared-name".to_owned()));
        assert_eq!(world.infra.create(&foreign).await, taken, "{kind}");
        let removal = world.infra.remove(&mine.resource, "platform-2").await;
        assert_eq!(
            removal,
            taken.map(|_: core_domain::port::ProviderObject| ())
        );
        let found = world.infra.observe(&mine.resource).await.unwrap().unwrap();
        assert_eq!(found.owner.as_deref(), Some(OWNER));
    }
}

#[tokio::test]
async fn unknown_folder_is_not_touched() {
    let world = world().await;
    let folder = world.folder.path().join("infra/r2/acme-foreign");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("precious"), "data").unwrap();
    let request = request(ResourceType::R2, "acme-foreign");
    let taken = ProviderError::NameTaken("acme-foreign".to_owned());
    assert_eq!(world.infra.create(&request).await, Err(taken.clone()));
    assert_eq!(
        world.infra.remove(&request.resource, OWNER).await,
        Err(taken)
    );
    assert!(folder.join("precious").exists());
}

#[tokio::test]
async fn invalid_names_are_refused_permanently() {
    let world = world().await;
    for name in [
        "",
        "..",
        "../outside",
        "a/b",
        "/etc",
        "UPPER",
        "a_b",
        "x\0y",
        "-ab",
        "ab-",
    ] {
        let request = request(ResourceType::R2, name);
        let refused = |error| matches!(error, ProviderError::Permanent(_));
        assert!(
            world.infra.create(&request).await.is_err_and(refused),
            "{name:?}"
        );
        assert!(
            world
                .infra
                .observe(&request.resource)
                .await
                .is_err_and(refused),
            "{name:?}"
        );
        assert!(
            world
                .infra
                .remove(&request.resource, OWNER)
                .await
                .is_err_and(refused),
            "{name:?}"
        );
    }
    assert!(world.infra.inventory().await.unwrap().is_empty());
}

#[tokio::test]
async fn removal_deletes_only_the_object() {
    let world = world().await;
    for name in ["acme-one", "acme-one-more"] {
        world
            .infra
            .create(&request(ResourceType::R2, name))
            .await
            .unwrap();
        let bucket = world.infra.bucket(name).await.unwrap();
        bucket
            .put("key", "text/plain", b"content".to_vec())
            .await
            .unwrap();
    }
    world
        .infra
        .create(&request(ResourceType::Kv, "acme-one"))
        .await
        .unwrap();
    let target = resource(ResourceType::R2, "acme-one");
    world.infra.remove(&target, OWNER).await.unwrap();
    let left = world.infra.inventory().await.unwrap();
    let left: Vec<_> = left.into_iter().map(|(resource, _)| resource).collect();
    assert_eq!(
        left,
        [
            resource(ResourceType::R2, "acme-one-more"),
            resource(ResourceType::Kv, "acme-one")
        ]
    );
    let bucket = world.infra.bucket("acme-one-more").await.unwrap();
    assert!(bucket.get("key").await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_creates_make_one_object() {
    let world = world().await;
    for &kind in ResourceType::ALL {
        let tasks = (0..12).map(|_| {
            let infra = world.infra.clone();
            tokio::spawn(async move { infra.create(&request(kind, "acme-race")).await.unwrap() })
        });
        let mut ids = Vec::new();
        for task in tasks.collect::<Vec<_>>() {
            ids.push(task.await.unwrap().id);
        }
        ids.dedup();
        assert_eq!(ids.len(), 1, "{kind}");
    }
    assert_eq!(world.infra.inventory().await.unwrap().len(), 6);
    assert!(world.staging().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_providers_on_one_folder_make_one_object() {
    let world = world().await;
    let clock = world.clock.clone();
    let config = LocalConfig::new(world.folder.path().join("infra"), 8090, clock);
    let other = LocalInfrastructure::open(config).await.unwrap();
    let tasks = (0..12).map(|number| {
        let infra = if number % 2 == 0 {
            &world.infra
        } else {
            &other
        };
        let infra = infra.clone();
        let request = request(ResourceType::Queue, "acme-race");
        tokio::spawn(async move { infra.create(&request).await.unwrap() })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(world.infra.inventory().await.unwrap().len(), 1);
    assert!(world.staging().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_creates_by_two_owners_give_the_name_to_one() {
    let world = world().await;
    let tasks = (0..12).map(|number| {
        let infra = world.infra.clone();
        let mut request = request(ResourceType::D1, "acme-race");
        request.owner = format!("platform-{}", number % 2);
        tokio::spawn(async move { infra.create(&request).await })
    });
    let mut owners = Vec::new();
    let mut refused = 0;
    for task in tasks.collect::<Vec<_>>() {
        match task.await.unwrap() {
            Ok(made) => owners.extend(made.owner),
            Err(error) => {
                assert!(matches!(error, ProviderError::NameTaken(_)));
                refused += 1;
            }
        }
    }
    owners.dedup();
    assert_eq!((owners.len(), refused), (1, 6));
}

#[tokio::test]
async fn database_is_a_valid_sqlite_file() {
    let world = world().await;
    world
        .infra
        .create(&request(ResourceType::D1, "acme-db"))
        .await
        .unwrap();
    let path = world.infra.database("acme-db").await.unwrap();
    let header = std::fs::read(&path).unwrap();
    assert!(header.starts_with(b"SQLite format 3\0"));
    let connection = rusqlite::Connection::open(&path).unwrap();
    let check: String = connection
        .pragma_query_value(None, "integrity_check", |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
    connection
        .execute_batch("CREATE TABLE notes (text TEXT)")
        .unwrap();
    connection.close().unwrap();
    let folder: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(folder.len(), 2, "manifest and database");
}

#[tokio::test]
async fn failure_before_publishing_leaves_no_object() {
    for &kind in ResourceType::ALL {
        let faults = Faults::new(|point| {
            let fails = point.call == "create" && point.moment == FaultMoment::Staged;
            fails.then(|| ProviderError::Transient("asked for".into()))
        });
        let world = world_with(faults).await;
        let request = request(kind, "acme-broken");
        let failed = world.infra.create(&request).await;
        assert_eq!(failed, Err(ProviderError::Transient("asked for".into())));
        assert_eq!(
            world.infra.observe(&request.resource).await,
            Ok(None),
            "{kind}"
        );
        assert!(world.staging().is_empty());
        let world = world.reopen().await;
        assert!(world.infra.create(&request).await.is_ok());
    }
}

#[tokio::test]
async fn observe_resolves_an_unknown_outcome() {
    let faults = Faults::new(|point| {
        let fails = point.call == "create" && point.moment == FaultMoment::Done;
        fails.then(|| ProviderError::OutcomeUnknown("no answer".into()))
    });
    let world = world_with(faults).await;
    let request = request(ResourceType::Queue, "acme-events");
    assert!(world.infra.create(&request).await.is_err());
    assert!(
        world
            .infra
            .observe(&request.resource)
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn only_sites_and_workers_have_an_address() {
    let world = world().await;
    for &kind in ResourceType::ALL {
        let made = world
            .infra
            .create(&request(kind, "acme-thing"))
            .await
            .unwrap();
        let is_served = matches!(kind, ResourceType::Pages | ResourceType::Worker);
        let expected = is_served.then(|| "http://acme-thing.localhost:8090/".to_owned());
        assert_eq!(made.url, expected, "{kind}");
    }
}

#[tokio::test]
async fn damaged_manifest_is_an_error_and_not_a_missing_object() {
    let world = world().await;
    let request = request(ResourceType::Kv, "acme-cache");
    world.infra.create(&request).await.unwrap();
    let manifest = world
        .folder
        .path()
        .join("infra/kv/acme-cache/manifest.json");
    std::fs::write(manifest, json!({ "owner": 1 }).to_string()).unwrap();
    assert!(world.infra.observe(&request.resource).await.is_err());
    assert!(world.infra.create(&request).await.is_err());
    assert!(world.infra.remove(&request.resource, OWNER).await.is_err());
}

#[cfg(unix)]
#[tokio::test]
async fn symbolic_link_in_place_of_an_object_is_never_followed() {
    let world = world().await;
    let outside = world.folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("manifest.json"), "{}").unwrap();
    for &kind in ResourceType::ALL {
        let place = world.folder.path().join(format!("infra/{kind}/acme-link"));
        std::os::unix::fs::symlink(&outside, place).unwrap();
        let request = request(kind, "acme-link");
        assert!(
            world.infra.observe(&request.resource).await.is_err(),
            "{kind}"
        );
        assert!(world.infra.create(&request).await.is_err(), "{kind}");
        assert!(
            world.infra.remove(&request.resource, OWNER).await.is_err(),
            "{kind}"
        );
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
}
