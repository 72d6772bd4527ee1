//! The infrastructure port: what really exists at the provider.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::{Cause, Site};
use crate::cli::SiteFile;
use crate::kernel::{PlatformId, Secret};
use crate::registry::{ResourceType, bears_platform};

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

/// What a provider call can answer besides success. Tenants see the text of it, as a job's error and a deployment's: what
/// they must not see belongs into the [`Cause`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// Nothing happened, and it may work later.
    #[error("the provider failed for now")]
    Transient(#[source] Cause),
    /// A part is done. The same call can be sent again at once and continues with the rest.
    #[error("the provider completed a part of the request")]
    Unfinished,
    /// The provider asks to wait.
    #[error("the provider asks to wait {retry_after_seconds} s")]
    Throttled {
        /// How long.
        retry_after_seconds: u64,
    },
    /// No answer after the request was sent: it may or may not have happened. Look before trying again.
    #[error("the provider did not answer")]
    OutcomeUnknown(#[source] Cause),
    /// It will never work like this; the text says why, to the tenant.
    #[error("the provider refused: {0}")]
    Permanent(String),
    /// What the provider holds is damaged: nothing works before an operator has mended it.
    #[error("the provider is out of order; its operator has to mend it")]
    Damaged(#[source] Cause),
    /// The name belongs to something that is not ours.
    #[error("the name {0} is taken by something else")]
    NameTaken(String),
}

/// Asks that a hostname leads to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteHostname {
    /// The name, in lower case and ASCII.
    pub hostname: String,
    /// What it leads to: a worker or a pages project.
    pub target: ResourceRef,
    /// Who the object and the route belong to.
    pub owner: String,
    /// The same for every attempt of the same step.
    pub effect_key: String,
}

/// A hostname that leads somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The provider's id of the route.
    pub id: String,
    /// The name of what it leads to.
    pub target: String,
}

/// Asks the provider to serve a hostname that is a customer's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeHostname {
    /// The name, in lower case and ASCII.
    pub hostname: String,
    /// The name of ours it leads to in the DNS.
    pub target_dns: String,
    /// What it leads to: a worker or a pages project.
    pub target: ResourceRef,
    /// Who it belongs to.
    pub owner: String,
    /// The same for every attempt of the same step.
    pub effect_key: String,
}

/// How far the provider is with a customer's hostname.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostnameState {
    /// The provider waits for a proof of whose name it is, or for its certificate; the text says for what.
    Pending(String),
    /// It is served, with a certificate.
    Active,
    /// It will not be served; says why, to the tenant.
    Failed(String),
}

/// A customer's hostname at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedHostname {
    /// The provider's id.
    pub id: String,
    /// The name of what it leads to; `None` if it leads nowhere yet.
    pub target: Option<String>,
    /// How far it is.
    pub state: HostnameState,
    /// Where its certificate stands.
    pub certificate: crate::registry::SslStatus,
}

/// Names one object at the provider.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResourceRef {
    /// What kind of object.
    pub resource_type: ResourceType,
    /// Its deterministic name, derived from platform, environment and purpose; see [`crate::registry::is_provider_name`].
    pub name: String,
}

/// Asks for an object.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateResource {
    /// Kind and name.
    pub resource: ResourceRef,
    /// Who it belongs to; kept with the object, so that a later look can tell ours from foreign.
    pub owner: String,
    /// The same for every attempt of the same step: a second request with it is the same request.
    pub effect_key: String,
    /// Provider settings: for a worker `{mainModule, modules: {path: text}, bindings: [{name, type, resource}], vars}`, where
    /// `type` is a [`ResourceType`] and `resource` the name of an object of the same owner that exists, and `vars` are texts
    /// by name, left out when there are none; for a pages project `bindings` and `vars` of what is served with it, which a
    /// provider of plain sites may leave aside; `{}` otherwise.
    pub config: Value,
}

/// An object that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provisioned {
    /// The provider's id.
    pub id: String,
    /// Where it can be reached, if anywhere.
    pub url: Option<String>,
    /// Who it belongs to, as given at creation; `None` when the provider keeps no such mark with objects of this type, and
    /// its name tells.
    pub owner: Option<String>,
}

impl Provisioned {
    /// Tells whether an object of this name belongs to a platform: by its mark, else by its name (see
    /// [`bears_platform`]).
    #[must_use]
    pub fn belongs_to(&self, name: &str, platform: &PlatformId) -> bool {
        match &self.owner {
            Some(owner) => owner == platform.as_str(),
            None => bears_platform(name, platform),
        }
    }
}

/// An object that exists, with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedObject {
    /// Its name.
    pub name: String,
    /// What else is known.
    pub provisioned: Provisioned,
}

/// Some of the objects of an owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedObjects {
    /// The objects; may be none though there are more.
    pub objects: Vec<OwnedObject>,
    /// Where to go on; `None` when these were the last.
    pub next: Option<String>,
}

/// Asks for secrets to be set.
#[derive(Clone, Debug)]
pub struct SetSecrets {
    /// The worker, or the pages project.
    pub resource: ResourceRef,
    /// Who it belongs to.
    pub owner: String,
    /// Names and values, at most 100; those of other names stay as they are.
    pub secrets: Vec<(String, Secret)>,
}

/// Asks for a deployment of a site.
#[derive(Clone, Debug)]
pub struct SiteUpload {
    /// Name of the pages project.
    pub project: String,
    /// Branch: `production` goes live on the project's address, another one on an address of its own.
    pub branch: String,
    /// Our id of the deployment: a second request with it is the same deployment.
    pub deployment_key: String,
    /// The site. Providers that have a file with the same digest already need not read it.
    pub site: Arc<dyn Site>,
}

/// The storage that sites take at a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteStorage {
    /// Bytes of all sites of the owner and their previews. Equal files count once. 0 if the provider does not report it.
    pub stored_bytes: u64,
    /// Bytes that the files of the new site would add.
    pub new_bytes: u64,
}

/// Where a deployment stands at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SiteState {
    /// Being worked on.
    Deploying,
    /// Serving.
    Active,
    /// Did not work; says why, to the tenant.
    Failed(String),
}

/// A deployment at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteDeployment {
    /// The provider's id.
    pub id: String,
    /// Where this deployment is served.
    pub url: String,
    /// Where it stands.
    pub state: SiteState,
}
