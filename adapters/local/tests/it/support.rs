//! Test helpers: a provider in a temporary folder.

use std::path::Path;
use std::sync::Arc;

use core_domain::kernel::Timestamp;
use core_domain::port::{Infrastructure, ObjectRequest, ResourceRef, SiteDeployment, SiteUpload};
use core_domain::registry::ResourceType;
use core_domain::testing::ManualClock;
use core_domain::testing::MemorySite;
use core_local::{Faults, LocalConfig, LocalInfrastructure, Workerd, find_workerd};
use serde_json::{Value, json};

pub(crate) const OWNER: &str = "platform-1";

pub(crate) struct World {
    pub(crate) infra: LocalInfrastructure,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) folder: tempfile::TempDir,
}

pub(crate) async fn world() -> World {
    world_with(Faults::default()).await
}

pub(crate) async fn world_with(faults: Faults) -> World {
    world_of(|config| config.faults = faults).await
}

pub(crate) async fn world_of(change: impl FnOnce(&mut LocalConfig)) -> World {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_795_000_000)));
    let mut config = LocalConfig::new(folder.path().join("infra"), 8090, clock.clone());
    change(&mut config);
    let infra = LocalInfrastructure::open(config).await.unwrap();
    World {
        infra,
        clock,
        folder,
    }
}

/// Returns the `workerd` program that `tests/run` installs, or the one that `CORE_TEST_WORKERD` names. Tests that need
/// it are skipped with a message if it does not exist.
pub(crate) fn workerd() -> Option<Workerd> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the variable names the program for tests"
    )]
    let named = std::env::var("CORE_TEST_WORKERD").ok();
    if let Some(path) = named {
        let found = Workerd::at(Path::new(&path));
        assert!(
            found.is_some(),
            "CORE_TEST_WORKERD names no program: {path}"
        );
        return found;
    }
    // .../target/debug/deps/it-hash -> .../target
    let own = std::env::current_exe().unwrap();
    let found = find_workerd(None, &own.ancestors().nth(3).unwrap().join("workerd/data"));
    if found.is_none() {
        eprintln!(
            "SKIPPED: workerd is not installed, so no worker runs in this test; tests/run installs it"
        );
    }
    found
}

impl World {
    /// Opens the same folder again, as a restarted process would.
    pub(crate) async fn reopen(self) -> Self {
        let Self {
            infra,
            clock,
            folder,
        } = self;
        drop(infra);
        let config = LocalConfig::new(folder.path().join("infra"), 8090, clock.clone());
        let infra = LocalInfrastructure::open(config).await.unwrap();
        Self {
            infra,
            clock,
            folder,
        }
    }

    /// Returns the names in a folder of the provider; none if it does not exist.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let folder = self.folder.path().join("infra").join(folder);
        let Ok(entries) = std::fs::read_dir(folder) else {
            return Vec::new();
        };
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    pub(crate) async fn project(&self, name: &str) {
        let request = request(ResourceType::Pages, name);
        self.infra.create(&request).await.unwrap();
    }

    pub(crate) async fn deploy(
        &self,
        project: &str,
        key: &str,
        files: &[(&str, &str)],
    ) -> SiteDeployment {
        let upload = upload(project, "production", key, files);
        self.infra.deploy_site(upload).await.unwrap()
    }

    /// Returns the names in the staging folder.
    pub(crate) fn staging(&self) -> Vec<String> {
        self.names(".staging")
    }
}

pub(crate) fn resource(resource_type: ResourceType, name: &str) -> ResourceRef {
    ResourceRef {
        resource_type,
        name: name.to_owned(),
    }
}

pub(crate) fn request(resource_type: ResourceType, name: &str) -> ObjectRequest {
    let config = match resource_type {
        ResourceType::Worker => script("export default {}", &json!([])),
        _ => json!({}),
    };
    ObjectRequest {
        resource: resource(resource_type, name),
        owner: OWNER.to_owned(),
        effect_key: format!("create-{name}"),
        config,
    }
}

pub(crate) fn script(text: &str, bindings: &Value) -> Value {
    json!({ "mainModule": "index.js", "modules": { "index.js": text }, "bindings": bindings })
}

pub(crate) fn upload(project: &str, branch: &str, key: &str, files: &[(&str, &str)]) -> SiteUpload {
    let site: MemorySite = files.iter().copied().collect();
    SiteUpload {
        project: project.to_owned(),
        branch: branch.to_owned(),
        deployment_key: key.to_owned(),
        site: Arc::new(site),
    }
}
