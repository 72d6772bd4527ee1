//! Placeholder for a part that this installation does not have. Every call fails with an error that names the part.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use core_domain::cli::SiteFile;
use core_domain::port::{
    ArchiveError, BlobError, BlobReader, Blobs, Cause, DnsError, DnsResolver, Infrastructure,
    ObjectRequest, OwnedObjects, ProviderError, ProviderObject, ResourceRef, Route, RouteHostname,
    ServeHostname, ServedHostname, SetSecrets, Site, SiteArchives, SiteDeployment, SiteRedeploy,
    SiteStorage, SiteUpload, StagedBlob, WebhookRequest, WebhookResponse, WebhookSendError,
    WebhookSender,
};
use core_domain::registry::ResourceType;

/// A part of an installation that was neither set on the builder nor built in.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("this installation has no {part}: set one on the builder or enable the feature {feature}")]
pub(crate) struct MissingPart {
    part: &'static str,
    feature: &'static str,
}

impl MissingPart {
    #[cfg(any(test, not(feature = "local")))]
    pub(crate) const INFRASTRUCTURE: Self = Self {
        part: "infrastructure provider",
        feature: "local",
    };

    #[cfg(any(test, not(feature = "local")))]
    pub(crate) const BLOBS: Self = Self {
        part: "blob store for uploads",
        feature: "local",
    };

    #[cfg(any(test, not(feature = "archives")))]
    pub(crate) const ARCHIVES: Self = Self {
        part: "archive reader",
        feature: "archives",
    };

    #[cfg(any(test, not(feature = "dns")))]
    pub(crate) const DNS: Self = Self {
        part: "DNS resolver",
        feature: "dns",
    };

    fn dns_error(self) -> DnsError {
        DnsError::Unavailable(Cause::new(self))
    }

    #[cfg(any(test, not(feature = "webhooks")))]
    pub(crate) const WEBHOOKS: Self = Self {
        part: "webhook sender",
        feature: "webhooks",
    };

    /// Returns a permanent error, because a retry cannot succeed.
    fn provider_error(self) -> ProviderError {
        ProviderError::Permanent(self.to_string())
    }

    fn blob_error(self) -> BlobError {
        BlobError::Failed(Cause::new(self))
    }
}

#[async_trait]
impl Infrastructure for MissingPart {
    async fn observe(&self, _: &ResourceRef) -> Result<Option<ProviderObject>, ProviderError> {
        Err(self.provider_error())
    }

    async fn create(&self, _: &ObjectRequest) -> Result<ProviderObject, ProviderError> {
        Err(self.provider_error())
    }

    async fn remove(&self, _: &ResourceRef, _: &str) -> Result<(), ProviderError> {
        Err(self.provider_error())
    }

    async fn deploy_site(&self, _: SiteUpload) -> Result<SiteDeployment, ProviderError> {
        Err(self.provider_error())
    }

    async fn site_deployment(
        &self,
        _: &str,
        _: &str,
    ) -> Result<Option<SiteDeployment>, ProviderError> {
        Err(self.provider_error())
    }

    async fn site_storage(
        &self,
        _: &str,
        _: &str,
        _: &str,
        _: &[SiteFile],
    ) -> Result<SiteStorage, ProviderError> {
        Err(self.provider_error())
    }

    async fn clean_up(&self) -> Result<u64, ProviderError> {
        Err(self.provider_error())
    }

    async fn list_owned(
        &self,
        _: &str,
        _: ResourceType,
        _: Option<String>,
    ) -> Result<OwnedObjects, ProviderError> {
        Err(self.provider_error())
    }

    async fn redeploy_site(&self, _: &SiteRedeploy) -> Result<SiteDeployment, ProviderError> {
        Err(self.provider_error())
    }

    async fn stored_contents(
        &self,
        _: &str,
        _: &str,
        _: &[SiteFile],
    ) -> Result<BTreeSet<[u8; 32]>, ProviderError> {
        Err(self.provider_error())
    }

    async fn set_secrets(&self, _: &SetSecrets) -> Result<(), ProviderError> {
        Err(self.provider_error())
    }

    async fn secret_names(&self, _: &ResourceRef) -> Result<Vec<String>, ProviderError> {
        Err(self.provider_error())
    }

    async fn get_route(&self, _: &str) -> Result<Option<Route>, ProviderError> {
        Err(self.provider_error())
    }

    async fn route_hostname(&self, _: &RouteHostname) -> Result<Route, ProviderError> {
        Err(self.provider_error())
    }

    async fn remove_route(&self, _: &str, _: &ResourceRef) -> Result<(), ProviderError> {
        Err(self.provider_error())
    }

    async fn get_served_hostname(
        &self,
        _: &str,
        _: &str,
        _: &ResourceRef,
    ) -> Result<Option<ServedHostname>, ProviderError> {
        Err(self.provider_error())
    }

    async fn serve_hostname(&self, _: &ServeHostname) -> Result<ServedHostname, ProviderError> {
        Err(self.provider_error())
    }

    async fn stop_serving(&self, _: &str, _: &str, _: &ResourceRef) -> Result<(), ProviderError> {
        Err(self.provider_error())
    }

    fn refuses_suspended(&self) -> bool {
        false
    }
}

#[async_trait]
impl Blobs for MissingPart {
    async fn stage(&self) -> Result<Box<dyn StagedBlob>, BlobError> {
        Err(self.blob_error())
    }

    async fn open(&self, _: &str) -> Result<Box<dyn BlobReader>, BlobError> {
        Err(self.blob_error())
    }

    async fn remove(&self, _: &str) -> Result<(), BlobError> {
        Err(self.blob_error())
    }
}

#[async_trait]
impl SiteArchives for MissingPart {
    async fn open_part(
        &self,
        _: Box<dyn BlobReader>,
        _: Box<dyn BlobReader>,
    ) -> Result<Arc<dyn Site>, ArchiveError> {
        Err(ArchiveError::Unreadable(Cause::new(*self)))
    }

    async fn open(&self, _: Box<dyn BlobReader>) -> Result<Arc<dyn Site>, ArchiveError> {
        Err(ArchiveError::Unreadable(Cause::new(*self)))
    }
}

#[async_trait]
impl DnsResolver for MissingPart {
    async fn cname(&self, _: &str) -> Result<Option<String>, DnsError> {
        Err(self.dns_error())
    }

    async fn txt(&self, _: &str) -> Result<Vec<String>, DnsError> {
        Err(self.dns_error())
    }

    async fn addresses(&self, _: &str) -> Result<BTreeSet<IpAddr>, DnsError> {
        Err(self.dns_error())
    }
}

#[async_trait]
impl WebhookSender for MissingPart {
    async fn send(&self, _: &WebhookRequest) -> Result<WebhookResponse, WebhookSendError> {
        Err(WebhookSendError::Unavailable(Cause::new(*self)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_absent_part_fails_permanently_and_names_the_missing_feature() {
        let resource = ResourceRef {
            resource_type: ResourceType::Kv,
            name: "acme-kv".to_owned(),
        };
        let refusal = MissingPart::INFRASTRUCTURE
            .observe(&resource)
            .await
            .unwrap_err();
        let ProviderError::Permanent(text) = refusal else {
            panic!("{refusal:?} would be tried again");
        };
        assert!(text.contains("feature local"), "{text}");
        let stage = MissingPart::BLOBS.stage().await.map(drop).unwrap_err();
        assert!(Cause::new(stage).to_string().contains("feature local"));
        let lookup = MissingPart::DNS.txt("example.org").await.unwrap_err();
        assert!(Cause::new(lookup).to_string().contains("feature dns"));
        assert!(
            MissingPart::ARCHIVES
                .to_string()
                .contains("feature archives")
        );
        assert!(
            MissingPart::WEBHOOKS
                .to_string()
                .contains("feature webhooks")
        );
    }
}
