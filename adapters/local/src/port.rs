//! The implementation of the infrastructure port.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use core_domain::cli::SiteFile;
use core_domain::kernel::Timestamp;
use core_domain::port::{
    Cause, Infrastructure, ObjectRequest, OwnedObject, OwnedObjects, ProviderError, ProviderObject,
    ResourceLogs, ResourceRef, Route, RouteHostname, ServeHostname, ServedHostname, SetSecrets,
    SiteDeployment, SiteRedeploy, SiteStorage, SiteUpload,
};
use core_domain::registry::ResourceType;

use crate::config::{FaultMoment, LocalConfig};
use crate::data_dir::DataDir;
use crate::error::Result;
use crate::infrastructure::LocalInfrastructure;
use crate::manifest::Manifest;
use crate::names::{branch_label, check_name};
use crate::site_content::ContentSize;
use crate::{deploy, hostname, prune, secrets, site_content};

/// Maximum number of objects in one page of a list.
const PAGE_SIZE: usize = 100;

#[async_trait]
impl Infrastructure for LocalInfrastructure {
    async fn observe(
        &self,
        resource: &ResourceRef,
    ) -> Result<Option<ProviderObject>, ProviderError> {
        let target = resource.clone();
        let found = self.run(move |data| Manifest::read(data, &target)).await?;
        Ok(found.map(|manifest| self.provider_object(resource, manifest)))
    }

    async fn create(&self, request: &ObjectRequest) -> Result<ProviderObject, ProviderError> {
        Ok(self.slowly(self.create_object(request)).await?)
    }

    async fn remove(&self, resource: &ResourceRef, owner: &str) -> Result<(), ProviderError> {
        Ok(self.slowly(self.remove_object(resource, owner)).await?)
    }

    async fn deploy_site(&self, upload: SiteUpload) -> Result<SiteDeployment, ProviderError> {
        self.slowly(async {
            let (now, config) = (self.config.clock.now(), self.config.clone());
            let deployed = self
                .run(move |data| deploy::deploy(data, &upload, now, &config))
                .await?;
            Ok(self.site_deployment_of(deployed))
        })
        .await
    }

    async fn redeploy_site(&self, request: &SiteRedeploy) -> Result<SiteDeployment, ProviderError> {
        self.slowly(async {
            let (now, config) = (self.config.clock.now(), self.config.clone());
            let request = request.clone();
            let deployed = self
                .run(move |data| deploy::redeploy(data, &request, now, &config))
                .await?;
            Ok(self.site_deployment_of(deployed))
        })
        .await
    }

    async fn stored_contents(
        &self,
        project: &str,
        owner: &str,
        files: &[SiteFile],
    ) -> Result<BTreeSet<[u8; 32]>, ProviderError> {
        let (project, owner) = (project.to_owned(), owner.to_owned());
        let files: Vec<ContentSize> = files.iter().map(ContentSize::from).collect();
        Ok(self
            .run(move |data| site_content::find_stored(data, &project, &owner, &files))
            .await?)
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

    async fn site_storage(
        &self,
        project: &str,
        branch: &str,
        owner: &str,
        files: &[SiteFile],
    ) -> Result<SiteStorage, ProviderError> {
        let label = branch_label(project, branch);
        let (project, owner) = (project.to_owned(), owner.to_owned());
        let files: Vec<ContentSize> = files.iter().map(ContentSize::from).collect();
        Ok(self
            .run(move |data| site_content::storage(data, &project, &label, &owner, &files))
            .await?)
    }

    async fn stored_bytes(&self, resource: &ResourceRef) -> Result<Option<u64>, ProviderError> {
        let (resource_type, name) = (resource.resource_type, resource.name.clone());
        Ok(self
            .run(move |data| {
                check_name(&name)?;
                data.total_size(&[resource_type.as_str(), &name])
            })
            .await?)
    }

    async fn clean_up(&self) -> Result<u64, ProviderError> {
        let projects = self.run(|data| data.list(&[ResourceType::Pages.as_str()]));
        let mut removed = 0;
        for name in projects.await? {
            let (now, config) = (self.config.clock.now(), self.config.clone());
            let cleaned = self.run(move |data| clean_up_site(data, name, now, &config));
            removed += cleaned.await?;
        }
        Ok(removed)
    }

    async fn list_owned(
        &self,
        owner: &str,
        resource_type: ResourceType,
        cursor: Option<String>,
    ) -> Result<OwnedObjects, ProviderError> {
        let owner = owner.to_owned();
        let mut found = self
            .run(move |data| owned_after(data, &owner, resource_type, cursor))
            .await?;
        let has_more = found.len() > PAGE_SIZE;
        found.truncate(PAGE_SIZE);
        let last = found.last().map(|(resource, _)| resource.name.clone());
        let objects = found.into_iter().map(|(resource, manifest)| OwnedObject {
            provisioned: self.provider_object(&resource, manifest),
            name: resource.name,
        });
        Ok(OwnedObjects {
            objects: objects.collect(),
            next: last.filter(|_| has_more),
        })
    }

    async fn set_secrets(&self, request: &SetSecrets) -> Result<(), ProviderError> {
        self.slowly(async {
            let faults = &self.config.faults;
            faults.at("secrets", &request.resource, FaultMoment::Before)?;
            let change = request.clone();
            self.run(move |data| secrets::set(data, &change)).await?;
            Ok(faults.at("secrets", &request.resource, FaultMoment::Done)?)
        })
        .await
    }

    async fn secret_names(&self, resource: &ResourceRef) -> Result<Vec<String>, ProviderError> {
        let resource = resource.clone();
        Ok(self
            .run(move |data| secrets::names(data, &resource))
            .await?)
    }

    async fn get_route(&self, hostname: &str) -> Result<Option<Route>, ProviderError> {
        let hostname = hostname.to_owned();
        Ok(self
            .run(move |data| hostname::route(data, &hostname))
            .await?)
    }

    async fn route_hostname(&self, request: &RouteHostname) -> Result<Route, ProviderError> {
        self.slowly(async {
            let faults = &self.config.faults;
            faults.at("route", &request.target, FaultMoment::Before)?;
            let (change, domain) = (request.clone(), self.domain());
            let route = self
                .run(move |data| hostname::add_route(data, &change, &domain))
                .await?;
            faults.at("route", &request.target, FaultMoment::Done)?;
            Ok(route)
        })
        .await
    }

    async fn remove_route(
        &self,
        hostname: &str,
        target: &ResourceRef,
    ) -> Result<(), ProviderError> {
        self.slowly(async {
            let faults = &self.config.faults;
            faults.at("unroute", target, FaultMoment::Before)?;
            let (name, of) = (hostname.to_owned(), target.clone());
            self.run(move |data| hostname::remove_route(data, &name, &of))
                .await?;
            Ok(faults.at("unroute", target, FaultMoment::Done)?)
        })
        .await
    }

    async fn get_served_hostname(
        &self,
        hostname: &str,
        owner: &str,
        _target: &ResourceRef,
    ) -> Result<Option<ServedHostname>, ProviderError> {
        let (hostname, owner) = (hostname.to_owned(), owner.to_owned());
        Ok(self
            .run(move |data| hostname::served_hostname(data, &hostname, &owner))
            .await?)
    }

    async fn serve_hostname(
        &self,
        request: &ServeHostname,
    ) -> Result<ServedHostname, ProviderError> {
        self.slowly(async {
            let faults = &self.config.faults;
            faults.at_hostname("serve", &request.hostname, FaultMoment::Before)?;
            let (change, domain) = (request.clone(), self.domain());
            let served = self
                .run(move |data| hostname::serve(data, &change, &domain))
                .await?;
            faults.at_hostname("serve", &request.hostname, FaultMoment::Done)?;
            Ok(served)
        })
        .await
    }

    fn refuses_suspended(&self) -> bool {
        self.workers.suspension_gate().is_set()
    }

    fn logs(&self) -> Option<Arc<dyn ResourceLogs>> {
        Some(Arc::new(self.clone()))
    }

    async fn stop_serving(
        &self,
        hostname: &str,
        owner: &str,
        _target: &ResourceRef,
    ) -> Result<(), ProviderError> {
        self.slowly(async {
            let faults = &self.config.faults;
            faults.at_hostname("stop", hostname, FaultMoment::Before)?;
            let (name, owner) = (hostname.to_owned(), owner.to_owned());
            self.run(move |data| hostname::stop_serving(data, &name, &owner))
                .await?;
            Ok(faults.at_hostname("stop", hostname, FaultMoment::Done)?)
        })
        .await
    }
}

/// Deletes outdated deployments and contents of a project. Returns the number of deleted contents. An error is logged,
/// so that a damaged project does not block the others.
fn clean_up_site(
    data: &DataDir,
    name: String,
    now: Timestamp,
    config: &LocalConfig,
) -> Result<u64> {
    if !Manifest::exists(data, ResourceType::Pages, &name)? {
        return Ok(0);
    }
    let project = ResourceRef {
        resource_type: ResourceType::Pages,
        name,
    };
    let cleaned = prune::prune(data, &project, now, config)
        .and_then(|()| site_content::sweep(data, &project.name));
    cleaned.or_else(|error| {
        let cause = Cause::new(error);
        tracing::warn!(%cause, project = project.name, "old deployments could not be removed");
        Ok(0)
    })
}

/// Returns the next objects of an owner, ordered by name: a page, and one more object if another page follows.
fn owned_after(
    data: &DataDir,
    owner: &str,
    resource_type: ResourceType,
    cursor: Option<String>,
) -> Result<Vec<(ResourceRef, Manifest)>> {
    let after = cursor.unwrap_or_default();
    let mut names = data.list(&[resource_type.as_str()])?;
    names.retain(|name| *name > after && check_name(name).is_ok());
    names.sort_unstable();
    let mut found = Vec::new();
    for name in names {
        let resource = ResourceRef {
            resource_type,
            name,
        };
        let manifest = Manifest::read(data, &resource)?.filter(|manifest| manifest.owner == owner);
        found.extend(manifest.map(|manifest| (resource, manifest)));
        if found.len() > PAGE_SIZE {
            break;
        }
    }
    Ok(found)
}
