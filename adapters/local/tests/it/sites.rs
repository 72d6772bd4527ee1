//! Tests of site deployments.

use std::sync::Arc;

use core_domain::cli::SiteFile;
use core_domain::port::{FileVisitor, Infrastructure, ProviderError, Site, SiteState};
use core_domain::registry::ResourceType;
use core_domain::testing::MemorySite;
use core_local::{FaultMoment, Faults};

use crate::host::{body, get};
use crate::support::{OWNER, request, resource, upload, world, world_with};

const PAGE: &str = "http://acme-site.localhost:8090/";

#[tokio::test]
async fn next_deployment_replaces_the_live_one() {
    let world = world().await;
    world.project("acme-site").await;
    let first = world
        .deploy(
            "acme-site",
            "d-1",
            &[("index.html", "one"), ("old.txt", "x")],
        )
        .await;
    assert_eq!((&*first.url, &first.state), (PAGE, &SiteState::Active));
    assert_eq!(body(get(&world, PAGE).await).await, "one");
    let second = world
        .deploy("acme-site", "d-2", &[("index.html", "two")])
        .await;
    assert_ne!(first.id, second.id);
    assert_eq!(body(get(&world, PAGE).await).await, "two");
    assert_eq!(get(&world, &format!("{PAGE}old.txt")).await.status(), 404);
}

#[tokio::test]
async fn repeated_key_returns_the_same_deployment_without_restoring_it() {
    let world = world().await;
    world.project("acme-site").await;
    let first = world
        .deploy("acme-site", "d-1", &[("index.html", "one")])
        .await;
    let again = world
        .deploy("acme-site", "d-1", &[("index.html", "other")])
        .await;
    assert_eq!(first, again);
    assert_eq!(body(get(&world, PAGE).await).await, "one");
    world
        .deploy("acme-site", "d-2", &[("index.html", "two")])
        .await;
    world
        .deploy("acme-site", "d-1", &[("index.html", "one")])
        .await;
    assert_eq!(body(get(&world, PAGE).await).await, "two");
}

#[tokio::test]
async fn each_branch_has_its_own_address() {
    let world = world().await;
    world.project("acme-site").await;
    world
        .deploy("acme-site", "d-1", &[("index.html", "live")])
        .await;
    for (key, branch) in [("d-2", "preview"), ("d-3", "Feature/New Look")] {
        let files = [("index.html", branch)];
        let upload = upload("acme-site", branch, key, &files);
        let shown = world.infra.deploy_site(upload).await.unwrap();
        assert_eq!(body(get(&world, &shown.url).await).await, branch);
        let label = shown.url.strip_prefix("http://").unwrap();
        let label = label.split('.').next().unwrap();
        assert!(label.ends_with("--acme-site"));
    }
    assert_eq!(body(get(&world, PAGE).await).await, "live");
}

#[tokio::test]
async fn branch_cannot_take_the_address_of_another_project() {
    let world = world().await;
    world.project("acme-site").await;
    world.project("preview--acme-site").await;
    let upload = upload("acme-site", "preview", "d-1", &[("index.html", "")]);
    let refused = world.infra.deploy_site(upload).await;
    assert!(matches!(refused, Err(ProviderError::Permanent(_))));
}

#[tokio::test]
async fn deployment_is_found_by_its_key() {
    let world = world().await;
    world.project("acme-site").await;
    let find = |key| world.infra.site_deployment("acme-site", key);
    assert_eq!(find("d-1").await, Ok(None));
    let made = world
        .deploy("acme-site", "d-1", &[("index.html", "one")])
        .await;
    assert_eq!(find("d-1").await, Ok(Some(made.clone())));
    world
        .deploy("acme-site", "d-2", &[("index.html", "two")])
        .await;
    assert_eq!(find("d-1").await, Ok(Some(made)));
    assert_eq!(find("d-3").await, Ok(None));
    assert_eq!(
        world.infra.site_deployment("acme-none", "d-1").await,
        Ok(None)
    );
}

#[tokio::test]
async fn unsafe_and_conflicting_paths_are_refused_permanently() {
    let world = world().await;
    world.project("acme-site").await;
    for files in [
        &[][..],
        &[("../x", "")],
        &[("/x", "")],
        &["a//b", "a"].map(|path| (path, "")),
        &["a", "a"].map(|path| (path, "")),
        &["a", "a/b"].map(|path| (path, "")),
        &[("a\\b", "")],
        &[("a\0", "")],
        &[("", "")],
    ] {
        let refused = world
            .infra
            .deploy_site(upload("acme-site", "production", "d-1", files))
            .await;
        assert!(
            matches!(refused, Err(ProviderError::Permanent(_))),
            "{files:?}"
        );
    }
    let paths: Vec<_> = (0..20_001).map(|number| number.to_string()).collect();
    let files: Vec<_> = paths.iter().map(|path| (path.as_str(), "")).collect();
    let refused = world
        .infra
        .deploy_site(upload("acme-site", "production", "d-1", &files))
        .await;
    assert!(matches!(refused, Err(ProviderError::Permanent(_))));
    let too_large = "x".repeat(25 * 1024 * 1024 + 1);
    let large = upload("acme-site", "production", "d-1", &[("a", &too_large)]);
    let refused = world.infra.deploy_site(large).await;
    assert!(matches!(refused, Err(ProviderError::Permanent(_))));
    for (branch, key) in [("", "d-1"), ("production", "")] {
        let incomplete = upload("acme-site", branch, key, &[("a", "")]);
        let refused = world.infra.deploy_site(incomplete).await;
        assert!(matches!(refused, Err(ProviderError::Permanent(_))));
    }
    let nowhere = upload("acme-none", "production", "d-1", &[("a", "")]);
    let refused = world.infra.deploy_site(nowhere).await;
    assert!(matches!(refused, Err(ProviderError::Permanent(_))));
    assert_eq!(
        world.infra.site_deployment("acme-site", "d-1").await,
        Ok(None)
    );
    assert!(world.staging().is_empty());
}

#[tokio::test]
async fn interrupted_deployment_is_hidden_until_a_retry_finishes_it() {
    for moment in [
        FaultMoment::Before,
        FaultMoment::Staged,
        FaultMoment::Published,
    ] {
        let faults = Faults::new(move |point| {
            let fails = point.call == "deploy" && point.moment == moment;
            fails.then(|| ProviderError::OutcomeUnknown("asked for".into()))
        });
        let world = world_with(faults).await;
        world.project("acme-site").await;
        let files = [("index.html", "new")];
        let wanted = || upload("acme-site", "production", "d-1", &files);
        assert!(world.infra.deploy_site(wanted()).await.is_err());
        assert_eq!(get(&world, PAGE).await.status(), 404, "{moment:?}");
        let found = world.infra.site_deployment("acme-site", "d-1").await;
        assert_eq!(found, Ok(None), "{moment:?}");
        let world = world.reopen().await;
        world.infra.deploy_site(wanted()).await.unwrap();
        assert_eq!(body(get(&world, PAGE).await).await, "new", "{moment:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_deployments_all_exist_and_one_is_live() {
    let world = world().await;
    world.project("acme-site").await;
    let tasks = (0..10).map(|number| {
        let infra = world.infra.clone();
        // Each deployment is requested twice.
        let key = format!("d-{}", number / 2);
        tokio::spawn(async move {
            let files = [("index.html", key.as_str())];
            infra
                .deploy_site(upload("acme-site", "production", &key, &files))
                .await
                .unwrap()
        })
    });
    let mut ids = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        ids.push(task.await.unwrap().id);
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 5);
    assert!(body(get(&world, PAGE).await).await.starts_with("d-"));
}

#[tokio::test]
async fn removed_project_loses_its_sites_and_its_name_is_free() {
    let world = world().await;
    world.project("acme-site").await;
    world
        .deploy("acme-site", "d-1", &[("index.html", "old")])
        .await;
    assert_eq!(get(&world, PAGE).await.status(), 200);
    let target = resource(ResourceType::Pages, "acme-site");
    world.infra.remove(&target, OWNER).await.unwrap();
    assert_eq!(get(&world, PAGE).await.status(), 404);
    world
        .infra
        .create(&request(ResourceType::Pages, "acme-site"))
        .await
        .unwrap();
    assert_eq!(get(&world, PAGE).await.status(), 404);
    world
        .deploy("acme-site", "d-1", &[("index.html", "new")])
        .await;
    assert_eq!(body(get(&world, PAGE).await).await, "new");
}

#[tokio::test]
async fn content_shared_by_two_deployments_is_stored_once() {
    let world = world().await;
    world.project("acme-site").await;
    world
        .deploy("acme-site", "d-1", &[("a.txt", "same"), ("b.txt", "same")])
        .await;
    world
        .deploy("acme-site", "d-2", &[("a.txt", "same"), ("c.txt", "new")])
        .await;
    assert_eq!(world.names("pages/acme-site/content").len(), 2);
}

#[tokio::test]
async fn path_is_found_in_every_unicode_normalization() {
    let world = world().await;
    world.project("acme-site").await;
    let files = [("index.html", "front"), ("caf\u{e9}/a.html", "page")];
    world.deploy("acme-site", "d-1", &files).await;
    for path in ["caf%C3%A9/a.html", "cafe%CC%81/a.html"] {
        let answer = get(&world, &format!("{PAGE}{path}")).await;
        assert_eq!(body(answer).await, "page", "{path}");
    }
}

#[tokio::test]
async fn site_that_changes_during_the_upload_is_not_deployed() {
    #[derive(Debug)]
    struct ChangingSite(MemorySite);
    impl Site for ChangingSite {
        fn files(&self) -> &[SiteFile] {
            self.0.files()
        }
        fn read(&self, visitor: &mut FileVisitor<'_>) -> std::io::Result<()> {
            self.0
                .read(&mut |file, _| visitor(file, &mut &b"other"[..]))
        }
    }
    let world = world().await;
    world.project("acme-site").await;
    let mut changed = upload("acme-site", "production", "d-1", &[]);
    let site: MemorySite = [("index.html", "front")].into_iter().collect();
    changed.site = Arc::new(ChangingSite(site));
    let refused = world.infra.deploy_site(changed).await;
    assert!(matches!(refused, Err(ProviderError::Transient(_))));
    assert!(world.staging().is_empty());
    assert_eq!(get(&world, PAGE).await.status(), 404);
}
