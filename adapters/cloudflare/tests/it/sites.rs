//! Tests of sites: uploaded completely in parts of limited size, and deployed once.

use std::sync::Arc;

use core_cloudflare_fake::{DeploymentEnd, Fault, Kind, Settings};
use core_domain::kernel::Secret;
use core_domain::port::{
    Infrastructure, ObjectRequest, ProviderError, SetSecrets, SiteRedeploy, SiteState, SiteUpload,
};
use core_domain::registry::ResourceType;
use core_domain::testing::MemorySite;
use http::Method;
use serde_json::json;

use crate::operations::wait_for_deployment;
use crate::world::{NOW, OWNER, World, request, resource, site, upload};

pub(crate) fn project() -> String {
    resource(ResourceType::Pages).name
}

pub(crate) async fn with_project(settings: Settings) -> World {
    let world = World::with(settings, |_| ()).await;
    world.make(ResourceType::Pages).await;
    world
}

pub(crate) fn uploads(world: &World) -> usize {
    let posts = world.paths("POST");
    posts
        .iter()
        .filter(|path| path.ends_with("/assets/upload"))
        .count()
}

#[tokio::test]
async fn deployed_site_serves_the_uploaded_files() {
    let world = with_project(Settings::default()).await;
    let files = [
        ("index.html", "<h1>hi</h1>\n"),
        ("css/a.css", "body{}\n"),
        ("copy.css", "body{}\n"),
    ];
    let deployed = world
        .cloudflare
        .deploy_site(upload(site(files), "production", "key-1"))
        .await;
    let deployed = deployed.unwrap();
    assert_eq!(deployed.state, SiteState::Deploying);
    let live = wait_for_deployment(&world, "key-1").await;
    assert_eq!((live.state, live.id), (SiteState::Active, deployed.id));
    for (path, content) in files {
        let hosted = world
            .fake
            .pages_file(&project(), &format!("/{path}"))
            .unwrap();
        assert_eq!(hosted, content, "{path}");
    }
}

#[tokio::test]
async fn repeated_deployment_neither_duplicates_nor_restores_it() {
    let world = with_project(Settings::default()).await;
    let (first, second) = (site([("index.html", "1")]), site([("index.html", "2")]));
    let one = upload(first, "production", "key-1");
    let deployed = world.cloudflare.deploy_site(one.clone()).await.unwrap();
    wait_for_deployment(&world, "key-1").await;
    world
        .cloudflare
        .deploy_site(upload(second, "production", "key-2"))
        .await
        .unwrap();
    wait_for_deployment(&world, "key-2").await;
    let again = world.cloudflare.deploy_site(one).await.unwrap();
    assert_eq!((again.id, again.state), (deployed.id, SiteState::Active));
    assert_eq!(world.fake.count(Kind::PagesDeployment), 2);
    assert_eq!(
        world.fake.pages_file(&project(), "/index.html").unwrap(),
        "2"
    );
    let unknown = world.cloudflare.site_deployment(&project(), "key-3").await;
    assert_eq!(unknown.unwrap(), None);
}

#[tokio::test]
async fn known_files_are_not_uploaded_again() {
    let world = with_project(Settings::default()).await;
    let first = site([("index.html", "1"), ("a.css", "a")]);
    world
        .cloudflare
        .deploy_site(upload(first, "production", "key-1"))
        .await
        .unwrap();
    assert_eq!(uploads(&world), 1);
    let moved = site([("index.html", "1"), ("b.css", "a")]);
    world
        .cloudflare
        .deploy_site(upload(moved, "production", "key-2"))
        .await
        .unwrap();
    wait_for_deployment(&world, "key-2").await;
    assert_eq!(uploads(&world), 1);
    assert_eq!(world.fake.pages_file(&project(), "/b.css").unwrap(), "a");
}

#[tokio::test]
async fn other_branch_does_not_change_production() {
    let world = with_project(Settings::default()).await;
    let preview = upload(site([("index.html", "draft")]), "feature/x", "key-1");
    world.cloudflare.deploy_site(preview).await.unwrap();
    assert_eq!(
        wait_for_deployment(&world, "key-1").await.state,
        SiteState::Active
    );
    assert_eq!(world.fake.pages_file(&project(), "/index.html"), None);
}

/// Returns distinct files with these sizes in bytes.
fn files(sizes: impl IntoIterator<Item = usize>) -> MemorySite {
    let content = |(number, size): (usize, usize)| {
        let mut content = number.to_string().into_bytes();
        content.resize(size, b'.');
        (format!("f{number:05}.bin"), content)
    };
    sizes.into_iter().enumerate().map(content).collect()
}

#[tokio::test]
async fn part_is_limited_to_2000_files_and_40_mib() {
    const MIB: usize = 1024 * 1024;
    for (site, parts) in [
        (files([8; 2_000]), 1),
        (files([8; 2_001]), 2),
        (files([20 * MIB, 20 * MIB]), 1),
        (files([20 * MIB, 21 * MIB]), 2),
    ] {
        let world = with_project(Settings::default()).await;
        world
            .cloudflare
            .deploy_site(upload(site, "production", "key-1"))
            .await
            .unwrap();
        assert_eq!(uploads(&world), parts);
    }
}

#[tokio::test]
async fn file_is_limited_to_25_mib() {
    const LARGEST: usize = 25 * 1024 * 1024;
    let world = with_project(Settings::default()).await;
    let larger = upload(files([LARGEST + 1]), "production", "key-1");
    let refused = world.cloudflare.deploy_site(larger).await;
    assert!(
        matches!(refused, Err(ProviderError::Permanent(_))),
        "{refused:?}"
    );
    assert_eq!(world.fake.count(Kind::PagesDeployment), 0);
    world
        .cloudflare
        .deploy_site(upload(files([LARGEST]), "production", "key-2"))
        .await
        .unwrap();
}

#[tokio::test]
async fn token_limits_the_number_of_files() {
    let settings = Settings {
        max_pages_files: 3,
        ..Settings::default()
    };
    let world = with_project(settings).await;
    let refused = world
        .cloudflare
        .deploy_site(upload(files([1; 4]), "production", "key-1"))
        .await;
    let expected = "a deployment has 1 to 3 files".to_owned();
    assert_eq!(refused, Err(ProviderError::Permanent(expected)));
    world
        .cloudflare
        .deploy_site(upload(files([1; 3]), "production", "key-2"))
        .await
        .unwrap();
}

#[tokio::test]
async fn upload_continues_with_a_new_token_after_expiry() {
    for path in ["check-missing", "upload", "upsert-hashes"] {
        let world = with_project(Settings::default()).await;
        let expired = Fault::Refusal {
            status: 401,
            code: 8_000_013,
        };
        let matcher = core_cloudflare_fake::Matcher::new("POST", &format!("/pages/assets/{path}"));
        world.fake.inject_times(&matcher, &expired, 2);
        world
            .cloudflare
            .deploy_site(upload(files([9; 5]), "production", "key-1"))
            .await
            .unwrap();
        assert_eq!(
            wait_for_deployment(&world, "key-1").await.state,
            SiteState::Active
        );
        assert_eq!(world.fake.waiting_faults(), 0);
        let tokens = world.paths("GET").into_iter();
        assert_eq!(
            tokens
                .filter(|path| path.ends_with("/upload-token"))
                .count(),
            3
        );
    }
}

#[tokio::test]
async fn token_is_renewed_shortly_before_it_expires() {
    let settings = Settings {
        upload_token_exp: u64::try_from(NOW).unwrap() + 10,
        ..Settings::default()
    };
    let world = with_project(settings).await;
    world
        .cloudflare
        .deploy_site(upload(files([9]), "production", "key-1"))
        .await
        .unwrap();
    // One token at the start, and one before each of the three calls that need it.
    let tokens = world.paths("GET").into_iter();
    assert_eq!(
        tokens
            .filter(|path| path.ends_with("/upload-token"))
            .count(),
        4
    );
}

#[tokio::test]
async fn failed_registration_of_files_is_not_an_error() {
    let world = with_project(Settings::default()).await;
    let matcher = core_cloudflare_fake::Matcher::new("POST", "/pages/assets/upsert-hashes");
    let fault = Fault::Status {
        status: 500,
        retry_after: None,
    };
    world.fake.inject_times(&matcher, &fault, 10);
    world
        .cloudflare
        .deploy_site(upload(files([9]), "production", "key-1"))
        .await
        .unwrap();
}

#[tokio::test]
async fn failed_deployment_reports_the_last_log_line() {
    let world = with_project(Settings::default()).await;
    world
        .fake
        .end_deployment(DeploymentEnd::Failure("no space left".to_owned()));
    world.fake.end_deployment(DeploymentEnd::Canceled);
    for (key, expected) in [("key-1", "no space left"), ("key-2", "canceled")] {
        world
            .cloudflare
            .deploy_site(upload(files([9]), "production", key))
            .await
            .unwrap();
        let SiteState::Failed(why) = wait_for_deployment(&world, key).await.state else {
            panic!("{key}");
        };
        assert!(why.contains(expected), "{why}");
    }
}

#[tokio::test]
async fn site_settings_are_sent_with_the_deployment_and_not_as_pages() {
    let settings = Settings {
        record_exchanges: true,
        ..Settings::default()
    };
    let world = with_project(settings).await;
    let files = [
        ("index.html", "<h1>hi</h1>\n"),
        ("_headers", "/*\n  X-A: b\n"),
        ("_redirects", "/a /b 301\n"),
        ("_worker.js", "export default {}"),
        ("functions/x.js", "export function onRequest() {}"),
    ];
    world
        .cloudflare
        .deploy_site(upload(site(files), "production", "key-1"))
        .await
        .unwrap();
    wait_for_deployment(&world, "key-1").await;
    for (path, _) in &files[1..] {
        assert_eq!(
            world.fake.pages_file(&project(), &format!("/{path}")),
            None,
            "{path}"
        );
    }
    let exchanges = world.fake.exchanges();
    let deploy = exchanges.iter().find(|exchange| {
        exchange.recorded.method == "POST" && exchange.recorded.path.ends_with("/deployments")
    });
    let form = String::from_utf8_lossy(&deploy.unwrap().request).into_owned();
    for (name, content) in &files[1..4] {
        assert!(
            form.contains(&format!("name=\"{name}\"; filename=")),
            "{form}"
        );
        assert!(form.contains(content), "{form}");
    }
    assert!(!form.contains("onRequest"), "{form}");
    let folder = site([("index.html", "a"), ("_worker.js/index.js", "b")]);
    let refused = world
        .cloudflare
        .deploy_site(upload(folder, "production", "key-2"))
        .await;
    assert!(
        matches!(refused, Err(ProviderError::Permanent(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn site_of_a_missing_project_is_refused() {
    let world = World::new().await;
    let site = upload(files([1]), "production", "key-1");
    let refused = world.cloudflare.deploy_site(site).await;
    assert!(
        matches!(refused, Err(ProviderError::Permanent(_))),
        "{refused:?}"
    );
    let found = world.cloudflare.site_deployment(&project(), "key-1").await;
    assert_eq!(found.unwrap(), None);
}

/// A site whose content changes with every read.
#[derive(Debug)]
struct Changing {
    inner: MemorySite,
    reads: std::sync::atomic::AtomicUsize,
}

impl core_domain::port::Site for Changing {
    fn files(&self) -> &[core_domain::cli::SiteFile] {
        self.inner.files()
    }

    fn read(&self, visitor: &mut core_domain::port::FileVisitor<'_>) -> std::io::Result<()> {
        let read = self.reads.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        for file in self.inner.files() {
            visitor(file, &mut read.to_string().as_bytes())?;
        }
        Ok(())
    }
}

#[tokio::test]
async fn site_that_changes_during_the_upload_is_not_deployed() {
    let world = with_project(Settings::default()).await;
    let changing = Changing {
        inner: site([("index.html", "0")]),
        reads: 0.into(),
    };
    let changed = SiteUpload {
        site: Arc::new(changing),
        ..upload(site([]), "production", "key-1")
    };
    let outcome = world.cloudflare.deploy_site(changed).await;
    assert!(
        matches!(outcome, Err(ProviderError::Transient(_))),
        "{outcome:?}"
    );
    assert_eq!(world.fake.count(Kind::PagesDeployment), 0);
}

#[tokio::test]
async fn project_settings_apply_to_both_environments_and_can_change() {
    let world = World::new().await;
    let made = [
        ResourceType::D1,
        ResourceType::Kv,
        ResourceType::R2,
        ResourceType::Queue,
        ResourceType::Worker,
    ];
    for of in made {
        world.make(of).await;
    }
    let bindings: Vec<_> = made
        .iter()
        .map(|of| json!({ "name": of.as_str().to_uppercase(), "type": of, "resource": resource(*of).name }))
        .collect();
    let asked = |config| ObjectRequest {
        config,
        ..request(ResourceType::Pages)
    };
    let vars = json!({ "bindings": [], "vars": { "MODE": "live" } });
    world.cloudflare.create(&asked(vars)).await.unwrap();
    let secrets = SetSecrets {
        resource: resource(ResourceType::Pages),
        owner: OWNER.to_owned(),
        secrets: vec![("KEY".to_owned(), Secret::new("v"))],
        deleted: Vec::new(),
    };
    world.cloudflare.set_secrets(&secrets).await.unwrap();
    let both = json!({ "bindings": bindings, "vars": { "MODE": "test" } });
    world.cloudflare.create(&asked(both.clone())).await.unwrap();
    world.cloudflare.create(&asked(both)).await.unwrap();

    let path = world.account(&format!("pages/projects/{}", project()));
    let shown = world.api(Method::GET, &path, "").await;
    for environment in ["production", "preview"] {
        let config = &shown["result"]["deployment_configs"][environment];
        let names = |field: &str, key: &str| config[field].as_object().unwrap()[key].clone();
        assert!(names("d1_databases", "D1")["id"].is_string());
        assert!(names("kv_namespaces", "KV")["namespace_id"].is_string());
        let name = |of| resource(of).name;
        assert_eq!(names("r2_buckets", "R2")["name"], name(ResourceType::R2));
        assert_eq!(
            names("queue_producers", "QUEUE")["name"],
            name(ResourceType::Queue)
        );
        assert_eq!(
            names("services", "WORKER")["service"],
            name(ResourceType::Worker)
        );
        let variables = world.fake.pages_variables(&project(), environment);
        let variables = variables.iter().map(|(name, text)| (&**name, &**text));
        let expected = [("CORE_OWNER", OWNER), ("KEY", "v"), ("MODE", "test")];
        assert_eq!(variables.collect::<Vec<_>>(), expected);
    }
}

#[tokio::test]
async fn invalid_project_settings_are_refused_without_requests() {
    let world = World::new().await;
    for (config, said) in [
        (json!({ "vars": { "CORE_OWNER": "p2" } }), "CORE_OWNER"),
        (json!({ "vars": { "MODE": 1 } }), "invalid type"),
        (json!({ "compatibility": 1 }), "unknown field"),
    ] {
        let request = ObjectRequest {
            config,
            ..request(ResourceType::Pages)
        };
        let refused = world.cloudflare.create(&request).await.unwrap_err();
        let is_final = matches!(&refused, ProviderError::Permanent(text) if text.contains(said));
        assert!(is_final, "{refused}");
    }
    assert_eq!(world.fake.requests().len(), 0);
}

#[tokio::test]
async fn production_is_rolled_back_without_an_upload() {
    let world = with_project(Settings::default()).await;
    let mut ids = Vec::new();
    for key in ["key-1", "key-2"] {
        let upload = upload(files([9]), "production", key);
        world.cloudflare.deploy_site(upload).await.unwrap();
        ids.push(wait_for_deployment(&world, key).await.id);
    }
    let before = world.fake.count(Kind::PagesDeployment);
    let mut request = SiteRedeploy {
        project: resource(ResourceType::Pages).name,
        branch: "production".to_owned(),
        deployment_key: "key-3".to_owned(),
        source_key: "key-1".to_owned(),
        source_branch: "production".to_owned(),
        source_id: None,
    };
    // The deployment is found by its key or by its id, and a repetition has no further effect.
    for source_id in [None, Some(ids[0].clone())] {
        request.source_id = source_id;
        let back = world.cloudflare.redeploy_site(&request).await.unwrap();
        assert_eq!((&back.id, back.state), (&ids[0], SiteState::Active));
    }
    assert_eq!(world.fake.count(Kind::PagesDeployment), before);
    request.source_id = Some("00000000-0000-4000-8000-000000000000".to_owned());
    let gone = world.cloudflare.redeploy_site(&request).await;
    assert!(matches!(gone, Err(ProviderError::Permanent(_))), "{gone:?}");
}
