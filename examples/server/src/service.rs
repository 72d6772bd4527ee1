//! The services that this server can run, and their ports.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use core_suite::SuiteService;

/// Returns the services that this server can run, in the order of their ports.
pub(crate) fn runnable() -> impl Iterator<Item = SuiteService> {
    let services = SuiteService::ALL.iter().copied();
    services.filter(|service| port_offset(*service).is_some())
}

/// Returns the distance of a service's port from the gateway's port; `None` for a service that this server does not
/// contain.
pub(crate) const fn port_offset(service: SuiteService) -> Option<u16> {
    match service {
        SuiteService::Gateway => Some(0),
        SuiteService::Iam => Some(1),
        SuiteService::Registry => Some(2),
        SuiteService::Provisioning => Some(3),
        SuiteService::Cli => Some(4),
        SuiteService::Billing => None,
        SuiteService::Stacks => Some(6),
    }
}

/// Parses the name of a service that this server can run.
pub(crate) fn parser() -> impl TypedValueParser<Value = SuiteService> {
    let names = PossibleValuesParser::new(runnable().map(SuiteService::as_str));
    names.try_map(|name| {
        let named = runnable().find(|service| service.as_str() == name);
        named.ok_or("unknown service")
    })
}

/// The distance of the local sites' port from the gateway's port.
pub(crate) const SITES_PORT_OFFSET: u16 = 10;
