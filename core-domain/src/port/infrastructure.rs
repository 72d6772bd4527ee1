//! The infrastructure port: what really exists at the provider.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::{Cause, Site};
use crate::registry::ResourceType;

/// What a provider call can answer besides success. Tenants see the text of it, as a job's error and a deployment's: what
/// they must not see belongs into the [`Cause`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// Nothing happened, and it may work later.
    #[error("the provider failed for now")]
    Transient(#[source] Cause),
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
    /// Provider settings: for a worker `{mainModule, modules: {path: text}, bindings: [{name, type, resource}]}`, where
    /// `type` is a [`ResourceType`] and `resource` the name of an object of the same owner that exists; `{}` otherwise.
    pub config: Value,
}

/// An object that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provisioned {
    /// The provider's id.
    pub id: String,
    /// Where it can be reached, if anywhere.
    pub url: Option<String>,
    /// Who it belongs to, as given at creation.
    pub owner: String,
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
}
