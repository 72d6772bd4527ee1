//! The implementation of the infrastructure port for Cloudflare.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use core_domain::cli::SiteFile;
use core_domain::kernel::Clock;
use core_domain::port::{
    Blobs, Infrastructure, ObjectRequest, OwnedObjects, ProviderError, ProviderObject,
    ResourceLogs, ResourceRef, Route, RouteHostname, ServeHostname, ServedHostname, SetSecrets,
    SiteDeployment, SiteRedeploy, SiteStorage, SiteUpload,
};
use core_domain::registry::ResourceType;
use tokio::sync::Semaphore;

use crate::client::{Client, TlsError};
use crate::error::CallError;
use crate::hostname::zone::Zones;
use crate::hostname::{customer, route};
use crate::options::{CloudflareAccount, CloudflareOptions, OptionError};
use crate::ownership::{belongs_to, ensure_name_identifies_owner, ensure_owned};
use crate::pages::receipt::Receipts;
use crate::pages::site::Sites;
use crate::pages::{config, deployment, project};
use crate::worker::script;
use crate::worker::subdomain::Subdomain;
use crate::worker::upload::upload;
use crate::{d1, kv, queue, r2, secrets};

/// An error that prevents the use of Cloudflare.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CloudflareError {
    /// An option is invalid.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The TLS configuration could not be created.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// An infrastructure provider that uses one Cloudflare account. Cheap to clone; clones share the connections, the rate
/// limiter and the caches.
#[derive(Clone, Debug)]
pub struct CloudflareInfrastructure {
    pub(crate) client: Client,
    subdomain: Arc<Subdomain>,
    zones: Arc<Zones>,
    /// One permit for each part of a site that may be in memory.
    uploads: Arc<Semaphore>,
    receipts: Receipts,
}

impl CloudflareInfrastructure {
    /// Creates the provider. Sends no requests yet.
    ///
    /// # Errors
    /// [`CloudflareError`] if an option is invalid or TLS cannot be set up.
    pub fn new(
        account: CloudflareAccount,
        options: CloudflareOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, CloudflareError> {
        account.check()?;
        options.check()?;
        let uploads = options.uploads as usize;
        Ok(Self {
            client: Client::new(account, options, clock)?,
            subdomain: Arc::default(),
            zones: Arc::default(),
            uploads: Arc::new(Semaphore::new(uploads)),
            receipts: Receipts::default(),
        })
    }

    /// Sets the store of the receipts, which tell what each deployment of a site consists of: the last 20 of a project, at
    /// keys that begin with `pages-`. All processes that deploy sites must share the store. Without it, every upload needs
    /// all files, and only production can be rolled back.
    #[must_use]
    pub fn with_receipts(mut self, blobs: Arc<dyn Blobs>) -> Self {
        self.receipts = Receipts::new(blobs);
        self
    }

    const fn sites(&self) -> Sites<'_> {
        Sites {
            client: &self.client,
            permits: &self.uploads,
            receipts: &self.receipts,
        }
    }

    /// Finds an object of any owner by name, without the URL of a worker.
    async fn find(&self, resource: &ResourceRef) -> Result<Option<ProviderObject>, CallError> {
        let (client, name) = (&self.client, resource.name.as_str());
        match resource.resource_type {
            ResourceType::D1 => d1::find(client, name).await,
            ResourceType::Kv => kv::find(client, name).await,
            ResourceType::R2 => r2::find(client, name).await,
            ResourceType::Queue => queue::find(client, name).await,
            ResourceType::Worker => script::find(client, name).await,
            ResourceType::Pages => project::find(client, name).await,
        }
    }

    /// Returns an error if the target of a hostname does not exist or has another owner.
    async fn ensure_target_owned(
        &self,
        target: &ResourceRef,
        owner: &str,
    ) -> Result<(), ProviderError> {
        let Some(found) = self.find(target).await? else {
            let message = format!(
                "the {} {} does not exist",
                target.resource_type, target.name
            );
            return Err(ProviderError::Permanent(message));
        };
        ensure_owned(found, &target.name, owner).map(drop)
    }

    /// Uploads a worker and enables its workers.dev address.
    async fn put_worker(&self, request: &ObjectRequest) -> Result<ProviderObject, ProviderError> {
        let (client, resource) = (&self.client, &request.resource);
        let made = upload(client, request).await?;
        self.subdomain.enable(client, &resource.name).await?;
        Ok(self.with_url(resource, made).await?)
    }

    /// Creates a Pages project, or updates the settings of an existing one.
    async fn put_project(&self, request: &ObjectRequest) -> Result<ProviderObject, ProviderError> {
        let (client, name) = (&self.client, request.resource.name.as_str());
        let settings = config::environment(client, request).await?;
        if let Some(found) = project::find(client, name).await? {
            let found = ensure_owned(found, name, &request.owner)?;
            if !settings.is_empty() {
                project::configure(client, name, &settings).await?;
            }
            return Ok(found);
        }
        let made = project::create(client, name, &request.owner, settings).await;
        self.confirm_creation(request, made, project::DUPLICATE)
            .await
    }

    /// Creates an object of a type with unique names.
    async fn insert(&self, request: &ObjectRequest) -> Result<ProviderObject, ProviderError> {
        let (client, resource) = (&self.client, &request.resource);
        let name = resource.name.as_str();
        if let Some(found) = self.find(resource).await? {
            return ensure_owned(found, name, &request.owner);
        }
        let (made, duplicate) = match resource.resource_type {
            ResourceType::D1 => (d1::create(client, name).await, d1::DUPLICATE),
            ResourceType::Kv => (kv::create(client, name).await, kv::DUPLICATE),
            ResourceType::R2 => (r2::create(client, name).await, r2::DUPLICATE),
            ResourceType::Queue => (queue::create(client, name).await, queue::DUPLICATE),
            ResourceType::Pages => return self.put_project(request).await,
            ResourceType::Worker => return self.put_worker(request).await,
        };
        self.confirm_creation(request, made, duplicate).await
    }

    /// Returns the created object. If it is unclear who created it, looks it up again.
    async fn confirm_creation(
        &self,
        request: &ObjectRequest,
        made: Result<ProviderObject, CallError>,
        duplicate: u32,
    ) -> Result<ProviderObject, ProviderError> {
        let (resource, name) = (&request.resource, request.resource.name.as_str());
        match made {
            Err(error) if error.has(duplicate) || error.is_ambiguous() => {
                let found = self.find(resource).await.ok().flatten();
                match found {
                    Some(found) => ensure_owned(found, name, &request.owner),
                    None if error.has(duplicate) => {
                        let cause = format!("{resource:?} exists but is not found");
                        Err(ProviderError::Transient(cause.into()))
                    }
                    None => Err(error.into()),
                }
            }
            made => Ok(made?),
        }
    }

    /// Adds the URL of a worker. Objects of other types already have their URL.
    async fn with_url(
        &self,
        resource: &ResourceRef,
        found: ProviderObject,
    ) -> Result<ProviderObject, CallError> {
        if resource.resource_type != ResourceType::Worker {
            return Ok(found);
        }
        let url = self.subdomain.url(&self.client, &resource.name).await?;
        Ok(ProviderObject { url, ..found })
    }
}

#[async_trait]
impl Infrastructure for CloudflareInfrastructure {
    async fn observe(
        &self,
        resource: &ResourceRef,
    ) -> Result<Option<ProviderObject>, ProviderError> {
        match self.find(resource).await? {
            Some(found) => Ok(Some(self.with_url(resource, found).await?)),
            None => Ok(None),
        }
    }

    async fn create(&self, request: &ObjectRequest) -> Result<ProviderObject, ProviderError> {
        ensure_name_identifies_owner(&request.resource, &request.owner)?;
        match request.resource.resource_type {
            ResourceType::Worker => self.put_worker(request).await,
            ResourceType::Pages => self.put_project(request).await,
            _ => self.insert(request).await,
        }
    }

    async fn remove(&self, resource: &ResourceRef, owner: &str) -> Result<(), ProviderError> {
        let Some(found) = self.find(resource).await? else {
            return Ok(());
        };
        let (client, name) = (&self.client, resource.name.as_str());
        let found = ensure_owned(found, name, owner)?;
        match resource.resource_type {
            ResourceType::D1 => d1::remove(client, &found.id).await?,
            ResourceType::Kv => kv::remove(client, &found.id).await?,
            ResourceType::R2 => r2::remove(client, name).await?,
            ResourceType::Queue => queue::remove(client, &found.id).await?,
            ResourceType::Worker => script::remove(client, name).await?,
            ResourceType::Pages => {
                route::remove_all(client, &self.zones, name).await?;
                project::remove(client, name).await?;
                self.receipts.remove_all(name).await;
            }
        }
        Ok(())
    }

    async fn deploy_site(&self, upload: SiteUpload) -> Result<SiteDeployment, ProviderError> {
        self.sites().deploy(upload).await
    }

    async fn redeploy_site(&self, request: &SiteRedeploy) -> Result<SiteDeployment, ProviderError> {
        self.sites().redeploy(request).await
    }

    async fn stored_contents(
        &self,
        project: &str,
        owner: &str,
        files: &[SiteFile],
    ) -> Result<BTreeSet<[u8; 32]>, ProviderError> {
        match project::find(&self.client, project).await? {
            Some(found) if belongs_to(&found, project, owner) => {
                self.sites().stored_contents(project, files).await
            }
            _ => Ok(BTreeSet::new()),
        }
    }

    async fn site_deployment(
        &self,
        project: &str,
        deployment_key: &str,
    ) -> Result<Option<SiteDeployment>, ProviderError> {
        deployment::observe(&self.client, project, deployment_key).await
    }

    async fn list_owned(
        &self,
        owner: &str,
        resource_type: ResourceType,
        cursor: Option<String>,
    ) -> Result<OwnedObjects, ProviderError> {
        let (client, cursor) = (&self.client, cursor.as_deref());
        let (mut objects, next) = match resource_type {
            ResourceType::D1 => d1::list(client, cursor).await?,
            ResourceType::Kv => kv::list(client, cursor).await?,
            ResourceType::R2 => r2::list(client, cursor).await?,
            ResourceType::Queue => queue::list(client, cursor).await?,
            ResourceType::Worker => (script::list(client).await?, None),
            ResourceType::Pages => project::list(client, cursor).await?,
        };
        objects.retain(|object| belongs_to(&object.provisioned, &object.name, owner));
        Ok(OwnedObjects { objects, next })
    }

    async fn set_secrets(&self, request: &SetSecrets) -> Result<(), ProviderError> {
        secrets::set(&self.client, request).await
    }

    async fn secret_names(&self, resource: &ResourceRef) -> Result<Vec<String>, ProviderError> {
        secrets::names(&self.client, resource).await
    }

    async fn get_route(&self, hostname: &str) -> Result<Option<Route>, ProviderError> {
        route::find(&self.client, &self.zones, hostname).await
    }

    async fn route_hostname(&self, request: &RouteHostname) -> Result<Route, ProviderError> {
        self.ensure_target_owned(&request.target, &request.owner)
            .await?;
        route::make(&self.client, &self.zones, request).await
    }

    async fn remove_route(
        &self,
        hostname: &str,
        target: &ResourceRef,
    ) -> Result<(), ProviderError> {
        route::remove(&self.client, &self.zones, hostname, target).await
    }

    async fn get_served_hostname(
        &self,
        hostname: &str,
        owner: &str,
        target: &ResourceRef,
    ) -> Result<Option<ServedHostname>, ProviderError> {
        customer::find(&self.client, &self.zones, hostname, owner, target).await
    }

    async fn serve_hostname(
        &self,
        request: &ServeHostname,
    ) -> Result<ServedHostname, ProviderError> {
        self.ensure_target_owned(&request.target, &request.owner)
            .await?;
        customer::serve(&self.client, &self.zones, request).await
    }

    async fn stop_serving(
        &self,
        hostname: &str,
        owner: &str,
        target: &ResourceRef,
    ) -> Result<(), ProviderError> {
        customer::stop(&self.client, &self.zones, hostname, owner, target).await
    }

    /// Disk space at Cloudflare does not belong to the operator, so only the new site counts.
    async fn site_storage(
        &self,
        _: &str,
        _: &str,
        _: &str,
        files: &[SiteFile],
    ) -> Result<SiteStorage, ProviderError> {
        Ok(SiteStorage::of_new_site(files))
    }

    /// Does nothing: Cloudflare decides how long it keeps replaced deployments.
    async fn clean_up(&self) -> Result<u64, ProviderError> {
        Ok(0)
    }

    fn refuses_suspended(&self) -> bool {
        false
    }

    fn logs(&self) -> Option<Arc<dyn ResourceLogs>> {
        Some(Arc::new(self.clone()))
    }
}
