//! Hostnames that lead to objects at the provider.

use super::ResourceRef;

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
