//! The local provider: opens its folder, creates and deletes objects, and opens the typed stores.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use core_domain::port::{ObjectRequest, ProviderObject, ResourceRef, SiteDeployment, SiteState};
use core_domain::registry::ResourceType;

use crate::bucket::{self, Bucket};
use crate::config::{FaultMoment, LocalConfig};
use crate::data_dir::{DataDir, StagingPath};
use crate::deploy::FinishedDeployment;
use crate::error::{Result, run_blocking};
use crate::host::SiteHost;
use crate::hostname::{self, is_served};
use crate::kv::{self, KvNamespace};
use crate::logs::{self, ConsoleSink, Logs};
use crate::manifest::Manifest;
use crate::names::check_name;
use crate::queue::{self, Queue};
use crate::site;
use crate::site_content;
use crate::sqlite;
use crate::stores::{self, Stores};
use crate::worker::{self, WorkerScript, WorkerVersion};
use crate::workerd::Workers;

/// Maximum time to wait until the waiting lines of logs are written.
const FLUSH_TIME: Duration = Duration::from_secs(1);

/// An infrastructure provider in one folder of this machine. Cheap to clone; clones are the same provider.
#[derive(Clone, Debug)]
pub struct LocalInfrastructure {
    stores: Stores,
    pub(crate) workers: Workers,
    pub(crate) logs: Arc<Logs>,
    pub(crate) config: Arc<LocalConfig>,
}

impl LocalInfrastructure {
    /// Opens the folder and deletes the unfinished objects of ended processes. Creates the folder if it does not exist.
    ///
    /// # Errors
    /// [`LocalError::Io`](crate::LocalError::Io) if the folder cannot be created or read;
    /// [`LocalError::UnexpectedFile`](crate::LocalError::UnexpectedFile) if a part of it is a symbolic link or has an
    /// unexpected file type.
    pub async fn open(config: LocalConfig) -> Result<Self> {
        let root = config.root.clone();
        let (data, last_log_id) = run_blocking(move || {
            let data = DataDir::open(&root)?;
            for kind in ResourceType::ALL {
                data.ensure_dir(&[kind.as_str()])?;
            }
            for folder in [hostname::ROUTES, hostname::SERVED] {
                data.ensure_dir(&[folder])?;
            }
            site_content::migrate_layout(&data)?;
            let last_log_id = logs::last_id(&data)?;
            Ok((data, last_log_id))
        })
        .await?;
        let stores = Stores::new(data, Arc::clone(&config.clock), config.workers.bindings);
        let logs = Logs::start(
            &stores.data,
            Arc::clone(&config.clock),
            last_log_id,
            config.logs,
        );
        let logs = Arc::new(logs);
        let console: Arc<dyn ConsoleSink> = Arc::clone(&logs) as _;
        let config = Arc::new(config);
        Ok(Self {
            workers: Workers::new(stores.clone(), Arc::clone(&config), console)?,
            logs,
            stores,
            config,
        })
    }

    /// Returns the host that serves the sites and the workers.
    #[must_use]
    pub fn site_host(&self) -> SiteHost {
        SiteHost::new(
            self.workers.clone(),
            Arc::clone(&self.logs),
            self.config.traffic.clone(),
        )
    }

    /// Stops all running workers and the process that hosts them, and writes the waiting lines of logs. No worker starts
    /// again. Returns when all have ended, after five seconds at the latest.
    pub async fn stop_workers(&self) {
        self.workers.stop().await;
        let _ = tokio::time::timeout(FLUSH_TIME, self.logs.flush()).await;
    }

    /// Returns the parent domain of the objects' own addresses.
    pub(crate) fn domain(&self) -> String {
        self.config.sites.domain.clone()
    }

    /// Lists all objects with their owners, ordered by type and name.
    ///
    /// # Errors
    /// [`LocalError::Io`](crate::LocalError::Io) if the folder cannot be read.
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

    /// Returns the path of a database file, which any SQLite client can open.
    ///
    /// # Errors
    /// [`LocalError::Missing`](crate::LocalError::Missing) if the database does not exist.
    pub async fn database(&self, name: &str) -> Result<PathBuf> {
        self.stores.database(name).await
    }

    /// Opens a key-value namespace.
    ///
    /// # Errors
    /// [`LocalError::Missing`](crate::LocalError::Missing) if the namespace does not exist.
    pub async fn kv(&self, name: &str) -> Result<KvNamespace> {
        self.stores.kv(name).await
    }

    /// Opens a queue.
    ///
    /// # Errors
    /// [`LocalError::Missing`](crate::LocalError::Missing) if the queue does not exist.
    pub async fn queue(&self, name: &str) -> Result<Queue> {
        self.stores.queue(name).await
    }

    /// Opens a bucket.
    ///
    /// # Errors
    /// [`LocalError::Missing`](crate::LocalError::Missing) if the bucket does not exist.
    pub async fn bucket(&self, name: &str) -> Result<Bucket> {
        self.stores.bucket(name).await
    }

    /// Returns the current version of a worker; `None` if the worker does not exist.
    ///
    /// # Errors
    /// [`LocalError::Damaged`](crate::LocalError::Damaged) if the stored version cannot be decoded.
    pub async fn worker(&self, name: &str) -> Result<Option<WorkerVersion>> {
        let name = name.to_owned();
        self.run(move |data| worker::current(data, &name)).await
    }

    pub(crate) const fn stores(&self) -> &Stores {
        &self.stores
    }

    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&DataDir) -> Result<T> + Send + 'static,
    {
        self.stores.run(work).await
    }

    pub(crate) async fn create_object(&self, request: &ObjectRequest) -> Result<ProviderObject> {
        let resource = &request.resource;
        check_name(&resource.name)?;
        self.config
            .faults
            .at("create", resource, FaultMoment::Before)?;
        let script = self.script_of(request).await?;
        let manifest = match self.manifest_of(resource, &request.owner).await? {
            Some(manifest) => {
                self.switch_worker(request, script).await?;
                manifest
            }
            None => self.publish_new(request, script).await?,
        };
        self.config
            .faults
            .at("create", resource, FaultMoment::Done)?;
        Ok(self.provider_object(resource, manifest))
    }

    /// Parses and checks the script of a worker. Returns `None` for all other types.
    async fn script_of(&self, request: &ObjectRequest) -> Result<Option<WorkerScript>> {
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

    async fn manifest_of(&self, resource: &ResourceRef, owner: &str) -> Result<Option<Manifest>> {
        let (resource, owner) = (resource.clone(), owner.to_owned());
        self.run(move |data| Manifest::read_owned(data, &resource, &owner))
            .await
    }

    async fn switch_worker(
        &self,
        request: &ObjectRequest,
        script: Option<WorkerScript>,
    ) -> Result<()> {
        let Some(script) = script else {
            return Ok(());
        };
        let request = request.clone();
        self.run(move |data| {
            let name = &request.resource.name;
            script.make_current(data, name, &request.owner, &request.effect_key)
        })
        .await
    }

    /// Creates the object. If another request created it concurrently, returns that object and makes the script its
    /// current version.
    async fn publish_new(
        &self,
        request: &ObjectRequest,
        script: Option<WorkerScript>,
    ) -> Result<Manifest> {
        let resource = &request.resource;
        let manifest = Manifest::new(request, self.config.clock.now());
        let staged = self.stage(request, &manifest, script.clone()).await?;
        let faults = self.config.faults.clone();
        let (target, owner) = (resource.clone(), request.owner.clone());
        let (won, manifest) = self
            .run(move |data| {
                faults.at("create", &target, FaultMoment::Staged)?;
                let lock = data.lock_publish()?;
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
        request: &ObjectRequest,
        manifest: &Manifest,
        script: Option<WorkerScript>,
    ) -> Result<StagingPath> {
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
            sqlite::create_database(&staged.path().join(file), schema).await?;
        }
        Ok(staged)
    }

    pub(crate) async fn remove_object(&self, resource: &ResourceRef, owner: &str) -> Result<()> {
        self.config
            .faults
            .at("remove", resource, FaultMoment::Before)?;
        let (target, owner) = (resource.clone(), owner.to_owned());
        let faults = self.config.faults.clone();
        self.run(move |data| {
            let lock = data.lock_publish()?;
            if Manifest::read_owned(data, &target, &owner)?.is_none() {
                return Ok(());
            }
            hostname::remove_routes_to(data, &target, &lock)?;
            faults.at("remove", &target, FaultMoment::Unrouted)?;
            let detached = data.detach(&[target.resource_type.as_str(), &target.name], &lock)?;
            // Releases the lock before the content is deleted, because a deletion can take long.
            drop(lock);
            drop(detached);
            Ok(())
        })
        .await?;
        if resource.resource_type == ResourceType::Worker {
            self.workers.forget(&resource.name).await;
        }
        self.config.faults.at("remove", resource, FaultMoment::Done)
    }

    pub(crate) fn provider_object(
        &self,
        resource: &ResourceRef,
        manifest: Manifest,
    ) -> ProviderObject {
        let served = is_served(resource.resource_type);
        ProviderObject {
            id: manifest.id,
            url: served.then(|| self.config.sites.url(&resource.name)),
            owner: Some(manifest.owner),
        }
    }

    pub(crate) fn site_deployment_of(&self, deployed: FinishedDeployment) -> SiteDeployment {
        SiteDeployment {
            id: deployed.id,
            url: self.config.sites.url(&deployed.label),
            permalink: Some(self.config.sites.url(&deployed.permalink)),
            state: SiteState::Active,
        }
    }

    /// Runs a change with the configured latency before and after it.
    pub(crate) async fn slowly<T>(&self, change: impl Future<Output = T> + Send) -> T {
        let latency = self.config.latency;
        if latency.is_zero() {
            return change.await;
        }
        tokio::time::sleep(latency).await;
        let outcome = change.await;
        tokio::time::sleep(latency).await;
        outcome
    }
}

/// Returns the empty subfolders of a new object.
const fn folders_of(resource_type: ResourceType) -> &'static [&'static str] {
    match resource_type {
        ResourceType::R2 => &[bucket::FOLDER],
        ResourceType::Pages => &[site::BRANCHES, site::CONTENT, site::DEPLOYMENTS],
        ResourceType::Worker | ResourceType::D1 | ResourceType::Kv | ResourceType::Queue => &[],
    }
}

/// Returns the name and the schema of the SQLite file of a new object.
const fn database_of(resource_type: ResourceType) -> Option<(&'static str, &'static str)> {
    match resource_type {
        ResourceType::D1 => Some((stores::DATABASE, "")),
        ResourceType::Kv => Some((kv::FILE, kv::SCHEMA)),
        ResourceType::Queue => Some((queue::FILE, queue::SCHEMA)),
        ResourceType::Worker | ResourceType::Pages | ResourceType::R2 => None,
    }
}
