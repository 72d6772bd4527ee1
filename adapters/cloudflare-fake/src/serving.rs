//! The targets that visitors of a hostname reach.

use crate::state::State;
use crate::state::zone::Zone;

/// The target of a hostname.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostnameTarget {
    /// The name of a worker.
    Worker(String),
    /// The name of a Pages project.
    Project(String),
}

/// Returns the target that serves a hostname; `None` if there is none. A custom hostname needs an active certificate,
/// and a domain of a project must be active. A name in a zone needs a DNS record; customers' DNS is outside the
/// account.
pub(crate) fn visit(state: &State, hostname: &str) -> Option<HostnameTarget> {
    let domain = state.worker_domains.iter();
    if let Some(domain) = domain.clone().find(|domain| domain.hostname == hostname) {
        return Some(HostnameTarget::Worker(domain.service.clone()));
    }
    if let Some(script) = state
        .zones
        .iter()
        .find_map(|zone| find_route_script(zone, hostname))
    {
        return Some(HostnameTarget::Worker(script));
    }
    let zone = state.zones.iter().find(|zone| zone.contains(hostname));
    let has_record = zone.is_none_or(|zone| zone.records.iter().any(|own| own.name() == hostname));
    let is_served = |domain: &crate::state::pages_domain::Domain| {
        domain.name == hostname && domain.is_active() && has_record
    };
    let mut projects = state.projects.iter();
    let project = projects.find(|project| project.domains.iter().any(is_served));
    project.map(|project| HostnameTarget::Project(project.name.clone()))
}

/// Finds the script of the matching route of a zone.
fn find_route_script(zone: &Zone, hostname: &str) -> Option<String> {
    let mut customers = zone.hostnames.iter();
    let is_custom =
        customers.any(|own| own.hostname == hostname && own.states() == ("active", "active"));
    let wildcard = hostname
        .split_once('.')
        .map(|(_, rest)| format!("*.{rest}"));
    let names = [Some(hostname.to_owned()), wildcard];
    let mut names = names.into_iter().flatten();
    names.find_map(|name| {
        let has_record = zone.records.iter().any(|record| record.name() == name);
        if !is_custom && !has_record {
            return None;
        }
        let pattern = format!("{name}/*");
        let mut routes = zone.routes.iter();
        let route = routes.find(|route| route.pattern == pattern)?;
        route.script.clone()
    })
}
