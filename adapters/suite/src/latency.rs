//! A provider that takes its time, for demonstrations and for tests that must catch a job in the middle of a step.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::port::{
    CreateResource, Infrastructure, ProviderError, Provisioned, ResourceRef, SiteDeployment,
    SiteUpload,
};

/// Waits before and after every change the inner provider makes, so that both "not yet done" and "done but not yet
/// recorded" last long enough to be seen.
#[derive(Clone, Debug)]
pub struct SlowInfrastructure {
    inner: Arc<dyn Infrastructure>,
    latency: Duration,
}

impl SlowInfrastructure {
    /// Slows the provider down by twice the latency a change.
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
    async fn observe(&self, resource: &ResourceRef) -> Result<Option<Provisioned>, ProviderError> {
        self.inner.observe(resource).await
    }

    async fn create(&self, request: &CreateResource) -> Result<Provisioned, ProviderError> {
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
}
