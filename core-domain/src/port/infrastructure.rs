//! The infrastructure port: the objects that exist at a provider.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::{Cause, ResourceLogs, Site};
use crate::cli::SiteFile;
use crate::kernel::{PlatformId, Secret};
use crate::registry::{ResourceType, is_name_of_platform};

/// Creates, finds and removes infrastructure objects. Every call can be repeated.
///
/// Every method can fail with [`ProviderError::Transient`], [`ProviderError::Throttled`] and
/// [`ProviderError::Damaged`], and a change also with [`ProviderError::OutcomeUnknown`]. The `# Errors` sections list
/// only the other causes.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait Infrastructure: Send + Sync + std::fmt::Debug {
    /// Returns the object with this name; `None` if it does not exist.
    ///
    /// # Errors
    /// Only those of every method.
    async fn observe(
        &self,
        resource: &ResourceRef,
    ) -> Result<Option<ProviderObject>, ProviderError>;

    /// Creates the object. If it exists and has the same owner, the existing object is returned; a worker gets the new
    /// script.
    ///
    /// # Errors
    /// - [`ProviderError::NameTaken`] if the object exists and belongs to another owner.
    /// - [`ProviderError::Permanent`] if a worker is bound to an object that does not exist.
    async fn create(&self, request: &ObjectRequest) -> Result<ProviderObject, ProviderError>;

    /// Removes the object with its contents. Does nothing if it does not exist.
    ///
    /// # Errors
    /// [`ProviderError::NameTaken`] if the object belongs to another owner. Nothing is removed.
    async fn remove(&self, resource: &ResourceRef, owner: &str) -> Result<(), ProviderError>;

    /// Deploys a site. All files become visible at once or none does. A repeated request for a deployment that a later
    /// one has replaced does not restore it.
    ///
    /// # Errors
    /// [`ProviderError::Permanent`] if the project does not exist.
    async fn deploy_site(&self, upload: SiteUpload) -> Result<SiteDeployment, ProviderError>;

    /// Deploys the content of an earlier deployment of the project again, without an upload. All files become visible at
    /// once. Repeated requests with the same key have the effect of one.
    ///
    /// # Errors
    /// [`ProviderError::Permanent`] if the project does not exist, or the provider no longer has the content.
    async fn redeploy_site(&self, request: &SiteRedeploy) -> Result<SiteDeployment, ProviderError>;

    /// Returns which contents the provider has stored for an owner's project, among those of these files. An upload does
    /// not need to have them. A provider that cannot look up contents by these digests returns none.
    ///
    /// # Errors
    /// Only those of every method.
    async fn stored_contents(
        &self,
        project: &str,
        owner: &str,
        files: &[SiteFile],
    ) -> Result<BTreeSet<[u8; 32]>, ProviderError>;

    /// Returns the deployment with this key. A deployment that was interrupted before it became visible does not exist;
    /// deploy it again to finish it.
    ///
    /// # Errors
    /// Only those of every method.
    async fn site_deployment(
        &self,
        project: &str,
        deployment_key: &str,
    ) -> Result<Option<SiteDeployment>, ProviderError>;

    /// Returns the bytes of all sites of an owner, and the bytes that a new site would add on a branch of one of its
    /// projects. The content that the branch shows now is not counted. A provider whose disks do not belong to the
    /// operator may report only the latter.
    ///
    /// # Errors
    /// Only those of every method.
    async fn site_storage(
        &self,
        project: &str,
        branch: &str,
        owner: &str,
        files: &[SiteFile],
    ) -> Result<SiteStorage, ProviderError>;

    /// Returns the number of bytes that a store holds, with what the provider needs to keep them. Returns `None` if the object
    /// does not exist, or if the provider cannot tell.
    ///
    /// # Errors
    /// Only those of every method.
    async fn stored_bytes(&self, resource: &ResourceRef) -> Result<Option<u64>, ProviderError> {
        let _ = resource;
        Ok(None)
    }

    /// Removes expired previews and files without a deployment. Returns the number of removed files. Called daily.
    ///
    /// # Errors
    /// Only those of every method.
    async fn clean_up(&self) -> Result<u64, ProviderError>;

    /// Returns some of the objects of a type that belong to an owner, in any order. `cursor` is the `next` of the
    /// previous result. The removal of a platform ends only when no objects are left, so a platform at a provider that
    /// cannot list objects cannot be removed.
    ///
    /// # Errors
    /// [`ProviderError::Permanent`] if the provider cannot list objects.
    async fn list_owned(
        &self,
        owner: &str,
        resource_type: ResourceType,
        cursor: Option<String>,
    ) -> Result<OwnedObjects, ProviderError>;

    /// Sets and deletes secrets of a worker or a pages project, either all or none. Workers get the new values when they
    /// start again. Secrets of a pages project may take effect with its next deployment.
    ///
    /// # Errors
    /// - [`ProviderError::Permanent`] if the object does not exist.
    /// - [`ProviderError::NameTaken`] if it belongs to another owner.
    async fn set_secrets(&self, request: &SetSecrets) -> Result<(), ProviderError>;

    /// Returns the sorted names of the secrets of a worker or a pages project; none if the object does not exist.
    ///
    /// # Errors
    /// Only those of every method.
    async fn secret_names(&self, resource: &ResourceRef) -> Result<Vec<String>, ProviderError>;

    /// Returns the route of a hostname in a zone of the operator; `None` if it has none.
    ///
    /// # Errors
    /// Only those of every method.
    async fn get_route(&self, hostname: &str) -> Result<Option<Route>, ProviderError>;

    /// Routes a hostname in a zone of the operator to an object: creates its DNS record and its route. Returns the
    /// existing route if the hostname already leads to the object.
    ///
    /// # Errors
    /// - [`ProviderError::NameTaken`] if the hostname leads to another object.
    /// - [`ProviderError::Permanent`] if the hostname is in no zone of the operator, or the object does not exist.
    async fn route_hostname(&self, request: &RouteHostname) -> Result<Route, ProviderError>;

    /// Removes the route of a hostname in a zone of the operator. Does nothing if it has no route.
    ///
    /// # Errors
    /// [`ProviderError::NameTaken`] if the hostname leads to another object. The route is kept.
    async fn remove_route(&self, hostname: &str, target: &ResourceRef)
    -> Result<(), ProviderError>;

    /// Returns the state of a customer's hostname that leads to an object. Returns `None` if the provider does not know
    /// the hostname or it belongs to another owner.
    ///
    /// # Errors
    /// Only those of every method.
    async fn get_served_hostname(
        &self,
        hostname: &str,
        owner: &str,
        target: &ResourceRef,
    ) -> Result<Option<ServedHostname>, ProviderError>;

    /// Requests that the provider serves a customer's hostname with an object, also if a previous request has failed.
    /// Does nothing if the object is already served there. A hostname that leads to another object of the owner leads
    /// to this one from then on.
    ///
    /// # Errors
    /// - [`ProviderError::NameTaken`] if the hostname belongs to another owner.
    /// - [`ProviderError::Permanent`] if the object does not exist or cannot serve requests.
    async fn serve_hostname(
        &self,
        request: &ServeHostname,
    ) -> Result<ServedHostname, ProviderError>;

    /// Stops serving a customer's hostname. Does nothing if it is not served.
    ///
    /// # Errors
    /// [`ProviderError::NameTaken`] if the hostname belongs to another owner. It is served as before.
    async fn stop_serving(
        &self,
        hostname: &str,
        owner: &str,
        target: &ResourceRef,
    ) -> Result<(), ProviderError>;

    /// Returns whether the provider itself refuses visitors of suspended platforms. Otherwise a job stops serving their
    /// hostnames during the suspension.
    fn refuses_suspended(&self) -> bool;

    /// Returns the logs of the provider's workers and sites. Default: `None`, the provider has no logs.
    fn logs(&self) -> Option<Arc<dyn ResourceLogs>> {
        None
    }
}

/// The error of a call of the provider. Tenants see the text as the error of a job or a deployment, so details that
/// they must not see belong in the [`Cause`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The provider failed without any effect. The call can be retried later.
    #[error("the provider failed temporarily")]
    Transient(#[source] Cause),
    /// A part of the request is done. The same call can be repeated at once and continues with the rest.
    #[error("the provider completed a part of the request")]
    Unfinished,
    /// The provider asks the caller to wait.
    #[error("the provider asks to wait {retry_after_seconds} s")]
    Throttled {
        /// The time to wait, in seconds.
        retry_after_seconds: u64,
    },
    /// The provider did not respond to the request, which may have had its effect. Observe the object before a retry.
    #[error("the provider did not answer")]
    OutcomeUnknown(#[source] Cause),
    /// The request can never succeed. The text gives the tenant the reason.
    #[error("the provider refused: {0}")]
    Permanent(String),
    /// The stored data of the provider is damaged. No request can succeed until an operator repairs it.
    #[error("the provider is out of order; its operator must repair it")]
    Damaged(#[source] Cause),
    /// The name belongs to an object of another owner.
    #[error("the name {0} is taken by something else")]
    NameTaken(String),
}

/// A request to route a hostname in a zone of the operator to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteHostname {
    /// The hostname in lower case and ASCII.
    pub hostname: String,
    /// The object that serves the hostname: a worker or a pages project.
    pub target: ResourceRef,
    /// The owner of the object and of the route.
    pub owner: String,
    /// The key of the request; the same for all attempts of a step.
    pub effect_key: String,
}

/// The route of a hostname in a zone of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The id of the route at the provider.
    pub id: String,
    /// The name of the object that serves the hostname.
    pub target: String,
}

/// A request to serve a hostname that belongs to a customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeHostname {
    /// The hostname in lower case and ASCII.
    pub hostname: String,
    /// The operator's hostname to which the customer's DNS record points.
    pub target_dns: String,
    /// The object that serves the hostname: a worker or a pages project.
    pub target: ResourceRef,
    /// The owner of the hostname and the object.
    pub owner: String,
    /// The key of the request; the same for all attempts of a step.
    pub effect_key: String,
}

/// The state of a customer's hostname at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostnameState {
    /// The provider waits for a proof of ownership or for the certificate. The text says which.
    Pending(String),
    /// The hostname is served with a certificate.
    Active,
    /// The hostname cannot be served. The text gives the tenant the reason.
    Failed(String),
}

/// A customer's hostname at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedHostname {
    /// The id of the hostname at the provider.
    pub id: String,
    /// The name of the object that serves the hostname; `None` if no object does yet.
    pub target: Option<String>,
    /// The state of the hostname.
    pub state: HostnameState,
    /// The status of the certificate.
    pub certificate: crate::registry::SslStatus,
}

/// Identifies an object at the provider.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResourceRef {
    /// The type of the object.
    pub resource_type: ResourceType,
    /// The name, which is derived from platform, environment and purpose; see [`crate::registry::is_provider_name`].
    pub name: String,
}

/// A request to create an object.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectRequest {
    /// The type and the name of the object.
    pub resource: ResourceRef,
    /// The owner of the object. The provider stores it with the object, so that objects of other owners can be
    /// recognized.
    pub owner: String,
    /// The key of the request; the same for all attempts of a step. The provider treats requests with the same key as
    /// one.
    pub effect_key: String,
    /// The settings of the object. `{}` for types other than these:
    ///
    /// - Worker: `{mainModule, modules: {path: text}, bindings: [{name, type, resource}], vars}`. `type` is a
    ///   [`ResourceType`], and `resource` is the name of an existing object of the same owner. `vars` contains texts by
    ///   name; absent if there are none.
    /// - Pages project: `bindings` and `vars` of the site. A provider that serves only static sites may ignore them.
    pub config: Value,
}

/// An object that exists at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderObject {
    /// The id of the object at the provider.
    pub id: String,
    /// The URL of the object; `None` if it has none.
    pub url: Option<String>,
    /// The owner given at creation. `None` if the provider does not store an owner for this type; the name then
    /// identifies the owner.
    pub owner: Option<String>,
}

impl ProviderObject {
    /// Returns whether an object with this name belongs to a platform: by its owner if it has one, otherwise by its
    /// name (see [`is_name_of_platform`]).
    #[must_use]
    pub fn belongs_to(&self, name: &str, platform: &PlatformId) -> bool {
        match &self.owner {
            Some(owner) => owner == platform.as_str(),
            None => is_name_of_platform(name, platform),
        }
    }
}

/// An object of an owner, with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedObject {
    /// The name of the object.
    pub name: String,
    /// The other data of the object.
    pub provisioned: ProviderObject,
}

/// Some of the objects of an owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedObjects {
    /// The objects. The list can be empty even if more objects follow.
    pub objects: Vec<OwnedObject>,
    /// The cursor for the next call; `None` after the last object.
    pub next: Option<String>,
}

/// A request to set secrets of an object.
#[derive(Clone, Debug)]
pub struct SetSecrets {
    /// The worker or pages project.
    pub resource: ResourceRef,
    /// The owner of the object.
    pub owner: String,
    /// The names and values of the secrets, at most 100. Secrets with other names are kept.
    pub secrets: Vec<(String, Secret)>,
    /// The names of the secrets to delete. Names without a secret are ignored.
    pub deleted: Vec<String>,
}

/// A request to deploy a site.
#[derive(Clone, Debug)]
pub struct SiteUpload {
    /// The name of the pages project.
    pub project: String,
    /// The branch. `production` is served at the address of the project, every other branch at an address of its own.
    pub branch: String,
    /// The key of the deployment. The provider treats requests with the same key as one deployment.
    pub deployment_key: String,
    /// The site. A provider does not have to read a file if it already has one with the same digest.
    pub site: Arc<dyn Site>,
}

/// A request to deploy the content of an earlier deployment again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteRedeploy {
    /// The name of the pages project.
    pub project: String,
    /// The branch of the new deployment.
    pub branch: String,
    /// The key of the new deployment.
    pub deployment_key: String,
    /// The key of the deployment that has the content.
    pub source_key: String,
    /// The branch of the deployment that has the content.
    pub source_branch: String,
    /// The id at the provider of the deployment that has the content; `None` if it is unknown.
    pub source_id: Option<String>,
}

/// The storage that sites use at a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteStorage {
    /// The bytes of all sites of the owner and their previews. Equal files count once. 0 if the provider does not
    /// report it.
    pub stored_bytes: u64,
    /// The bytes that the files of the new site would add.
    pub new_bytes: u64,
}

impl SiteStorage {
    /// Returns the storage at a provider that does not report it: only the size of the new site.
    #[must_use]
    pub fn of_new_site(files: &[SiteFile]) -> Self {
        Self {
            stored_bytes: 0,
            new_bytes: files.iter().map(|file| file.size).sum(),
        }
    }
}

/// The state of a deployment at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SiteState {
    /// The provider is processing the deployment.
    Deploying,
    /// The provider serves the deployment.
    Active,
    /// The deployment failed. The text gives the tenant the reason.
    Failed(String),
}

/// A deployment of a site at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteDeployment {
    /// The id of the deployment at the provider.
    pub id: String,
    /// The URL at which this deployment is served while it is live.
    pub url: String,
    /// The URL at which only this deployment is served, also after later ones; `None` if it has none.
    pub permalink: Option<String>,
    /// The state of the deployment.
    pub state: SiteState,
}
