//! The services of this server, and their ports.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use core_suite::SuiteService;

/// Returns the distance of a service's port from the gateway's port.
pub(crate) const fn port_offset(service: SuiteService) -> u16 {
    match service {
        SuiteService::Gateway => 0,
        SuiteService::Iam => 1,
        SuiteService::Registry => 2,
        SuiteService::Provisioning => 3,
        SuiteService::Cli => 4,
        SuiteService::Billing => 5,
        SuiteService::Stacks => 6,
    }
}

/// Parses the name of a service.
pub(crate) fn parser() -> impl TypedValueParser<Value = SuiteService> {
    let services = SuiteService::ALL.iter();
    let names = PossibleValuesParser::new(services.map(|service| service.as_str()));
    names.try_map(|name| {
        let mut services = SuiteService::ALL.iter().copied();
        let named = services.find(|service| service.as_str() == name);
        named.ok_or("unknown service")
    })
}

/// The distance of the metrics' port from the gateway's port.
pub(crate) const METRICS_PORT_OFFSET: u16 = 9;

/// The distance of the local sites' port from the gateway's port.
pub(crate) const SITES_PORT_OFFSET: u16 = 10;
