//! The infrastructure port on this machine.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use core_domain::port::{
    CreateResource, Infrastructure, ProviderError, Provisioned, ResourceRef, SiteDeployment,
    SiteState, SiteUpload,
};
use core_domain::registry::ResourceType;

use crate::bucket::{self, Bucket};
use crate::config::{LocalConfig, Moment};
use crate::data_dir::{DataDir, Staged};
use crate::deploy::{self, Deployed};
use crate::error::{LocalError, Result, blocking};
use crate::host::SiteHost;
use crate::kv::{self, KvNamespace};
use crate::manifest::Manifest;
use crate::names::{check_name, title};
use crate::queue::{self, Queue};
use crate::site;
use crate::sqlite;
use crate::worker::{self, WorkerScript, WorkerVersion};

/// The file of a database.
const DATABASE: &str = "database.sqlite";

/// Infrastructure in one folder of this machine. Cheap to clone; clones are the same provider.
#[derive(Clone, Debug)]
pub struct LocalInfrastructure {
    data: Arc<DataDir>,
    config: Arc<LocalConfig>,
}

impl LocalInfrastructure {
    /// Opens the folder, making it when needed, and clears what an interrupted process left half made.
    ///
    /// # Errors
    /// [`LocalError::Io`] when the folder cannot be made or read; [`LocalError::Foreign`] when a part of it is not a
    /// folder of ours.
    pub async fn open(config: LocalConfig) -> Result<Self> {
        let root = config.root.clone();
        let data = blocking(move || {
            let data = DataDir::open(&root)?;
            for kind in ResourceType::ALL {
                data.ensure_dir(&[kind.as_str()])?;
            }
            Ok(data)
        })
        .await?;
        Ok(Self {
            data: Arc::new(data),
            config: Arc::new(config),
        })
    }

    /// The host that serves the sites of the pages projects.
    #[must_use]
    pub fn site_host(&self) -> SiteHost {
        SiteHost::new(
            Arc::clone(&self.data),
            self.config.sites.domain().to_owned(),
        )
    }

    /// Everything that exists, with its owner, ordered by kind and name.
    ///
    /// # Errors
    /// [`LocalError::Io`] when the folder cannot be read.
    pub async fn inventory(&self) -> Result<Vec<(ResourceRef, String)>> {
        self.run(|data| {
            let mut found = Vec::new();
            for &resource_type in ResourceType::ALL {
                let mut names = data.list(&[resource_type.as_str()])?;
                names.retain(|name| check_name(name).is_ok());
                names.sort_unstable();
                for name in names {
                    let resource = ResourceRef {
                        resource_type,
                        name,
                    };
                    let manifest = Manifest::read(data, &resource)?;
                    found.extend(manifest.map(|manifest| (resource, manifest.owner)));
                }
            }
            Ok(found)
        })
        .await
    }

    /// The file of a database, for any SQLite client.
    ///
    /// # Errors
    /// [`LocalError::Missing`] when there is no such database.
    pub async fn database(&self, name: &str) -> Result<PathBuf> {
        self.file_of(ResourceType::D1, name, DATABASE).await
    }

    /// Opens a key-value namespace.
    ///
    /// # Errors
    /// [`LocalError::Missing`] when there is no such namespace.
    pub async fn kv(&self, name: &str) -> Result<KvNamespace> {
        let path = self.file_of(ResourceType::Kv, name, kv::FILE).await?;
        KvNamespace::open(&path, Arc::clone(&self.config.clock)).await
    }

    /// Opens a queue.
    ///
    /// # Errors
    /// [`LocalError::Missing`] when there is no such queue.
    pub async fn queue(&self, name: &str) -> Result<Queue> {
        let path = self.file_of(ResourceType::Queue, name, queue::FILE).await?;
        Queue::open(&path, Arc::clone(&self.config.clock)).await
    }

    /// Opens a bucket.
    ///
    /// # Errors
    /// [`LocalError::Missing`] when there is no such bucket.
    pub async fn bucket(&self, name: &str) -> Result<Bucket> {
        self.file_of(ResourceType::R2, name, bucket::FOLDER).await?;
        Ok(Bucket::new(Arc::clone(&self.data), name.to_owned()))
    }

    /// The current version of a worker; `None` when there is no such worker.
    ///
    /// # Errors
    /// [`LocalError::Damaged`] when what is stored makes no sense.
    pub async fn worker(&self, name: &str) -> Result<Option<WorkerVersion>> {
        let name = name.to_owned();
        self.run(move |data| worker::current(data, &name)).await
    }

    async fn file_of(
        &self,
        resource_type: ResourceType,
        name: &str,
        file: &'static str,
    ) -> Result<PathBuf> {
        let resource = ResourceRef {
            resource_type,
            name: name.to_owned(),
        };
        self.run(move |data| match Manifest::read(data, &resource)? {
            Some(_) => data.path(&[resource_type.as_str(), &resource.name, file]),
            None => Err(LocalError::Missing(title(&resource))),
        })
        .await
    }

    async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&DataDir) -> Result<T> + Send + 'static,
    {
        let data = Arc::clone(&self.data);
        blocking(move || work(&data)).await
    }

    async fn create_object(&self, request: &CreateResource) -> Result<Provisioned> {
        let resource = &request.resource;
        check_name(&resource.name)?;
        self.config.faults.at("create", resource, Moment::Before)?;
        let script = self.script_of(request).await?;
        let manifest = match self.owned(resource, &request.owner).await? {
            Some(manifest) => {
                self.switch_worker(request, script).await?;
                manifest
            }
            None => self.make(request, script).await?,
        };
        self.config.faults.at("create", resource, Moment::Done)?;
        Ok(self.provisioned(resource, manifest))
    }

    /// The checked script of a worker; `None` for everything else.
    async fn script_of(&self, request: &CreateResource) -> Result<Option<WorkerScript>> {
        if request.resource.resource_type != ResourceType::Worker {
            return Ok(None);
        }
        let script = WorkerScript::parse(&request.config)?;
        let owner = request.owner.clone();
        self.run(move |data| {
            script.check_bindings(data, &owner)?;
            Ok(Some(script))
        })
        .await
    }

    async fn owned(&self, resource: &ResourceRef, owner: &str) -> Result<Option<Manifest>> {
        let (resource, owner) = (resource.clone(), owner.to_owned());
        self.run(move |data| Manifest::read_owned(data, &resource, &owner))
            .await
    }

    async fn switch_worker(
        &self,
        request: &CreateResource,
        script: Option<WorkerScript>,
    ) -> Result<()> {
        let Some(script) = script else {
            return Ok(());
        };
        let request = request.clone();
        self.run(move |data| {
            let name = &request.resource.name;
            script.switch_to(data, name, &request.owner, &request.effect_key)
        })
        .await
    }

    /// Makes the object, or takes the one somebody made meanwhile.
    async fn make(
        &self,
        request: &CreateResource,
        script: Option<WorkerScript>,
    ) -> Result<Manifest> {
        let resource = &request.resource;
        let manifest = Manifest::of(request, self.config.clock.now());
        let staged = self.stage(request, &manifest, script.clone()).await?;
        let faults = self.config.faults.clone();
        let (target, owner) = (resource.clone(), request.owner.clone());
        let (won, manifest) = self
            .run(move |data| {
                faults.at("create", &target, Moment::Staged)?;
                let lock = data.exclusive()?;
                if let Some(other) = Manifest::read_owned(data, &target, &owner)? {
                    return Ok((false, other));
                }
                let parts = [target.resource_type.as_str(), &target.name];
                Ok((data.publish(staged, &parts, &lock)?, manifest))
            })
            .await?;
        if !won {
            self.switch_worker(request, script).await?;
        }
        Ok(manifest)
    }

    async fn stage(
        &self,
        request: &CreateResource,
        manifest: &Manifest,
        script: Option<WorkerScript>,
    ) -> Result<Staged> {
        let (manifest, effect_key) = (manifest.clone(), request.effect_key.clone());
        let resource_type = request.resource.resource_type;
        let staged = self
            .run(move |data| {
                let staged = data.stage_dir()?;
                for folder in folders_of(resource_type) {
                    staged.create_dir(folder)?;
                }
                if let Some(script) = script {
                    script.write_first(&staged, &effect_key)?;
                }
                manifest.write(&staged)?;
                Ok(staged)
            })
            .await?;
        if let Some((file, schema)) = database_of(resource_type) {
            sqlite::make(&staged.path().join(file), schema).await?;
        }
        Ok(staged)
    }

    async fn remove_object(&self, resource: &ResourceRef, owner: &str) -> Result<()> {
        self.config.faults.at("remove", resource, Moment::Before)?;
        let (target, owner) = (resource.clone(), owner.to_owned());
        self.run(move |data| {
            let lock = data.exclusive()?;
            if Manifest::read_owned(data, &target, &owner)?.is_none() {
                return Ok(());
            }
            let gone = data.detach(&[target.resource_type.as_str(), &target.name], &lock)?;
            // Others need not wait until the content is gone too.
            drop(lock);
            drop(gone);
            Ok(())
        })
        .await?;
        self.config.faults.at("remove", resource, Moment::Done)
    }

    fn provisioned(&self, resource: &ResourceRef, manifest: Manifest) -> Provisioned {
        let served = resource.resource_type == ResourceType::Pages;
        Provisioned {
            id: manifest.id,
            url: served.then(|| self.config.sites.url(&resource.name)),
            owner: Some(manifest.owner),
        }
    }

    fn site_deployment_of(&self, deployed: Deployed) -> SiteDeployment {
        SiteDeployment {
            id: deployed.id,
            url: self.config.sites.url(&deployed.label),
            state: SiteState::Active,
        }
    }
}

/// The empty folders a new object has.
const fn folders_of(resource_type: ResourceType) -> &'static [&'static str] {
    match resource_type {
        ResourceType::R2 => &[bucket::FOLDER],
        ResourceType::Pages => &[site::BRANCHES, site::DEPLOYMENTS],
        ResourceType::Worker | ResourceType::D1 | ResourceType::Kv | ResourceType::Queue => &[],
    }
}

/// The SQLite file a new object has, with its tables.
const fn database_of(resource_type: ResourceType) -> Option<(&'static str, &'static str)> {
    match resource_type {
        ResourceType::D1 => Some((DATABASE, "")),
        ResourceType::Kv => Some((kv::FILE, kv::SCHEMA)),
        ResourceType::Queue => Some((queue::FILE, queue::SCHEMA)),
        ResourceType::Worker | ResourceType::Pages | ResourceType::R2 => None,
    }
}

#[async_trait]
impl Infrastructure for LocalInfrastructure {
    async fn observe(&self, resource: &ResourceRef) -> Result<Option<Provisioned>, ProviderError> {
        let target = resource.clone();
        let found = self.run(move |data| Manifest::read(data, &target)).await?;
        Ok(found.map(|manifest| self.provisioned(resource, manifest)))
    }

    async fn create(&self, request: &CreateResource) -> Result<Provisioned, ProviderError> {
        Ok(self.create_object(request).await?)
    }

    async fn remove(&self, resource: &ResourceRef, owner: &str) -> Result<(), ProviderError> {
        Ok(self.remove_object(resource, owner).await?)
    }

    async fn deploy_site(&self, upload: SiteUpload) -> Result<SiteDeployment, ProviderError> {
        let (now, config) = (self.config.clock.now(), Arc::clone(&self.config));
        let deployed = self
            .run(move |data| deploy::deploy(data, &upload, now, &config))
            .await?;
        Ok(self.site_deployment_of(deployed))
    }

    async fn site_deployment(
        &self,
        project: &str,
        deployment_key: &str,
    ) -> Result<Option<SiteDeployment>, ProviderError> {
        let (project, key) = (project.to_owned(), deployment_key.to_owned());
        let found = self
            .run(move |data| deploy::find(data, &project, &key))
            .await?;
        Ok(found.map(|deployed| self.site_deployment_of(deployed)))
    }
}
