//! An infrastructure provider with artificial latency, for demonstrations and for tests that interrupt a job in the
//! middle of a step.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::cli::SiteFile;
use core_domain::port::{
    CreateResource, Infrastructure, OwnedObjects, ProviderError, ProviderObject, ResourceRef,
    Route, RouteHostname, ServeHostname, ServedHostname, SetSecrets, SiteDeployment, SiteStorage,
    SiteUpload,
};
use core_domain::registry::ResourceType;

/// Waits before and after every change of the inner provider. The states "not yet done" and "done but not yet recorded"
/// then last long enough to be observed.
#[derive(Clone, Debug)]
pub struct SlowInfrastructure {
    inner: Arc<dyn Infrastructure>,
    latency: Duration,
}

impl SlowInfrastructure {
    /// Creates a provider that waits for `latency` before and again after every change.
    #[must_use]
    pub fn new(inner: Arc<dyn Infrastructure>, latency: Duration) -> Self {
        Self { inner, latency }
    }

    async fn slowly<T>(&self, change: impl Future<Output = T> + Send) -> T {
        tokio::time::sleep(self.latency).await;
        let outcome = change.await;
        tokio::time::sleep(self.latency).await;
        outcome
    }
}

#[async_trait]
impl Infrastructure for SlowInfrastructure {
    async fn observe(
        &self,
        resource: &ResourceRef,
    ) -> Result<Option<ProviderObject>, ProviderError> {
        self.inner.observe(resource).await
    }

    async fn create(&self, request: &CreateResource) -> Result<ProviderObject, ProviderError> {
        self.slowly(self.inner.create(request)).await
    }

    async fn remove(&self, resource: &ResourceRef, owner: &str) -> Result<(), ProviderError> {
        self.slowly(self.inner.remove(resource, owner)).await
    }

    async fn deploy_site(&self, upload: SiteUpload) -> Result<SiteDeployment, ProviderError> {
        self.slowly(self.inner.deploy_site(upload)).await
    }

    async fn site_deployment(
        &self,
        project: &str,
        deployment_key: &str,
    ) -> Result<Option<SiteDeployment>, ProviderError> {
        self.inner.site_deployment(project, deployment_key).await
    }

    async fn site_storage(
        &self,
        project: &str,
        branch: &str,
        owner: &str,
        files: &[SiteFile],
    ) -> Result<SiteStorage, ProviderError> {
        self.inner.site_storage(project, branch, owner, files).await
    }

    async fn clean_up(&self) -> Result<u64, ProviderError> {
        self.inner.clean_up().await
    }

    async fn list_owned(
        &self,
        owner: &str,
        resource_type: ResourceType,
        cursor: Option<String>,
    ) -> Result<OwnedObjects, ProviderError> {
        self.inner.list_owned(owner, resource_type, cursor).await
    }

    async fn set_secrets(&self, request: &SetSecrets) -> Result<(), ProviderError> {
        self.slowly(self.inner.set_secrets(request)).await
    }

    async fn secret_names(&self, resource: &ResourceRef) -> Result<Vec<String>, ProviderError> {
        self.inner.secret_names(resource).await
    }

    async fn get_route(&self, hostname: &str) -> Result<Option<Route>, ProviderError> {
        self.inner.get_route(hostname).await
    }

    async fn route_hostname(&self, request: &RouteHostname) -> Result<Route, ProviderError> {
        self.slowly(self.inner.route_hostname(request)).await
    }

    async fn remove_route(
        &self,
        hostname: &str,
        target: &ResourceRef,
    ) -> Result<(), ProviderError> {
        self.slowly(self.inner.remove_route(hostname, target)).await
    }

    async fn get_served_hostname(
        &self,
        hostname: &str,
        owner: &str,
        target: &ResourceRef,
    ) -> Result<Option<ServedHostname>, ProviderError> {
        self.inner
            .get_served_hostname(hostname, owner, target)
            .await
    }

    async fn serve_hostname(
        &self,
        request: &ServeHostname,
    ) -> Result<ServedHostname, ProviderError> {
        self.slowly(self.inner.serve_hostname(request)).await
    }

    async fn stop_serving(
        &self,
        hostname: &str,
        owner: &str,
        target: &ResourceRef,
    ) -> Result<(), ProviderError> {
        self.slowly(self.inner.stop_serving(hostname, owner, target))
            .await
    }

    fn refuses_suspended(&self) -> bool {
        self.inner.refuses_suspended()
    }
}
