//! Chooses the DNS resolver: the one set on the builder, name servers, or none.

use std::sync::Arc;

use core_domain::port::DnsResolver;
use core_http::gateway::ConfigError;

use crate::SuiteBuilder;

/// Returns the DNS resolver of the suite.
///
/// # Errors
/// [`ConfigError`] if a configured name server is invalid.
pub(crate) fn dns_resolver(builder: &SuiteBuilder) -> Result<Arc<dyn DnsResolver>, ConfigError> {
    let built_in = built_in(builder)?;
    Ok(builder.dns_resolver.clone().unwrap_or(built_in))
}

#[cfg(feature = "dns")]
fn built_in(builder: &SuiteBuilder) -> Result<Arc<dyn DnsResolver>, ConfigError> {
    let options = &builder.settings.dns;
    let dns = core_dns::HickoryDns::new(&options.nameservers, options.timeout);
    let dns = dns.map_err(|error| ConfigError {
        setting: "dns.nameservers",
        problem: error.to_string(),
    })?;
    Ok(Arc::new(dns))
}

#[cfg(not(feature = "dns"))]
#[expect(clippy::unnecessary_wraps, reason = "as with the feature")]
fn built_in(_: &SuiteBuilder) -> Result<Arc<dyn DnsResolver>, ConfigError> {
    Ok(Arc::new(crate::absent::MissingPart::DNS))
}
