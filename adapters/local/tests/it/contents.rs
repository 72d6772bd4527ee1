//! Tests of the stored files of sites: each content is stored once and kept as long as a deployment refers to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use core_domain::port::{Infrastructure, ProviderError};
use core_local::{FaultMoment, Faults, LocalInfrastructure};
use tokio::runtime::Handle;

use crate::host::{body, get};
use crate::support::{OWNER, World, request, upload, world, world_of, world_with};

const PAGE: &str = "http://acme-site.localhost:8090/";
const CONTENT: &str = "pages/acme-site/content";
const DEPLOYMENTS: &str = "pages/acme-site/deployments";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn deploy(world: &World, branch: &str, files: &[(&str, &str)]) {
    let key = format!("{branch}-{}", files[0].1.len());
    let upload = upload("acme-site", branch, &key, files);
    world.infra.deploy_site(upload).await.unwrap();
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let sizes = entries.map(|entry| match entry.file_type().unwrap().is_dir() {
        true => bytes_below(&entry.path()),
        false => entry.metadata().unwrap().len(),
    });
    sizes.sum()
}

#[tokio::test]
async fn equal_files_of_many_branches_are_stored_once() {
    let world = world().await;
    world.project("acme-site").await;
    let large = "x".repeat(1_000_000);
    let files = [
        ("index.html", "front"),
        ("a.bin", &large),
        ("b.bin", &large),
    ];
    deploy(&world, "production", &files).await;
    for n in 0..10 {
        deploy(&world, &format!("preview-{n}"), &files).await;
    }
    assert_eq!(world.names(DEPLOYMENTS).len(), 11);
    assert_eq!(world.names(CONTENT).len(), 2);
    let all = bytes_below(&world.folder.path().join("infra"));
    assert!(all < 1_100_000, "{all}");
    for host in ["acme-site", "preview-3--acme-site"] {
        let url = format!("http://{host}.localhost/b.bin");
        assert_eq!(body(get(&world, &url).await).await, large, "{host}");
    }
}

#[tokio::test]
async fn content_is_deleted_with_its_last_deployment() {
    let world = world_of(|config| config.retention.previous = 1).await;
    world.project("acme-site").await;
    for text in ["1", "22", "333"] {
        deploy(
            &world,
            "production",
            &[("index.html", text), ("same", "shared")],
        )
        .await;
    }
    assert_eq!(world.names(DEPLOYMENTS).len(), 2);
    assert_eq!(world.names(CONTENT).len(), 3);
    assert_eq!(body(get(&world, PAGE).await).await, "333");
    assert_eq!(world.infra.clean_up().await, Ok(0));
    assert_eq!(world.names(CONTENT).len(), 3);
}

#[tokio::test]
async fn clean_up_ends_old_previews() {
    let world = world().await;
    world.project("acme-site").await;
    deploy(&world, "production", &[("index.html", "live")]).await;
    deploy(&world, "preview", &[("index.html", "a preview")]).await;
    world.clock.advance(DAY * 7);
    assert_eq!(world.infra.clean_up().await, Ok(0));
    let preview = "http://preview--acme-site.localhost/";
    assert_eq!(body(get(&world, preview).await).await, "a preview");
    world.clock.advance(DAY);
    world.infra.clean_up().await.unwrap();
    assert_eq!(get(&world, preview).await.status(), 404);
    assert_eq!(body(get(&world, PAGE).await).await, "live");
    assert_eq!(
        (world.names(DEPLOYMENTS).len(), world.names(CONTENT).len()),
        (1, 1)
    );
}

#[tokio::test]
async fn excess_preview_ends_the_oldest_one() {
    let world = world_of(|config| config.retention.previews = 2).await;
    world.project("acme-site").await;
    deploy(&world, "production", &[("index.html", "live")]).await;
    for (branch, text) in [("a", "1"), ("b", "22"), ("a", "333"), ("c", "4444")] {
        world.clock.advance(Duration::from_secs(60));
        deploy(&world, branch, &[("index.html", text)]).await;
    }
    for (host, expected) in [
        ("acme-site", 200),
        ("a--acme-site", 200),
        ("b--acme-site", 404),
        ("c--acme-site", 200),
    ] {
        let answer = get(&world, &format!("http://{host}.localhost/")).await;
        assert_eq!(answer.status(), expected, "{host}");
    }
    assert_eq!(
        (world.names(DEPLOYMENTS).len(), world.names(CONTENT).len()),
        (3, 3)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clean_up_keeps_the_files_of_a_deployment_in_progress() {
    let cleaner: Arc<OnceLock<(Handle, LocalInfrastructure)>> = Arc::default();
    let faults = {
        let cleaner = Arc::clone(&cleaner);
        Faults::new(move |point| {
            if point.call == "deploy"
                && matches!(point.moment, FaultMoment::Staged | FaultMoment::Published)
            {
                let (handle, infra) = cleaner.get().unwrap();
                handle.block_on(infra.clean_up()).unwrap();
            }
            None
        })
    };
    let world = world_with(faults).await;
    assert!(
        cleaner
            .set((Handle::current(), world.infra.clone()))
            .is_ok()
    );
    world.project("acme-site").await;
    deploy(
        &world,
        "production",
        &[("index.html", "front"), ("other", "more")],
    )
    .await;
    assert_eq!(body(get(&world, PAGE).await).await, "front");
    assert_eq!(world.names(CONTENT).len(), 2);
}

#[tokio::test]
async fn clean_up_deletes_files_of_an_interrupted_deployment() {
    let faults = Faults::new(|point| {
        let fails = point.call == "deploy" && point.moment == FaultMoment::Staged;
        fails.then(|| ProviderError::OutcomeUnknown("the process died".into()))
    });
    let world = world_with(faults).await;
    world.project("acme-site").await;
    let interrupted = upload("acme-site", "production", "d-1", &[("index.html", "new")]);
    assert!(world.infra.deploy_site(interrupted).await.is_err());
    let world = world.reopen().await;
    assert_eq!(world.infra.clean_up().await, Ok(1));
    assert_eq!(world.names(CONTENT).len(), 0);
    deploy(&world, "production", &[("index.html", "new")]).await;
    assert_eq!(body(get(&world, PAGE).await).await, "new");
}

#[tokio::test]
async fn old_site_layout_is_migrated() {
    let world = world().await;
    world.project("acme-site").await;
    deploy(
        &world,
        "production",
        &[("index.html", "front"), ("same", "shared")],
    )
    .await;
    deploy(
        &world,
        "preview",
        &[("index.html", "preview"), ("same", "shared")],
    )
    .await;

    // The layout of earlier versions has a folder of contents in each deployment.
    let root = world.folder.path().join("infra");
    let contents: Vec<PathBuf> = fs::read_dir(root.join(CONTENT))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    for id in world.names(DEPLOYMENTS) {
        let deployment = root.join(DEPLOYMENTS).join(id);
        let index = fs::read_to_string(deployment.join("index.json")).unwrap();
        fs::create_dir(deployment.join("content")).unwrap();
        for content in &contents {
            let digest = content.file_name().unwrap().to_str().unwrap();
            if index.contains(digest) {
                fs::copy(content, deployment.join("content").join(digest)).unwrap();
            }
        }
    }
    fs::remove_dir_all(root.join(CONTENT)).unwrap();
    fs::remove_file(root.join(".site-layout")).unwrap();

    let world = world.reopen().await;
    assert_eq!(body(get(&world, PAGE).await).await, "front");
    let preview = get(&world, "http://preview--acme-site.localhost/same").await;
    assert_eq!(body(preview).await, "shared");
    assert_eq!(world.names(CONTENT).len(), 3);
    for id in world.names(DEPLOYMENTS) {
        let names = world.names(&format!("{DEPLOYMENTS}/{id}"));
        assert!(!names.contains(&"content".to_owned()), "{names:?}");
    }
    assert_eq!(world.infra.clean_up().await, Ok(0));
}

#[tokio::test]
async fn site_storage_counts_each_content_once_per_project() {
    let world = world().await;
    world.project("acme-site").await;
    world.project("acme-more").await;
    let mut foreign = request(core_domain::registry::ResourceType::Pages, "other-site");
    foreign.owner = "platform-2".to_owned();
    world.infra.create(&foreign).await.unwrap();
    let files = [
        ("index.html", "front"),
        ("same", "front"),
        ("large", &*"x".repeat(5_000)),
    ];
    let new = upload("acme-site", "production", "d-1", &files);
    let room = async |owner: &str| {
        let measured = world
            .infra
            .site_storage("acme-site", "production", owner, new.site.files());
        let measured = measured.await.unwrap();
        (measured.stored_bytes, measured.new_bytes)
    };
    // Sizes are rounded up to blocks of 4 KiB.
    assert_eq!(room(OWNER).await, (0, 3 * 4_096));
    for (project, branch) in [
        ("acme-site", "production"),
        ("acme-site", "preview"),
        ("acme-more", "production"),
    ] {
        let upload = upload(project, branch, branch, &files);
        world.infra.deploy_site(upload).await.unwrap();
    }
    assert_eq!(room(OWNER).await, (6 * 4_096, 0));
    // Nothing is shared between owners.
    assert_eq!(room("platform-2").await, (0, 3 * 4_096));
}

#[tokio::test]
async fn replaced_deployments_are_deleted_if_space_is_short() {
    const ROOM: u64 = 4 * 4_096;
    let world = world_of(|config| config.site_bytes_per_owner = ROOM).await;
    world.project("acme-site").await;
    for n in 1..=9 {
        let text = "x".repeat(n);
        let files = [("index.html", text.as_str())];
        let new = upload("acme-site", "production", "measured", &files);
        let measured = world
            .infra
            .site_storage("acme-site", "production", OWNER, new.site.files());
        let measured = measured.await.unwrap();
        assert_eq!((measured.stored_bytes, measured.new_bytes), (0, 4_096));
        deploy(&world, "production", &files).await;
        assert_eq!(world.names(CONTENT).len(), n.min(4));
        assert_eq!(world.names(DEPLOYMENTS).len(), n.min(4));
        assert_eq!(body(get(&world, PAGE).await).await, text);
    }
}

#[tokio::test]
async fn configured_site_limits_are_enforced() {
    let world = world_of(|config| {
        config.site_limits.files = 20_001;
        config.site_limits.file_bytes = 3;
        config.site_limits.path_bytes = 6;
    })
    .await;
    world.project("acme-site").await;
    let paths: Vec<String> = (0..20_001).map(|number| number.to_string()).collect();
    let many: Vec<_> = paths.iter().map(|path| (path.as_str(), "same")).collect();
    let refused = |files: &[(&str, &str)]| upload("acme-site", "production", "d-1", files);
    for files in [&many[..], &[("a", "four")], &[("7-bytes", "")]] {
        let answer = world.infra.deploy_site(refused(files)).await;
        assert!(matches!(answer, Err(ProviderError::Permanent(_))));
    }
    let many: Vec<_> = paths.iter().map(|path| (path.as_str(), "one")).collect();
    world.infra.deploy_site(refused(&many)).await.unwrap();
    assert_eq!(world.names(CONTENT).len(), 1);
}
