//! Options that contradict each other.

use core_suite::SuiteService;

use super::options::Options;

/// Returns the options that contradict each other or have no effect, as sentences. The server works in spite of them.
pub(super) fn find(options: &Options, is_cloudflare: bool) -> Vec<String> {
    let has_key = options.auth_api_key.is_some();
    let is_open = options.allow_unauthenticated;
    let runs_gateway = options.services.contains(&SuiteService::Gateway);
    let has_database = options.database_url.is_some();
    // The URL of IAM is also the default of its public URL.
    let mut remote = options.remote_services();
    let has_forwarding_url = remote.any(|(service, _)| service != SuiteService::Iam);
    let has_collector = |url: &Option<String>| url.as_ref().is_some_and(|url| !url.is_empty());
    let exports_traces =
        has_collector(&options.otlp_endpoint) || has_collector(&options.otlp_traces_endpoint);
    let rules = [
        (
            options.otlp_headers.is_some() && !exports_traces,
            "otlp_headers: has no effect without a collector (otlp_endpoint)",
        ),
        (
            options.trace_ratio.is_some() && !exports_traces,
            "trace_ratio: has no effect without a collector (otlp_endpoint)",
        ),
        (
            is_open && has_key,
            "allow_unauthenticated: has no effect with a service key (auth_api_key)",
        ),
        (
            is_open && !has_key && options.bind.is_loopback(),
            "allow_unauthenticated: has no effect on a loopback address (bind)",
        ),
        (
            !options.public_routes.is_empty() && !runs_gateway,
            "public_routes: has no effect without the gateway (services)",
        ),
        (
            !runs_gateway && options.trusted_proxies.is_empty(),
            "trusted_proxies: without the address of the gateway, the listeners limit its connections as those of one client",
        ),
        (
            has_forwarding_url && !runs_gateway,
            "the URLs of services: have no effect without the gateway (services)",
        ),
        (
            options.is_gateway_only() && options.settings.limits.enforce_quotas && !has_database,
            "limits.enforce_quotas: a gateway without a database (database_url) does not refuse requests above a quota",
        ),
        (
            options.local_latency_ms > 0 && is_cloudflare,
            "local_latency_ms: has no effect with infrastructure at Cloudflare",
        ),
    ];
    let found = rules.into_iter().filter(|(is_found, _)| *is_found);
    found.map(|(_, sentence)| sentence.to_owned()).collect()
}
