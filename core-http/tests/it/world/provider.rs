//! The in-memory provider with a hook that runs before its calls.

use async_trait::async_trait;
use core_domain::port::{
    CreateResource, Infrastructure, OwnedObjects, ProviderError, ProviderObject, ResourceRef,
    Route, RouteHostname, ServeHostname, ServedHostname, SiteDeployment, SiteUpload,
};
use core_domain::registry::ResourceType;
use core_domain::testing::MemoryInfrastructure;

/// A hook that receives the name of a call and of its object. If it fails, the call returns its error.
type Event = dyn Fn(&str, &str) -> Result<(), ProviderError> + Send + Sync;

/// The in-memory provider with such a hook. Calls for site deployments skip the hook.
pub(crate) struct HookedInfrastructure {
    provider: MemoryInfrastructure,
    /// The hook that runs before a call.
    before: Box<Event>,
}

impl HookedInfrastructure {
    pub(crate) fn new(
        provider: &MemoryInfrastructure,
        before: impl Fn(&str, &str) -> Result<(), ProviderError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            provider: provider.clone(),
            before: Box::new(before),
        }
    }
}

impl std::fmt::Debug for HookedInfrastructure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Disturbed").field(&self.provider).finish()
    }
}

/// Returns the error of a provider that does not answer.
pub(crate) fn no_answer_error() -> ProviderError {
    ProviderError::OutcomeUnknown("no answer".into())
}

#[async_trait]
impl Infrastructure for HookedInfrastructure {
    async fn observe(
        &self,
        resource: &ResourceRef,
    ) -> Result<Option<ProviderObject>, ProviderError> {
        (self.before)("observe", &resource.name)?;
        self.provider.observe(resource).await
    }

    async fn create(&self, request: &CreateResource) -> Result<ProviderObject, ProviderError> {
        (self.before)("create", &request.resource.name)?;
        self.provider.create(request).await
    }

    async fn remove(&self, resource: &ResourceRef, owner: &str) -> Result<(), ProviderError> {
        (self.before)("remove", &resource.name)?;
        self.provider.remove(resource, owner).await
    }

    async fn list_owned(
        &self,
        owner: &str,
        resource_type: ResourceType,
        cursor: Option<String>,
    ) -> Result<OwnedObjects, ProviderError> {
        (self.before)("owned", resource_type.as_str())?;
        self.provider.list_owned(owner, resource_type, cursor).await
    }

    async fn get_served_hostname(
        &self,
        hostname: &str,
        owner: &str,
        target: &ResourceRef,
    ) -> Result<Option<ServedHostname>, ProviderError> {
        (self.before)("served_hostname", hostname)?;
        self.provider
            .get_served_hostname(hostname, owner, target)
            .await
    }

    async fn serve_hostname(
        &self,
        request: &ServeHostname,
    ) -> Result<ServedHostname, ProviderError> {
        (self.before)("serve_hostname", &request.hostname)?;
        self.provider.serve_hostname(request).await
    }

    async fn stop_serving(
        &self,
        hostname: &str,
        owner: &str,
        target: &ResourceRef,
    ) -> Result<(), ProviderError> {
        (self.before)("stop_serving", hostname)?;
        self.provider.stop_serving(hostname, owner, target).await
    }

    async fn get_route(&self, hostname: &str) -> Result<Option<Route>, ProviderError> {
        (self.before)("route", hostname)?;
        self.provider.get_route(hostname).await
    }

    async fn route_hostname(&self, request: &RouteHostname) -> Result<Route, ProviderError> {
        (self.before)("route_hostname", &request.hostname)?;
        self.provider.route_hostname(request).await
    }

    async fn remove_route(
        &self,
        hostname: &str,
        target: &ResourceRef,
    ) -> Result<(), ProviderError> {
        (self.before)("remove_route", hostname)?;
        self.provider.remove_route(hostname, target).await
    }

    async fn deploy_site(&self, upload: SiteUpload) -> Result<SiteDeployment, ProviderError> {
        self.provider.deploy_site(upload).await
    }

    async fn site_deployment(
        &self,
        project: &str,
        deployment_key: &str,
    ) -> Result<Option<SiteDeployment>, ProviderError> {
        self.provider.site_deployment(project, deployment_key).await
    }
}
