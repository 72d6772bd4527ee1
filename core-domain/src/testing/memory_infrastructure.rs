//! A provider in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::port::{
    CreateResource, Infrastructure, ProviderError, Provisioned, ResourceRef, SiteDeployment,
    SiteState, SiteUpload,
};

/// Infrastructure in memory: what is created exists until it is removed, and sites are served at once. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct MemoryInfrastructure(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Names, and who they belong to.
    objects: BTreeMap<String, String>,
    /// Project and key of every deployment.
    deployments: Vec<(String, String)>,
    /// Of every deployment; `None` when all were lost.
    sites: Option<SiteState>,
    refuses: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            deployments: Vec::new(),
            sites: Some(SiteState::Active),
            refuses: false,
        }
    }
}

impl MemoryInfrastructure {
    /// The names of what exists, in their order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.state().objects.keys().cloned().collect()
    }

    /// From now on nothing can be created, removed or deployed, or everything again.
    pub fn refuse(&self, refuses: bool) {
        self.state().refuses = refuses;
    }

    /// From now on this is what deployed sites are; `None`: unknown.
    pub fn sites_are(&self, state: Option<SiteState>) {
        self.state().sites = state;
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

fn provisioned(name: &str, owner: &str) -> Provisioned {
    Provisioned {
        id: format!("id-of-{name}"),
        url: Some(format!("http://{name}.test")),
        owner: owner.to_owned(),
    }
}

fn deployed(project: &str, key: &str) -> SiteDeployment {
    SiteDeployment {
        id: format!("deployment-{key}"),
        url: format!("http://{key}.{project}.test"),
        state: SiteState::Active,
    }
}

#[async_trait]
impl Infrastructure for MemoryInfrastructure {
    async fn observe(&self, resource: &ResourceRef) -> Result<Option<Provisioned>, ProviderError> {
        let state = self.state();
        let owner = state.objects.get(&resource.name);
        Ok(owner.map(|owner| provisioned(&resource.name, owner)))
    }

    async fn create(&self, request: &CreateResource) -> Result<Provisioned, ProviderError> {
        let mut state = self.change()?;
        let name = request.resource.name.clone();
        let owner = state.objects.entry(name.clone());
        let owner = owner.or_insert_with(|| request.owner.clone());
        if *owner != request.owner {
            return Err(ProviderError::NameTaken(name));
        }
        Ok(provisioned(&name, owner))
    }

    async fn remove(&self, resource: &ResourceRef, owner: &str) -> Result<(), ProviderError> {
        let mut state = self.change()?;
        match state.objects.get(&resource.name) {
            Some(known) if known != owner => Err(ProviderError::NameTaken(resource.name.clone())),
            _ => {
                state.objects.remove(&resource.name);
                Ok(())
            }
        }
    }

    async fn deploy_site(&self, upload: SiteUpload) -> Result<SiteDeployment, ProviderError> {
        let mut state = self.change()?;
        let deployment = (upload.project, upload.deployment_key);
        let answer = deployed(&deployment.0, &deployment.1);
        if !state.deployments.contains(&deployment) {
            state.deployments.push(deployment);
        }
        Ok(answer)
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
            ..deployed(project, deployment_key)
        }))
    }
}
