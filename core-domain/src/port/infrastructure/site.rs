//! Deployments of sites.

use std::sync::Arc;

use crate::port::Site;

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
