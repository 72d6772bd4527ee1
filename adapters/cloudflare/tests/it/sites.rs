//! Sites: uploaded whole, in parts of bounded size, made live once.

use std::sync::Arc;

use core_cloudflare_fake::{DeploymentEnd, Fault, Kind, Settings};
use core_domain::kernel::Secret;
use core_domain::port::{
    CreateResource, Infrastructure, ProviderError, SetSecrets, SiteState, SiteUpload,
};
use core_domain::registry::ResourceType;
use core_domain::testing::MemorySite;
use http::Method;
use serde_json::json;

use crate::operations::settled;
use crate::world::{NOW, OWNER, World, request, resource, site, upload};

fn project() -> String {
    resource(ResourceType::Pages).name
}

async fn with_project(settings: Settings) -> World {
    let world = World::with(settings, |_| ()).await;
    world.make(ResourceType::Pages).await;
    world
}

fn uploads(world: &World) -> usize {
    let posts = world.paths("POST");
    posts
        .iter()
        .filter(|path| path.ends_with("/assets/upload"))
        .count()
}

#[tokio::test]
async fn a_site_is_live_after_its_deployment_settled_and_shows_what_was_uploaded() {
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
    let live = settled(&world, "key-1").await;
    assert_eq!((live.state, live.id), (SiteState::Active, deployed.id));
    for (path, content) in files {
        let hosted = world.fake.hosted(&project(), &format!("/{path}")).unwrap();
        assert_eq!(hosted, content, "{path}");
    }
}

#[tokio::test]
async fn asking_again_for_a_deployment_makes_no_second_one_and_brings_no_old_one_back() {
    let world = with_project(Settings::default()).await;
    let (first, second) = (site([("index.html", "1")]), site([("index.html", "2")]));
    let one = upload(first, "production", "key-1");
    let deployed = world.cloudflare.deploy_site(one.clone()).await.unwrap();
    settled(&world, "key-1").await;
    world
        .cloudflare
        .deploy_site(upload(second, "production", "key-2"))
        .await
        .unwrap();
    settled(&world, "key-2").await;
    let again = world.cloudflare.deploy_site(one).await.unwrap();
    assert_eq!((again.id, again.state), (deployed.id, SiteState::Active));
    assert_eq!(world.fake.count(Kind::PagesDeployment), 2);
    assert_eq!(world.fake.hosted(&project(), "/index.html").unwrap(), "2");
    let unknown = world.cloudflare.site_deployment(&project(), "key-3").await;
    assert_eq!(unknown.unwrap(), None);
}

#[tokio::test]
async fn files_the_provider_has_are_not_uploaded_again() {
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
    settled(&world, "key-2").await;
    assert_eq!(uploads(&world), 1);
    assert_eq!(world.fake.hosted(&project(), "/b.css").unwrap(), "a");
}

#[tokio::test]
async fn another_branch_goes_live_beside_production() {
    let world = with_project(Settings::default()).await;
    let preview = upload(site([("index.html", "draft")]), "feature/x", "key-1");
    world.cloudflare.deploy_site(preview).await.unwrap();
    assert_eq!(settled(&world, "key-1").await.state, SiteState::Active);
    assert_eq!(world.fake.hosted(&project(), "/index.html"), None);
}

/// Files of so many bytes each, all different.
fn files(sizes: impl IntoIterator<Item = usize>) -> MemorySite {
    let content = |(number, size): (usize, usize)| {
        let mut content = number.to_string().into_bytes();
        content.resize(size, b'.');
        (format!("f{number:05}.bin"), content)
    };
    sizes.into_iter().enumerate().map(content).collect()
}

#[tokio::test]
async fn a_part_has_2000_files_or_40_mib_at_the_most() {
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
async fn a_file_of_25_mib_is_uploaded_and_one_of_a_byte_more_is_refused() {
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
async fn the_token_says_how_many_files_a_site_may_have() {
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
async fn an_upload_goes_on_with_a_new_token_when_the_old_one_expires() {
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
        assert_eq!(settled(&world, "key-1").await.state, SiteState::Active);
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
async fn a_token_that_is_about_to_expire_is_renewed_before_it_is_used() {
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
    // One at the beginning, and one before each of the three calls that need it.
    let tokens = world.paths("GET").into_iter();
    assert_eq!(
        tokens
            .filter(|path| path.ends_with("/upload-token"))
            .count(),
        4
    );
}

#[tokio::test]
async fn files_that_are_not_remembered_are_no_failure() {
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
async fn a_deployment_that_fails_says_the_last_line_of_its_log() {
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
        let SiteState::Failed(why) = settled(&world, key).await.state else {
            panic!("{key}");
        };
        assert!(why.contains(expected), "{why}");
    }
}

#[tokio::test]
async fn settings_of_a_site_are_sent_with_its_deployment_and_are_no_pages() {
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
    settled(&world, "key-1").await;
    for (path, _) in &files[1..] {
        assert_eq!(
            world.fake.hosted(&project(), &format!("/{path}")),
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
async fn a_site_of_a_project_that_does_not_exist_is_refused() {
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

/// Other content each time it is read.
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
async fn content_that_changed_while_it_was_read_is_never_deployed() {
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
async fn a_project_has_its_bindings_and_texts_in_both_environments_and_takes_new_ones_when_asked_again()
 {
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
    let asked = |config| CreateResource {
        config,
        ..request(ResourceType::Pages)
    };
    let vars = json!({ "bindings": [], "vars": { "MODE": "live" } });
    world.cloudflare.create(&asked(vars)).await.unwrap();
    let secrets = SetSecrets {
        resource: resource(ResourceType::Pages),
        owner: OWNER.to_owned(),
        secrets: vec![("KEY".to_owned(), Secret::new("v"))],
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
async fn settings_that_make_no_project_are_refused_before_anything_is_sent() {
    let world = World::new().await;
    for (config, said) in [
        (json!({ "vars": { "CORE_OWNER": "p2" } }), "CORE_OWNER"),
        (json!({ "vars": { "MODE": 1 } }), "invalid type"),
        (json!({ "compatibility": 1 }), "unknown field"),
    ] {
        let request = CreateResource {
            config,
            ..request(ResourceType::Pages)
        };
        let refused = world.cloudflare.create(&request).await.unwrap_err();
        let is_final = matches!(&refused, ProviderError::Permanent(text) if text.contains(said));
        assert!(is_final, "{refused}");
    }
    assert_eq!(world.fake.requests().len(), 0);
}
