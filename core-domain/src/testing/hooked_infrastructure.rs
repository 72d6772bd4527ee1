//! The in-memory provider with a hook that runs before its calls, for tests of slow, failing and observed providers.

use std::collections::BTreeSet;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;

use super::MemoryInfrastructure;
use crate::cli::SiteFile;
use crate::port::{
    Infrastructure, ObjectRequest, OwnedObjects, ProviderError, ProviderObject, ResourceLogs,
    ResourceRef, Route, RouteHostname, ServeHostname, ServedHostname, SetSecrets, SiteDeployment,
    SiteRedeploy, SiteStorage, SiteUpload,
};
use crate::registry::ResourceType;

type HookOutcome = Pin<Box<dyn Future<Output = Result<(), ProviderError>> + Send>>;
type Hook = dyn Fn(&str, &str) -> HookOutcome + Send + Sync;

/// The in-memory provider with a hook that runs before every call. The hook receives the name of the method and the name
/// of the object, project, hostname or owner. If it fails, the call has no effect and returns the error of the hook.
#[derive(Clone)]
pub struct HookedInfrastructure {
    provider: MemoryInfrastructure,
    hook: Arc<Hook>,
}

impl HookedInfrastructure {
    /// Creates a provider whose calls run a function first.
    #[must_use]
    pub fn new(
        provider: &MemoryInfrastructure,
        hook: impl Fn(&str, &str) -> Result<(), ProviderError> + Send + Sync + 'static,
    ) -> Self {
        Self::with_async_hook(provider, move |call, name| {
            let outcome = hook(call, name);
            async move { outcome }
        })
    }

    /// Creates a provider whose calls run an asynchronous function first.
    #[must_use]
    pub fn with_async_hook<F>(
        provider: &MemoryInfrastructure,
        hook: impl Fn(&str, &str) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), ProviderError>> + Send + 'static,
    {
        Self {
            provider: provider.clone(),
            hook: Arc::new(move |call, name| Box::pin(hook(call, name))),
        }
    }
}

impl fmt::Debug for HookedInfrastructure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HookedInfrastructure")
            .field(&self.provider)
            .finish()
    }
}

#[async_trait]
impl Infrastructure for HookedInfrastructure {
    async fn observe(
        &self,
        resource: &ResourceRef,
    ) -> Result<Option<ProviderObject>, ProviderError> {
        (self.hook)("observe", &resource.name).await?;
        self.provider.observe(resource).await
    }

    async fn create(&self, request: &ObjectRequest) -> Result<ProviderObject, ProviderError> {
        (self.hook)("create", &request.resource.name).await?;
        self.provider.create(request).await
    }

    async fn remove(&self, resource: &ResourceRef, owner: &str) -> Result<(), ProviderError> {
        (self.hook)("remove", &resource.name).await?;
        self.provider.remove(resource, owner).await
    }

    async fn deploy_site(&self, upload: SiteUpload) -> Result<SiteDeployment, ProviderError> {
        (self.hook)("deploy_site", &upload.project).await?;
        self.provider.deploy_site(upload).await
    }

    async fn site_deployment(
        &self,
        project: &str,
        deployment_key: &str,
    ) -> Result<Option<SiteDeployment>, ProviderError> {
        (self.hook)("site_deployment", project).await?;
        self.provider.site_deployment(project, deployment_key).await
    }

    async fn site_storage(
        &self,
        project: &str,
        branch: &str,
        owner: &str,
        files: &[SiteFile],
    ) -> Result<SiteStorage, ProviderError> {
        (self.hook)("site_storage", project).await?;
        self.provider
            .site_storage(project, branch, owner, files)
            .await
    }

    async fn clean_up(&self) -> Result<u64, ProviderError> {
        (self.hook)("clean_up", "").await?;
        self.provider.clean_up().await
    }

    async fn list_owned(
        &self,
        owner: &str,
        resource_type: ResourceType,
        cursor: Option<String>,
    ) -> Result<OwnedObjects, ProviderError> {
        (self.hook)("owned", resource_type.as_str()).await?;
        self.provider.list_owned(owner, resource_type, cursor).await
    }

    async fn redeploy_site(&self, request: &SiteRedeploy) -> Result<SiteDeployment, ProviderError> {
        (self.hook)("redeploy_site", &request.project).await?;
        self.provider.redeploy_site(request).await
    }

    async fn stored_contents(
        &self,
        project: &str,
        owner: &str,
        files: &[SiteFile],
    ) -> Result<BTreeSet<[u8; 32]>, ProviderError> {
        (self.hook)("stored_contents", project).await?;
        self.provider.stored_contents(project, owner, files).await
    }

    async fn set_secrets(&self, request: &SetSecrets) -> Result<(), ProviderError> {
        (self.hook)("set_secrets", &request.resource.name).await?;
        self.provider.set_secrets(request).await
    }

    async fn secret_names(&self, resource: &ResourceRef) -> Result<Vec<String>, ProviderError> {
        (self.hook)("secret_names", &resource.name).await?;
        self.provider.secret_names(resource).await
    }

    async fn get_route(&self, hostname: &str) -> Result<Option<Route>, ProviderError> {
        (self.hook)("route", hostname).await?;
        self.provider.get_route(hostname).await
    }

    async fn route_hostname(&self, request: &RouteHostname) -> Result<Route, ProviderError> {
        (self.hook)("route_hostname", &request.hostname).await?;
        self.provider.route_hostname(request).await
    }

    async fn remove_route(
        &self,
        hostname: &str,
        target: &ResourceRef,
    ) -> Result<(), ProviderError> {
        (self.hook)("remove_route", hostname).await?;
        self.provider.remove_route(hostname, target).await
    }

    async fn get_served_hostname(
        &self,
        hostname: &str,
        owner: &str,
        target: &ResourceRef,
    ) -> Result<Option<ServedHostname>, ProviderError> {
        (self.hook)("served_hostname", hostname).await?;
        self.provider
            .get_served_hostname(hostname, owner, target)
            .await
    }

    async fn serve_hostname(
        &self,
        request: &ServeHostname,
    ) -> Result<ServedHostname, ProviderError> {
        (self.hook)("serve_hostname", &request.hostname).await?;
        self.provider.serve_hostname(request).await
    }

    async fn stop_serving(
        &self,
        hostname: &str,
        owner: &str,
        target: &ResourceRef,
    ) -> Result<(), ProviderError> {
        (self.hook)("stop_serving", hostname).await?;
        self.provider.stop_serving(hostname, owner, target).await
    }

    fn refuses_suspended(&self) -> bool {
        self.provider.refuses_suspended()
    }

    fn logs(&self) -> Option<Arc<dyn ResourceLogs>> {
        self.provider.logs()
    }
}
