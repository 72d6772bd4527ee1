//! Tests of what the receipts of deployments make possible: uploads of changed files alone, and previews that are deployed
//! again.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use core_cloudflare_fake::{Exchange, Fault, Kind, Settings, Silence};
use core_domain::cli::{PlannedFile, SiteLimits, SiteManifest};
use core_domain::kernel::hex;
use core_domain::port::{
    Blobs, Infrastructure, PartialSite, ProviderError, Site, SiteDeployment, SiteRedeploy,
    SiteState, SiteUpload,
};
use core_domain::registry::ResourceType;
use core_domain::testing::MemorySite;
use serde_json::Value;

use crate::operations::wait_for_deployment;
use crate::sites::{project, uploads, with_project};
use crate::world::{OWNER, STRANGER, World, adapter, request, resource, site, upload};

const PRODUCTION: &str = "production";

const SITE: [(&str, &str); 4] = [
    ("index.html", "home"),
    ("a.css", "style"),
    ("b.txt", "style"),
    ("_headers", "/*\n  X-A: 1"),
];

/// Returns a request to deploy a preview again in a branch.
fn redeploy(source_key: &str, branch: &str, key: &str) -> SiteRedeploy {
    SiteRedeploy {
        project: project(),
        branch: branch.to_owned(),
        deployment_key: key.to_owned(),
        source_key: source_key.to_owned(),
        source_branch: "feature/x".to_owned(),
        source_id: None,
    }
}

/// Returns an upload of a site that has only the files with these paths. The provider has the others.
fn partial(all: &[(&str, &str)], uploaded: &[&str], key: &str) -> SiteUpload {
    let whole: MemorySite = all.iter().copied().collect();
    let files = whole.files().iter().map(|file| PlannedFile {
        path: file.path.clone(),
        size: file.size,
        digest: hex(&file.digest),
    });
    let files: Vec<_> = files.collect();
    let manifest = SiteManifest::new(&files, SiteLimits::default()).unwrap();
    let sent = all.iter().filter(|(path, _)| uploaded.contains(path));
    let sent: MemorySite = sent.copied().collect();
    SiteUpload {
        site: Arc::new(PartialSite::new(manifest, Arc::new(sent)).unwrap()),
        ..upload(MemorySite::default(), PRODUCTION, key)
    }
}

async fn deploy(world: &World, upload: SiteUpload) -> SiteDeployment {
    let key = upload.deployment_key.clone();
    world.cloudflare.deploy_site(upload).await.unwrap();
    wait_for_deployment(world, &key).await
}

/// Deploys a page to production with the key `key-1`, and [`SITE`] as a preview with the key `key-2`.
async fn deploy_site_and_preview(world: &World) {
    let live = site([("index.html", "live")]);
    deploy(world, upload(live, PRODUCTION, "key-1")).await;
    deploy(world, upload(site(SITE), "feature/x", "key-2")).await;
}

/// Returns the paths of those files whose contents are stored for an owner.
async fn stored_paths(world: &World, owner: &str, files: &[(&str, &str)]) -> Vec<String> {
    let site: MemorySite = files.iter().copied().collect();
    let stored = world
        .cloudflare
        .stored_contents(&project(), owner, site.files())
        .await
        .unwrap();
    let files = site.files().iter();
    let stored = files.filter(|file| stored.contains(&file.digest));
    stored.map(|file| file.path.clone()).collect()
}

async fn refusal(world: &World, request: &SiteRedeploy) -> String {
    match world.cloudflare.redeploy_site(request).await {
        Err(ProviderError::Permanent(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// Returns the bodies of the POST requests whose path has this end.
fn sent_bodies(world: &World, end: &str) -> Vec<Bytes> {
    let exchanges = world.fake.exchanges().into_iter();
    let is_wanted = |exchange: &Exchange| {
        exchange.recorded.method == "POST" && exchange.recorded.path.ends_with(end)
    };
    let wanted = exchanges.filter(is_wanted);
    wanted.map(|exchange| exchange.request).collect()
}

fn recording() -> Settings {
    Settings {
        record_exchanges: true,
        ..Settings::default()
    }
}

fn file(world: &World, path: &str) -> Option<String> {
    let content = world.fake.pages_file(&project(), path)?;
    Some(String::from_utf8(content.to_vec()).unwrap())
}

#[tokio::test]
async fn a_preview_is_promoted_without_an_upload() {
    let mut world = with_project(recording()).await;
    deploy(&world, upload(site(SITE), "feature/x", "key-1")).await;
    let before = uploads(&world);
    world.restart();
    let request = redeploy("key-1", PRODUCTION, "key-2");
    let promoted = world.cloudflare.redeploy_site(&request).await.unwrap();
    let live = wait_for_deployment(&world, "key-2").await;
    assert_eq!((live.id, live.state), (promoted.id, SiteState::Active));
    assert_eq!(file(&world, "/a.css").as_deref(), Some("style"));
    assert_eq!(uploads(&world), before);
    let forms = sent_bodies(&world, "/deployments");
    let form = String::from_utf8_lossy(forms.last().unwrap());
    assert!(form.contains("X-A: 1"), "{form}");
}

#[tokio::test]
async fn a_preview_is_rolled_back_to_its_earlier_content() {
    let world = with_project(Settings::default()).await;
    for (key, content) in [("key-1", "old"), ("key-2", "new")] {
        let site = site([("index.html", content)]);
        deploy(&world, upload(site, "feature/x", key)).await;
    }
    let request = redeploy("key-1", "feature/x", "key-3");
    world.cloudflare.redeploy_site(&request).await.unwrap();
    wait_for_deployment(&world, "key-3").await;
    let shown = world
        .fake
        .preview_file(&project(), "feature/x", "/index.html");
    assert_eq!(shown.unwrap(), "old");
    assert_eq!(file(&world, "/index.html"), None);
}

#[tokio::test]
async fn a_repeated_promotion_makes_one_deployment() {
    let world = with_project(Settings::default()).await;
    deploy(&world, upload(site(SITE), "feature/x", "key-1")).await;
    let request = redeploy("key-1", PRODUCTION, "key-2");
    let path = format!("pages/projects/{}/deployments", project());
    let lost = world.matcher("POST", &path);
    world
        .fake
        .inject(lost, Fault::TimeoutAfterEffect(Silence::Close));
    let mut ids = BTreeSet::new();
    for _ in 0..3 {
        let promoted = world.cloudflare.redeploy_site(&request).await.unwrap();
        ids.insert(promoted.id);
    }
    assert_eq!(ids.len(), 1);
    assert_eq!(world.fake.count(Kind::PagesDeployment), 2);
}

#[tokio::test]
async fn a_preview_whose_contents_are_gone_is_not_promoted() {
    let world = with_project(Settings::default()).await;
    deploy_site_and_preview(&world).await;
    world.fake.remove_unused_contents();
    let why = refusal(&world, &redeploy("key-2", PRODUCTION, "key-3")).await;
    assert!(why.contains("3 contents") && why.contains("again"), "{why}");
    let why = refusal(&world, &redeploy("unknown", PRODUCTION, "key-3")).await;
    assert!(why.contains("deploy the site again"), "{why}");
    assert_eq!(file(&world, "/index.html").as_deref(), Some("live"));
    assert_eq!(world.fake.count(Kind::PagesDeployment), 2);
}

#[tokio::test]
async fn only_changed_files_are_uploaded() {
    let mut world = with_project(recording()).await;
    assert!(stored_paths(&world, OWNER, &SITE).await.is_empty());
    deploy(&world, upload(site(SITE), "feature/x", "key-1")).await;
    world.restart();
    let changed = [
        ("index.html", "new"),
        ("moved/a.css", "style"),
        ("b.txt", "style"),
        ("_headers", "/*\n  X-A: 1"),
        (".git/config", "ignored"),
    ];
    let known = ["moved/a.css", "b.txt", "_headers", ".git/config"];
    assert_eq!(stored_paths(&world, OWNER, &changed).await, known);
    let before = sent_bodies(&world, "/assets/upload").len();
    deploy(&world, partial(&changed, &["index.html"], "key-2")).await;
    let after = sent_bodies(&world, "/assets/upload").split_off(before);
    let [uploaded] = &after[..] else {
        panic!("{after:?}");
    };
    let uploaded: Value = serde_json::from_slice(uploaded).unwrap();
    assert_eq!(uploaded.as_array().unwrap().len(), 1);
    for (path, content) in [
        ("/index.html", Some("new")),
        ("/moved/a.css", Some("style")),
        ("/b.txt", Some("style")),
        ("/a.css", None),
    ] {
        assert_eq!(file(&world, path).as_deref(), content, "{path}");
    }
}

#[tokio::test]
async fn a_content_with_another_extension_is_uploaded_again() {
    let world = with_project(Settings::default()).await;
    deploy(
        &world,
        upload(site([("index.html", "x")]), PRODUCTION, "key-1"),
    )
    .await;
    let renamed = [("index.html", "x"), ("index.txt", "x")];
    assert!(stored_paths(&world, OWNER, &renamed).await.is_empty());
}

#[tokio::test]
async fn a_content_in_another_role_is_uploaded_again() {
    let world = with_project(Settings::default()).await;
    let files = [
        ("index.html", "home"),
        ("page", "text"),
        ("_headers", "rules"),
    ];
    deploy(&world, upload(site(files), PRODUCTION, "key-1")).await;
    let page_of_settings = [("index.html", "home"), ("rules", "rules")];
    let settings_of_page = [("index.html", "home"), ("_redirects", "text")];
    for changed in [page_of_settings, settings_of_page] {
        assert_eq!(stored_paths(&world, OWNER, &changed).await, ["index.html"]);
    }
}

#[tokio::test]
async fn one_of_two_files_with_equal_contents_is_enough() {
    let world = with_project(Settings::default()).await;
    let twins = [
        ("index.html", "x"),
        ("a/index.html", "x"),
        ("_headers", "y"),
        ("_redirects", "y"),
    ];
    let upload = partial(&twins, &["index.html", "_redirects"], "key-1");
    deploy(&world, upload).await;
    assert_eq!(file(&world, "/a/index.html").as_deref(), Some("x"));
}

#[tokio::test]
async fn a_content_that_disappears_fails_the_deployment_and_not_the_site() {
    let world = with_project(Settings::default()).await;
    deploy_site_and_preview(&world).await;
    let next = partial(&SITE, &["index.html"], "key-3");
    world.fake.remove_unused_contents();
    assert_eq!(stored_paths(&world, OWNER, &SITE).await, ["_headers"]);
    let failed = world.cloudflare.deploy_site(next).await;
    let Err(ProviderError::Permanent(why)) = failed else {
        panic!("{failed:?}");
    };
    assert!(why.contains("no longer stored"), "{why}");
    assert_eq!(file(&world, "/index.html").as_deref(), Some("live"));
    let unknown = [("index.html", "live"), ("c.css", "never deployed")];
    let unknown = partial(&unknown, &["index.html"], "key-4");
    let failed = world.cloudflare.deploy_site(unknown).await;
    assert!(
        matches!(failed, Err(ProviderError::Permanent(_))),
        "{failed:?}"
    );
}

#[tokio::test]
async fn the_contents_of_another_owner_are_not_shown() {
    let world = with_project(Settings::default()).await;
    deploy(&world, upload(site(SITE), PRODUCTION, "key-1")).await;
    assert_eq!(stored_paths(&world, OWNER, &SITE).await.len(), SITE.len());
    assert!(stored_paths(&world, STRANGER, &SITE).await.is_empty());
}

#[tokio::test]
async fn receipts_are_removed_with_their_project() {
    let world = with_project(Settings::default()).await;
    for key in ["key-1", "key-2"] {
        deploy(&world, upload(site(SITE), PRODUCTION, key)).await;
    }
    assert_eq!(world.blobs.keys().len(), 3);
    let project = resource(ResourceType::Pages);
    world.cloudflare.remove(&project, OWNER).await.unwrap();
    assert!(world.blobs.keys().is_empty());
    world
        .cloudflare
        .create(&request(ResourceType::Pages))
        .await
        .unwrap();
    assert!(stored_paths(&world, OWNER, &SITE).await.is_empty());
}

#[tokio::test]
async fn the_last_twenty_receipts_of_a_project_are_kept() {
    let world = with_project(Settings::default()).await;
    for number in 0..23 {
        deploy(
            &world,
            upload(site(SITE), "feature/x", &format!("key-{number}")),
        )
        .await;
    }
    assert_eq!(world.blobs.keys().len(), 21);
    let why = refusal(&world, &redeploy("key-2", PRODUCTION, "key-a")).await;
    assert!(why.contains("not known"), "{why}");
    let request = redeploy("key-3", PRODUCTION, "key-b");
    assert!(world.cloudflare.redeploy_site(&request).await.is_ok());
}

#[tokio::test]
async fn a_receipt_is_kept_while_its_content_is_deployed_again() {
    let world = with_project(Settings::default()).await;
    deploy(&world, upload(site(SITE), "feature/x", "key")).await;
    for number in 0..25 {
        let request = redeploy("key", PRODUCTION, &format!("again-{number}"));
        let again = world.cloudflare.redeploy_site(&request).await;
        assert!(again.is_ok(), "{number}: {again:?}");
    }
}

#[tokio::test]
async fn damaged_receipts_count_as_missing() {
    let world = with_project(Settings::default()).await;
    deploy(&world, upload(site(SITE), "feature/x", "key-1")).await;
    for damaged in [
        "",
        "[1]",
        "{\"files\":[{\"path\":\"a\",\"size\":1,\"digest\":\"x\",\"hash\":\"y\"}],\"settings\":[]}",
    ] {
        for key in world.blobs.keys() {
            world.blobs.put(&key, damaged.into()).await.unwrap();
        }
        assert!(stored_paths(&world, OWNER, &SITE).await.is_empty());
        let why = refusal(&world, &redeploy("key-1", PRODUCTION, "key-2")).await;
        assert!(why.contains("not known"), "{why}");
    }
    deploy(&world, upload(site(SITE), "feature/x", "key-3")).await;
    assert_eq!(stored_paths(&world, OWNER, &SITE).await.len(), SITE.len());
}

#[tokio::test]
async fn without_a_store_of_receipts_every_file_is_uploaded() {
    let mut world = with_project(Settings::default()).await;
    world.cloudflare = adapter(&world.fake, |_| ());
    deploy(&world, upload(site(SITE), "feature/x", "key-1")).await;
    assert!(stored_paths(&world, OWNER, &SITE).await.is_empty());
    let why = refusal(&world, &redeploy("key-1", PRODUCTION, "key-2")).await;
    assert!(why.contains("not known"), "{why}");
}
