//! A provider in a folder of its own.

use std::sync::Arc;

use core_domain::kernel::Timestamp;
use core_domain::port::{CreateResource, Infrastructure, ResourceRef, SiteDeployment, SiteUpload};
use core_domain::registry::ResourceType;
use core_domain::testing::ManualClock;
use core_domain::testing::MemorySite;
use core_local::{Faults, LocalConfig, LocalInfrastructure};
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
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_795_000_000)));
    let mut config = LocalConfig::new(folder.path().join("infra"), 8090, clock.clone());
    config.faults = faults;
    let infra = LocalInfrastructure::open(config).await.unwrap();
    World {
        infra,
        clock,
        folder,
    }
}

impl World {
    /// Opens the same folder once more, as a restarted process would.
    pub(crate) async fn reopened(self) -> Self {
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

    /// Names in a folder of the provider; none when it does not exist.
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

    /// Names of everything in the staging folder.
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

pub(crate) fn request(resource_type: ResourceType, name: &str) -> CreateResource {
    let config = match resource_type {
        ResourceType::Worker => script("export default {}", &json!([])),
        _ => json!({}),
    };
    CreateResource {
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
