//! Tests of permanent addresses, of rollbacks without an upload, and of uploads of only some files.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use core_domain::cli::{PlannedFile, SiteLimits, SiteManifest};
use core_domain::kernel::hex;
use core_domain::port::{
    Infrastructure, PartialSite, ProviderError, Site, SiteDeployment, SiteRedeploy, SiteUpload,
};
use core_domain::testing::MemorySite;
use core_local::{FaultMoment, Faults};

use crate::host::{body, get};
use crate::support::{OWNER, World, upload, world, world_of, world_with};

const PAGE: &str = "http://acme-site.localhost:8090/";

fn redeploy(key: &str, branch: &str, source: &str) -> SiteRedeploy {
    SiteRedeploy {
        project: "acme-site".to_owned(),
        branch: branch.to_owned(),
        deployment_key: key.to_owned(),
        source_key: source.to_owned(),
        source_branch: "production".to_owned(),
        source_id: None,
    }
}

/// Returns the upload of some files of a site.
fn partial(key: &str, all: &[(&str, &str)], uploaded: &[(&str, &str)]) -> SiteUpload {
    let planned = |file: &core_domain::cli::SiteFile| PlannedFile {
        path: file.path.clone(),
        size: file.size,
        digest: hex(&file.digest),
    };
    let all = MemorySite::from_iter(all.iter().copied());
    let files: Vec<_> = all.files().iter().map(planned).collect();
    let manifest = SiteManifest::new(&files, SiteLimits::default()).unwrap();
    let uploaded = Arc::new(MemorySite::from_iter(uploaded.iter().copied()));
    SiteUpload {
        project: "acme-site".to_owned(),
        branch: "production".to_owned(),
        deployment_key: key.to_owned(),
        site: Arc::new(PartialSite::new(manifest, uploaded).unwrap()),
    }
}

async fn body_of(world: &World, url: &str) -> String {
    body(get(world, url).await).await
}

fn permalink(deployment: &SiteDeployment) -> &str {
    deployment.permalink.as_deref().unwrap()
}

#[tokio::test]
async fn every_deployment_keeps_an_address_of_its_own() {
    let world = world().await;
    world.project("acme-site").await;
    let first = world
        .deploy("acme-site", "d-1", &[("index.html", "one")])
        .await;
    let second = world
        .deploy("acme-site", "d-2", &[("index.html", "two")])
        .await;
    let preview = upload("acme-site", "preview", "d-3", &[("index.html", "three")]);
    let preview = world.infra.deploy_site(preview).await.unwrap();
    for (deployment, content) in [(&first, "one"), (&second, "two"), (&preview, "three")] {
        assert_eq!(body_of(&world, permalink(deployment)).await, content);
    }
    assert_eq!(body_of(&world, PAGE).await, "two");
    // A branch cannot take the address of a deployment.
    let label = permalink(&first).trim_start_matches("http://");
    let branch = label.split("---").next().unwrap();
    let other = upload("acme-site", branch, "d-4", &[("index.html", "four")]);
    world.infra.deploy_site(other).await.unwrap();
    assert_eq!(body_of(&world, permalink(&first)).await, "one");
    let unknown = "http://0123456789ab---acme-site.localhost:8090/";
    assert_eq!(get(&world, unknown).await.status(), 404);
}

#[tokio::test]
async fn a_rollback_shows_the_earlier_content_without_an_upload() {
    let world = world().await;
    world.project("acme-site").await;
    world
        .deploy("acme-site", "d-1", &[("index.html", "one"), ("a.txt", "a")])
        .await;
    world
        .deploy("acme-site", "d-2", &[("index.html", "two")])
        .await;
    let contents = world.names("pages/acme-site/content");
    let request = redeploy("d-3", "production", "d-1");
    let back = world.infra.redeploy_site(&request).await.unwrap();
    assert_eq!(world.infra.redeploy_site(&request).await.unwrap(), back);
    assert_eq!(body_of(&world, PAGE).await, "one");
    assert_eq!(body_of(&world, &format!("{PAGE}a.txt")).await, "a");
    assert_eq!(body_of(&world, permalink(&back)).await, "one");
    assert_eq!(world.names("pages/acme-site/content").len(), contents.len());
    let found = world
        .infra
        .site_deployment("acme-site", "d-3")
        .await
        .unwrap();
    assert_eq!(found, Some(back));
    // A promotion of the content to another branch.
    let request = redeploy("d-4", "next", "d-2");
    let next = world.infra.redeploy_site(&request).await.unwrap();
    assert_eq!(body_of(&world, &next.url).await, "two");
    assert_eq!(body_of(&world, PAGE).await, "one");
}

#[tokio::test]
async fn a_rollback_to_a_removed_deployment_is_refused_and_changes_nothing() {
    let world = world_of(|config| config.retention.previous = 0).await;
    world.project("acme-site").await;
    world
        .deploy("acme-site", "d-1", &[("index.html", "one")])
        .await;
    world
        .deploy("acme-site", "d-2", &[("index.html", "two")])
        .await;
    for source in ["d-1", "never"] {
        let request = redeploy(&format!("from-{source}"), "production", source);
        let refused = world.infra.redeploy_site(&request).await;
        let Err(ProviderError::Permanent(why)) = refused else {
            panic!("{refused:?}");
        };
        assert!(why.contains("deploy the site again"), "{why}");
    }
    assert_eq!(body_of(&world, PAGE).await, "two");
    assert!(world.staging().is_empty());
}

#[tokio::test]
async fn an_interrupted_rollback_is_finished_by_its_repetition() {
    for moment in [
        FaultMoment::Staged,
        FaultMoment::Published,
        FaultMoment::Live,
    ] {
        let fails = Arc::new(AtomicBool::new(false));
        let armed = Arc::clone(&fails);
        let world = world_with(Faults::new(move |point| {
            let hit = point.moment == moment && armed.swap(false, Ordering::Relaxed);
            hit.then(|| ProviderError::OutcomeUnknown("the process died".into()))
        }))
        .await;
        world.project("acme-site").await;
        world
            .deploy("acme-site", "d-1", &[("index.html", "one")])
            .await;
        world
            .deploy("acme-site", "d-2", &[("index.html", "two")])
            .await;
        fails.store(true, Ordering::Relaxed);
        let request = redeploy("d-3", "production", "d-1");
        assert!(world.infra.redeploy_site(&request).await.is_err());
        let page = body_of(&world, PAGE).await;
        assert!(["one", "two"].contains(&&*page), "{page}");
        world.infra.redeploy_site(&request).await.unwrap();
        assert_eq!(body_of(&world, PAGE).await, "one");
    }
}

#[tokio::test]
async fn an_upload_needs_only_the_contents_that_the_project_lacks() {
    let world = world().await;
    world.project("acme-site").await;
    let all = [("index.html", "one"), ("a.txt", "a"), ("copy.txt", "a")];
    let files = MemorySite::from_iter(all);
    let stored = async |owner: &str| {
        let stored = world
            .infra
            .stored_contents("acme-site", owner, files.files());
        stored.await
    };
    assert_eq!(stored(OWNER).await, Ok(BTreeSet::new()));
    world
        .deploy("acme-site", "d-1", &[("index.html", "old"), ("a.txt", "a")])
        .await;
    assert_eq!(
        stored(OWNER).await,
        Ok(BTreeSet::from([files.files()[1].digest]))
    );
    assert!(matches!(
        stored("another").await,
        Err(ProviderError::NameTaken(_))
    ));
    let upload = partial("d-2", &all, &[("index.html", "one")]);
    world.infra.deploy_site(upload).await.unwrap();
    for (path, content) in all {
        let path = path.trim_end_matches("index.html");
        assert_eq!(body_of(&world, &format!("{PAGE}{path}")).await, content);
    }
    let missing = partial("d-3", &[("index.html", "one"), ("b.txt", "b")], &[]);
    let refused = world.infra.deploy_site(missing).await;
    assert!(
        matches!(refused, Err(ProviderError::Permanent(_))),
        "{refused:?}"
    );
    assert_eq!(body_of(&world, &format!("{PAGE}a.txt")).await, "a");
    assert!(world.staging().is_empty());
}
