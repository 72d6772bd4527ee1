//! An infrastructure provider in memory, for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::memory_logs::{MemoryLog, MemoryLogs};
use crate::cli::{LogContent, SiteFile};
use crate::port::{
    HostnameState, Infrastructure, ObjectRequest, OwnedObject, OwnedObjects, ProviderError,
    ProviderObject, ResourceLogs, ResourceRef, Route, RouteHostname, ServeHostname, ServedHostname,
    SetSecrets, SiteDeployment, SiteRedeploy, SiteState, SiteStorage, SiteUpload,
};
use crate::registry::{ResourceType, SslStatus};

/// An infrastructure provider in memory. Created objects exist until they are removed, and sites are served at once.
/// Clones share the state.
#[derive(Clone, Debug, Default)]
pub struct MemoryInfrastructure(Arc<Mutex<State>>);

#[derive(Clone, Debug)]
struct State {
    /// The objects by name.
    objects: BTreeMap<String, Object>,
    /// The names of the target objects by hostname in a zone of the operator.
    routes: BTreeMap<String, String>,
    /// The hostnames of customers.
    hostnames: BTreeMap<String, Customer>,
    /// The state of all hostnames of customers.
    hostname_state: HostnameState,
    /// The project and the key of every deployment.
    deployments: Vec<(String, String)>,
    /// The digests of the contents of all deployments, by project.
    contents: BTreeMap<String, BTreeSet<[u8; 32]>>,
    /// The key of the live deployment, by project and branch.
    live: BTreeMap<(String, String), String>,
    /// The state of all deployments; `None` if the provider has lost them.
    sites: Option<SiteState>,
    /// The lines of the objects' logs.
    log: MemoryLog,
    /// The numbers of bytes that objects store, by name.
    stored_bytes: BTreeMap<String, u64>,
    /// If `true`, every change fails.
    refuses: bool,
}

/// The owner of a customer's hostname, and the name of the object that serves it.
#[derive(Clone, Debug)]
struct Customer {
    owner: String,
    target: String,
}

#[derive(Clone, Debug)]
struct Object {
    resource_type: ResourceType,
    owner: String,
    /// The names of the secrets of the object.
    secrets: BTreeSet<String>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            routes: BTreeMap::new(),
            hostnames: BTreeMap::new(),
            hostname_state: HostnameState::Active,
            deployments: Vec::new(),
            contents: BTreeMap::new(),
            live: BTreeMap::new(),
            sites: Some(SiteState::Active),
            log: MemoryLog::default(),
            stored_bytes: BTreeMap::new(),
            refuses: false,
        }
    }
}

impl MemoryInfrastructure {
    /// Returns the names of all objects, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.state().objects.keys().cloned().collect()
    }

    /// Makes every creation, removal and deployment fail from now on if `refuses` is `true`, or succeed again if it is
    /// `false`.
    pub fn set_failing(&self, refuses: bool) {
        self.state().refuses = refuses;
    }

    /// Sets the state of all deployed sites; `None` if the provider does not know them.
    pub fn set_site_state(&self, state: Option<SiteState>) {
        self.state().sites = state;
    }

    /// Sets the number of bytes that an object stores.
    pub fn set_stored_bytes(&self, name: &str, bytes: u64) {
        self.state().stored_bytes.insert(name.to_owned(), bytes);
    }

    /// Returns the key of the live deployment of a branch.
    #[must_use]
    pub fn live_deployment(&self, project: &str, branch: &str) -> Option<String> {
        let live = (project.to_owned(), branch.to_owned());
        self.state().live.get(&live).cloned()
    }

    /// Removes all contents and replaced deployments of sites.
    pub fn forget_contents(&self) {
        let mut state = self.state();
        state.contents.clear();
        let live: BTreeSet<String> = state.live.values().cloned().collect();
        state.deployments.retain(|(_, key)| live.contains(key));
    }

    /// Returns the routed hostnames in zones of the operator, with the names of their target objects.
    #[must_use]
    pub fn routes(&self) -> BTreeMap<String, String> {
        self.state().routes.clone()
    }

    /// Appends a line to the log of the worker or pages project with this name. Line number N has the id N and the time
    /// N milliseconds after the epoch.
    pub fn log(&self, resource: &str, content: LogContent) {
        let log = self.state().log.clone();
        log.push(resource, content);
    }

    /// Returns the owner of the worker or pages project with a name; `None` if it does not exist.
    fn owner_with_log(&self, name: &str) -> Option<String> {
        let state = self.state();
        let object = state.objects.get(name)?;
        let has_log = matches!(
            object.resource_type,
            ResourceType::Worker | ResourceType::Pages
        );
        has_log.then(|| object.owner.clone())
    }

    /// Sets the state of all hostnames of customers.
    pub fn set_hostname_state(&self, state: HostnameState) {
        self.state().hostname_state = state;
    }

    /// Returns a provider with a copy of the current state.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.state().clone())))
    }

    /// Replaces the state of this provider and its clones with that of another one.
    pub fn replace_with(&self, other: &Self) {
        let state = other.state().clone();
        *self.state() = state;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> Result<MutexGuard<'_, State>, ProviderError> {
        let state = self.state();
        if state.refuses {
            return Err(ProviderError::Permanent("the provider refuses".to_owned()));
        }
        Ok(state)
    }
}

impl State {
    /// Adds a deployment, unless it exists, and makes it the live one of its branch.
    fn show(&mut self, deployment: (String, String), branch: String) -> SiteDeployment {
        let (project, key) = deployment.clone();
        if !self.deployments.contains(&deployment) {
            self.deployments.push(deployment);
            self.live.insert((project.clone(), branch), key.clone());
        }
        active_deployment(&project, &key)
    }
}

fn provider_object(name: &str, owner: &str) -> ProviderObject {
    ProviderObject {
        id: format!("id-of-{name}"),
        url: Some(format!("http://{name}.test")),
        owner: Some(owner.to_owned()),
    }
}

fn route(hostname: &str, target: &str) -> Route {
    Route {
        id: format!("route-of-{hostname}"),
        target: target.to_owned(),
    }
}

fn served_hostname(hostname: &str, customer: &Customer, state: &HostnameState) -> ServedHostname {
    ServedHostname {
        id: format!("hostname-{hostname}"),
        target: Some(customer.target.clone()),
        state: state.clone(),
        certificate: match state {
            HostnameState::Active => SslStatus::Active,
            HostnameState::Failed(_) => SslStatus::Failed,
            HostnameState::Pending(_) => SslStatus::PendingIssuance,
        },
    }
}

fn active_deployment(project: &str, key: &str) -> SiteDeployment {
    SiteDeployment {
        id: format!("deployment-{key}"),
        url: format!("http://{key}.{project}.test"),
        permalink: Some(format!("http://{key}--{project}.test")),
        state: SiteState::Active,
    }
}

#[async_trait]
impl Infrastructure for MemoryInfrastructure {
    async fn observe(
        &self,
        resource: &ResourceRef,
    ) -> Result<Option<ProviderObject>, ProviderError> {
        let state = self.state();
        let known = state.objects.get(&resource.name);
        Ok(known.map(|object| provider_object(&resource.name, &object.owner)))
    }

    async fn stored_bytes(&self, resource: &ResourceRef) -> Result<Option<u64>, ProviderError> {
        Ok(self.state().stored_bytes.get(&resource.name).copied())
    }

    async fn create(&self, request: &ObjectRequest) -> Result<ProviderObject, ProviderError> {
        let mut state = self.change()?;
        let name = request.resource.name.clone();
        let object = state.objects.entry(name.clone());
        let object = object.or_insert_with(|| Object {
            resource_type: request.resource.resource_type,
            owner: request.owner.clone(),
            secrets: BTreeSet::new(),
        });
        if object.owner != request.owner {
            return Err(ProviderError::NameTaken(name));
        }
        Ok(provider_object(&name, &object.owner))
    }

    async fn remove(&self, resource: &ResourceRef, owner: &str) -> Result<(), ProviderError> {
        let mut state = self.change()?;
        match state.objects.get(&resource.name) {
            Some(known) if known.owner != owner => {
                Err(ProviderError::NameTaken(resource.name.clone()))
            }
            _ => {
                state.objects.remove(&resource.name);
                state.routes.retain(|_, target| *target != resource.name);
                Ok(())
            }
        }
    }

    async fn list_owned(
        &self,
        owner: &str,
        resource_type: ResourceType,
        cursor: Option<String>,
    ) -> Result<OwnedObjects, ProviderError> {
        let state = self.state();
        let after = cursor.unwrap_or_default();
        let mut owned = state.objects.iter().filter(|(name, object)| {
            object.owner == owner && object.resource_type == resource_type && **name > after
        });
        // Returns one object per call, so that callers must use the cursor.
        let first = owned.next().map(|(name, object)| OwnedObject {
            name: name.clone(),
            provisioned: provider_object(name, &object.owner),
        });
        let next = first.as_ref().map(|found| found.name.clone());
        Ok(OwnedObjects {
            objects: first.into_iter().collect(),
            next: next.filter(|_| owned.next().is_some()),
        })
    }

    async fn set_secrets(&self, request: &SetSecrets) -> Result<(), ProviderError> {
        let mut state = self.change()?;
        let name = &request.resource.name;
        let Some(object) = state.objects.get_mut(name) else {
            return Err(ProviderError::Permanent(format!("there is no {name}")));
        };
        if object.owner != request.owner {
            return Err(ProviderError::NameTaken(name.clone()));
        }
        let names = request.secrets.iter().map(|(name, _)| name.clone());
        object.secrets.extend(names);
        object
            .secrets
            .retain(|name| !request.deleted.contains(name));
        Ok(())
    }

    async fn secret_names(&self, resource: &ResourceRef) -> Result<Vec<String>, ProviderError> {
        let state = self.state();
        let object = state.objects.get(&resource.name);
        Ok(object.map_or_else(Vec::new, |object| object.secrets.iter().cloned().collect()))
    }

    async fn get_route(&self, hostname: &str) -> Result<Option<Route>, ProviderError> {
        let state = self.state();
        let target = state.routes.get(hostname);
        Ok(target.map(|target| route(hostname, target)))
    }

    async fn route_hostname(&self, request: &RouteHostname) -> Result<Route, ProviderError> {
        let mut state = self.change()?;
        let name = &request.target.name;
        let owner = state.objects.get(name).map(|object| &object.owner);
        if owner != Some(&request.owner) {
            return Err(ProviderError::Permanent(format!("there is no {name}")));
        }
        let customer = state.hostnames.get(&request.hostname);
        if customer.is_some_and(|customer| customer.owner != request.owner) {
            return Err(ProviderError::NameTaken(request.hostname.clone()));
        }
        let target = state.routes.entry(request.hostname.clone());
        let target = target.or_insert_with(|| name.clone());
        if target != name {
            return Err(ProviderError::NameTaken(request.hostname.clone()));
        }
        Ok(route(&request.hostname, target))
    }

    async fn remove_route(
        &self,
        hostname: &str,
        target: &ResourceRef,
    ) -> Result<(), ProviderError> {
        let mut state = self.change()?;
        match state.routes.get(hostname) {
            Some(known) if *known != target.name => {
                Err(ProviderError::NameTaken(hostname.to_owned()))
            }
            _ => {
                state.routes.remove(hostname);
                Ok(())
            }
        }
    }

    async fn get_served_hostname(
        &self,
        hostname: &str,
        owner: &str,
        _target: &ResourceRef,
    ) -> Result<Option<ServedHostname>, ProviderError> {
        let state = self.state();
        let known = state.hostnames.get(hostname);
        let own = known.filter(|known| known.owner == owner);
        Ok(own.map(|known| served_hostname(hostname, known, &state.hostname_state)))
    }

    async fn serve_hostname(
        &self,
        request: &ServeHostname,
    ) -> Result<ServedHostname, ProviderError> {
        let mut state = self.change()?;
        let routed = state.routes.get(&request.hostname);
        let routed = routed.and_then(|target| state.objects.get(target));
        if routed.is_some_and(|object| object.owner != request.owner) {
            return Err(ProviderError::NameTaken(request.hostname.clone()));
        }
        let new = || Customer {
            owner: request.owner.clone(),
            target: String::new(),
        };
        let known = state.hostnames.entry(request.hostname.clone());
        let known = known.or_insert_with(new);
        if known.owner != request.owner {
            return Err(ProviderError::NameTaken(request.hostname.clone()));
        }
        known.target.clone_from(&request.target.name);
        let known = &state.hostnames[&request.hostname];
        Ok(served_hostname(
            &request.hostname,
            known,
            &state.hostname_state,
        ))
    }

    async fn stop_serving(
        &self,
        hostname: &str,
        owner: &str,
        _target: &ResourceRef,
    ) -> Result<(), ProviderError> {
        let mut state = self.change()?;
        match state.hostnames.get(hostname) {
            Some(known) if known.owner != owner => {
                Err(ProviderError::NameTaken(hostname.to_owned()))
            }
            _ => {
                state.hostnames.remove(hostname);
                Ok(())
            }
        }
    }

    async fn deploy_site(&self, upload: SiteUpload) -> Result<SiteDeployment, ProviderError> {
        let mut state = self.change()?;
        let contents = state.contents.entry(upload.project.clone()).or_default();
        contents.extend(upload.site.uploaded_files().iter().map(|file| file.digest));
        if !upload
            .site
            .files()
            .iter()
            .all(|file| contents.contains(&file.digest))
        {
            let what = "a content of the site is not stored";
            return Err(ProviderError::Permanent(what.to_owned()));
        }
        let deployment = (upload.project, upload.deployment_key);
        Ok(state.show(deployment, upload.branch))
    }

    async fn redeploy_site(&self, request: &SiteRedeploy) -> Result<SiteDeployment, ProviderError> {
        let mut state = self.change()?;
        let source = (request.project.clone(), request.source_key.clone());
        if !state.deployments.contains(&source) {
            let what = "the content of the earlier deployment is not stored";
            return Err(ProviderError::Permanent(what.to_owned()));
        }
        let deployment = (request.project.clone(), request.deployment_key.clone());
        Ok(state.show(deployment, request.branch.clone()))
    }

    async fn stored_contents(
        &self,
        project: &str,
        _owner: &str,
        files: &[SiteFile],
    ) -> Result<BTreeSet<[u8; 32]>, ProviderError> {
        let state = self.state();
        let Some(contents) = state.contents.get(project) else {
            return Ok(BTreeSet::new());
        };
        let digests = files.iter().map(|file| file.digest);
        Ok(digests.filter(|digest| contents.contains(digest)).collect())
    }

    async fn site_deployment(
        &self,
        project: &str,
        deployment_key: &str,
    ) -> Result<Option<SiteDeployment>, ProviderError> {
        let wanted = (project.to_owned(), deployment_key.to_owned());
        let state = self.state();
        let known = state.deployments.contains(&wanted);
        let found = state.sites.clone().filter(|_| known);
        Ok(found.map(|state| SiteDeployment {
            state,
            ..active_deployment(project, deployment_key)
        }))
    }

    async fn site_storage(
        &self,
        _: &str,
        _: &str,
        _: &str,
        files: &[SiteFile],
    ) -> Result<SiteStorage, ProviderError> {
        Ok(SiteStorage::of_new_site(files))
    }

    async fn clean_up(&self) -> Result<u64, ProviderError> {
        Ok(0)
    }

    fn refuses_suspended(&self) -> bool {
        false
    }

    fn logs(&self) -> Option<Arc<dyn ResourceLogs>> {
        let provider = self.clone();
        let log = self.state().log.clone();
        Some(Arc::new(MemoryLogs::new(log, move |name| {
            provider.owner_with_log(name)
        })))
    }
}
