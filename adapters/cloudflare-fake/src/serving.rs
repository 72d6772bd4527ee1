//! What a visitor of a hostname reaches.

use crate::state::State;
use crate::state::zone::Zone;

/// What a hostname leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visited {
    /// A worker, by its name.
    Worker(String),
    /// A Pages project, by its name.
    Project(String),
}

/// What answers a visitor of a hostname; `None` if nothing does. A custom hostname needs its certificate, and a domain of a
/// project to be active. Names of zones need a DNS record, which customers have elsewhere.
pub(crate) fn visit(state: &State, hostname: &str) -> Option<Visited> {
    let domain = state.worker_domains.iter();
    if let Some(domain) = domain.clone().find(|domain| domain.hostname == hostname) {
        return Some(Visited::Worker(domain.service.clone()));
    }
    if let Some(script) = state.zones.iter().find_map(|zone| routed(zone, hostname)) {
        return Some(Visited::Worker(script));
    }
    let zone = state.zones.iter().find(|zone| zone.contains(hostname));
    let has_record = zone.is_none_or(|zone| zone.records.iter().any(|own| own.name() == hostname));
    let is_served = |domain: &crate::state::pages_domain::Domain| {
        domain.name == hostname && domain.is_active() && has_record
    };
    let mut projects = state.projects.iter();
    let project = projects.find(|project| project.domains.iter().any(is_served));
    project.map(|project| Visited::Project(project.name.clone()))
}

/// The script of the route of a zone that matches.
fn routed(zone: &Zone, hostname: &str) -> Option<String> {
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
