//! Options that contradict each other.

use core_suite::SuiteService;

use super::options::Options;

/// Returns the options that contradict each other or have no effect, as sentences. The server works in spite of them.
pub(super) fn find(options: &Options, is_cloudflare: bool) -> Vec<String> {
    let has_key = options.auth_api_key.is_some() || options.auth_api_key_file.is_some();
    let routes = options.public_routes.as_deref().unwrap_or_default();
    let latency = options.local_latency_ms.unwrap_or_default();
    let is_open = options.allow_unauthenticated == Some(true);
    let is_local = options.bind.is_some_and(|bind| bind.is_loopback());
    let services = options.services.as_deref().unwrap_or_default();
    let rules = [
        (
            is_open && has_key,
            "allow_unauthenticated: has no effect with a service key (auth_api_key)",
        ),
        (
            is_open && !has_key && is_local,
            "allow_unauthenticated: has no effect on a loopback address (bind)",
        ),
        (
            !routes.is_empty() && !services.contains(&SuiteService::Gateway),
            "public_routes: has no effect without the gateway (services)",
        ),
        (
            latency > 0 && is_cloudflare,
            "local_latency_ms: has no effect with infrastructure at Cloudflare",
        ),
    ];
    let found = rules.into_iter().filter(|(is_found, _)| *is_found);
    found.map(|(_, sentence)| sentence.to_owned()).collect()
}
