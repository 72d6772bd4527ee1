//! The infrastructure port: what really exists at the provider.

mod error;
mod hostname;
mod resource;
mod secrets;
mod site;

use async_trait::async_trait;

pub use error::ProviderError;
pub use hostname::{HostnameState, Route, RouteHostname, ServeHostname, ServedHostname};
pub use resource::{CreateResource, OwnedObject, OwnedObjects, Provisioned, ResourceRef};
pub use secrets::SetSecrets;
pub use site::{SiteDeployment, SiteState, SiteStorage, SiteUpload};

use crate::cli::SiteFile;
use crate::registry::ResourceType;

/// Makes, finds and removes real infrastructure. Every call may be repeated.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait Infrastructure: Send + Sync + std::fmt::Debug {
    /// Looks for the object by its name.
    ///
    /// # Errors
    /// [`ProviderError`] when the provider could not be asked.
    async fn observe(&self, resource: &ResourceRef) -> Result<Option<Provisioned>, ProviderError>;

    /// Makes the object. When it exists and has the same owner, answers what exists; a worker takes the new script.
    ///
    /// # Errors
    /// [`ProviderError::NameTaken`] when it exists and belongs to another owner; [`ProviderError::Permanent`] when a
    /// worker is bound to something that does not exist.
    async fn create(&self, request: &CreateResource) -> Result<Provisioned, ProviderError>;

    /// Removes the object with all it holds; fine when it does not exist.
    ///
    /// # Errors
    /// [`ProviderError::NameTaken`] when it belongs to another owner: nothing is removed.
    async fn remove(&self, resource: &ResourceRef, owner: &str) -> Result<(), ProviderError>;

    /// Deploys a site. The files become visible all at once or not at all. Asking again for a deployment that a later
    /// one has replaced does not bring it back.
    ///
    /// # Errors
    /// [`ProviderError::Permanent`] when the project does not exist.
    async fn deploy_site(&self, upload: SiteUpload) -> Result<SiteDeployment, ProviderError>;

    /// Looks for a deployment by our id of it. One that was interrupted before it was visible does not exist: asking for
    /// it again finishes it.
    ///
    /// # Errors
    /// [`ProviderError`] when the provider could not be asked.
    async fn site_deployment(
        &self,
        project: &str,
        deployment_key: &str,
    ) -> Result<Option<SiteDeployment>, ProviderError>;

    /// Measures the bytes that the sites of an owner take, and the bytes that a new site would add on a branch of one of its
    /// projects. What the branch shows now does not count. A provider whose disks are not the operator's may report the
    /// latter alone.
    ///
    /// # Errors
    /// [`ProviderError`] when the provider could not be asked.
    async fn site_storage(
        &self,
        _project: &str,
        _branch: &str,
        _owner: &str,
        files: &[SiteFile],
    ) -> Result<SiteStorage, ProviderError> {
        Ok(SiteStorage {
            stored_bytes: 0,
            new_bytes: files.iter().map(|file| file.size).sum(),
        })
    }

    /// Removes expired previews, and files that no deployment names. Returns the number of removed files. Called daily.
    ///
    /// # Errors
    /// [`ProviderError`] when the provider could not be asked.
    async fn clean_up(&self) -> Result<u64, ProviderError> {
        Ok(0)
    }

    /// Some of the objects of a type that belong to an owner, in any order; `cursor` is what the answer before said. The removal
    /// of a platform ends only when this names nothing more, so a provider that cannot list cannot be deprovisioned.
    ///
    /// # Errors
    /// [`ProviderError`] when the provider could not be asked; [`ProviderError::Permanent`] when it cannot list.
    async fn owned(
        &self,
        _owner: &str,
        _resource_type: ResourceType,
        _cursor: Option<String>,
    ) -> Result<OwnedObjects, ProviderError> {
        Err(unsupported("list what exists"))
    }

    /// Sets secrets of a worker or a pages project: all or none. Those of a pages project may take effect with its next
    /// deployment.
    ///
    /// # Errors
    /// [`ProviderError::Permanent`] when the object does not exist; [`ProviderError::NameTaken`] when it belongs to another
    /// owner.
    async fn set_secrets(&self, _request: &SetSecrets) -> Result<(), ProviderError> {
        Err(unsupported("keep secrets"))
    }

    /// The names of the secrets of a worker or a pages project, in their order; none when it does not exist.
    ///
    /// # Errors
    /// [`ProviderError`] when the provider could not be asked.
    async fn secret_names(&self, _resource: &ResourceRef) -> Result<Vec<String>, ProviderError> {
        Err(unsupported("keep secrets"))
    }

    /// Looks where a hostname of ours leads.
    ///
    /// # Errors
    /// [`ProviderError`] when the provider could not be asked.
    async fn route(&self, _hostname: &str) -> Result<Option<Route>, ProviderError> {
        Err(unsupported("route hostnames"))
    }

    /// Lets a hostname of ours lead to an object: its DNS record and its route. Fine when it does already.
    ///
    /// # Errors
    /// [`ProviderError::NameTaken`] when it leads somewhere else; [`ProviderError::Permanent`] when the name is in no zone
    /// of ours, or the object does not exist.
    async fn route_hostname(&self, _request: &RouteHostname) -> Result<Route, ProviderError> {
        Err(unsupported("route hostnames"))
    }

    /// Takes a hostname of ours away from the object it leads to; fine when it leads nowhere.
    ///
    /// # Errors
    /// [`ProviderError::NameTaken`] when it leads to another object: it stays.
    async fn remove_route(
        &self,
        _hostname: &str,
        _target: &ResourceRef,
    ) -> Result<(), ProviderError> {
        Err(unsupported("route hostnames"))
    }

    /// Looks how far the provider is with a customer's hostname that leads to an object; `None` when it does not know it, or
    /// it belongs to another owner.
    ///
    /// # Errors
    /// [`ProviderError`] when the provider could not be asked.
    async fn served_hostname(
        &self,
        _hostname: &str,
        _owner: &str,
        _target: &ResourceRef,
    ) -> Result<Option<ServedHostname>, ProviderError> {
        Err(unsupported("serve customers' hostnames"))
    }

    /// Asks the provider to serve a customer's hostname with what an object answers, or again when it had given up. Fine
    /// when it does already; one that leads to another object of the owner leads to this one from then on.
    ///
    /// # Errors
    /// [`ProviderError::NameTaken`] when it belongs to another owner; [`ProviderError::Permanent`] when the object does not
    /// exist or answers no requests.
    async fn serve_hostname(
        &self,
        _request: &ServeHostname,
    ) -> Result<ServedHostname, ProviderError> {
        Err(unsupported("serve customers' hostnames"))
    }

    /// The customer's hostname that leads to an object is not served any more; fine when it is not.
    ///
    /// # Errors
    /// [`ProviderError::NameTaken`] when it belongs to another owner: it stays.
    async fn stop_serving(
        &self,
        _hostname: &str,
        _owner: &str,
        _target: &ResourceRef,
    ) -> Result<(), ProviderError> {
        Err(unsupported("serve customers' hostnames"))
    }

    /// Tells whether the provider itself refuses visitors of suspended platforms. Otherwise a job has their hostnames not
    /// served for as long as they are suspended.
    fn refuses_suspended(&self) -> bool {
        false
    }
}

/// What a provider answers that cannot do something.
fn unsupported(what: &str) -> ProviderError {
    ProviderError::Permanent(format!("it cannot {what}"))
}
