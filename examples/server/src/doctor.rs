//! The command that checks the surroundings of a server.

use core_suite::doctor::{Finding, Severity, check_service};
use tokio::net::lookup_host;

use crate::config::{Config, Database};
use crate::run::builder;

/// Prints a finding for each subject. Returns whether nothing prevents the server from working.
///
/// # Errors
/// The runtime cannot be created.
#[expect(
    clippy::print_stdout,
    reason = "the findings are the output of this command"
)]
pub(crate) fn run(config: &Config) -> std::io::Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let findings = runtime.block_on(async {
        let mut findings = builder(config).diagnose().await;
        findings.extend(key_findings(config));
        findings.extend(address_findings(config).await);
        findings.extend(remote_findings(config).await);
        findings.extend(proxy_finding(config));
        findings
    });
    for finding in &findings {
        println!("{finding}");
    }
    let worst = findings.iter().map(|finding| finding.severity).max();
    Ok(worst < Some(Severity::Failure))
}

/// Checks the keys that every node must share.
fn key_findings(config: &Config) -> Vec<Finding> {
    let subject = "keys";
    let mut found = Vec::new();
    if config.options.auth_api_key.is_none() {
        let text =
            "there is no service key: every request passes unauthenticated; set AUTH_API_KEY";
        found.push(Finding::warning(subject, text));
    }
    let is_shared = matches!(config.database, Database::Postgres { .. });
    if is_shared && config.secret.is_none() {
        let text =
            "the secret is a file in the data folder; set the same CORE_SECRET on every node";
        found.push(Finding::warning(subject, text));
    }
    if config.master_key.is_none() {
        let text = "stored secrets are encrypted with a key derived from the secret; set CORE_MASTER_KEY \
                    so that a backup without it is unreadable";
        found.push(Finding::warning(subject, text));
    }
    if found.is_empty() {
        found.push(Finding::fine(
            subject,
            "service key, secret and master key are set",
        ));
    }
    found
}

/// Checks that the public URLs are encrypted and that their hosts resolve.
async fn address_findings(config: &Config) -> Vec<Finding> {
    let options = &config.options;
    let urls = [
        ("iam_public_url", &options.iam_public_url),
        ("gateway_public_url", &options.gateway_public_url),
        ("billing_public_url", &options.billing_public_url),
    ];
    let mut found = Vec::new();
    for (option, url) in urls {
        let Some(url) = url else { continue };
        found.push(address_finding(option, url).await);
    }
    found
}

async fn address_finding(option: &str, url: &str) -> Finding {
    let subject = "addresses";
    let Some((address, is_encrypted)) = host_and_port(url) else {
        return Finding::failure(subject, format!("{option}: {url} is not a URL"));
    };
    let is_local = match lookup_host(&address).await.map(Iterator::collect::<Vec<_>>) {
        Ok(found) if found.is_empty() => {
            return Finding::failure(
                subject,
                format!("{option}: {address} has no address in DNS"),
            );
        }
        Ok(found) => found.iter().all(|address| address.ip().is_loopback()),
        Err(error) => {
            let text = format!("{option}: {address} does not resolve: {error}; check DNS");
            return Finding::failure(subject, text);
        }
    };
    if is_encrypted || is_local {
        return Finding::fine(subject, format!("{option}: {url} resolves"));
    }
    let text =
        format!("{option}: {url} is not encrypted; use https, so that cookies are protected");
    Finding::warning(subject, text)
}

/// Checks that the services in other processes are ready.
async fn remote_findings(config: &Config) -> Vec<Finding> {
    let mut found = Vec::new();
    for (service, url) in config.options.remote_services() {
        found.push(check_service(service.as_str(), url).await);
    }
    found
}

fn proxy_finding(config: &Config) -> Option<Finding> {
    let options = &config.options;
    let is_public = !options.bind.is_loopback();
    let text = "no proxy is trusted; if there is one in front of this server, all its clients share one rate limit: \
                set --trusted-proxies";
    (is_public && options.trusted_proxies.is_empty()).then(|| Finding::warning("proxies", text))
}

/// Returns `host:port` of a URL, and whether its scheme is https.
fn host_and_port(url: &str) -> Option<(String, bool)> {
    let uri: http::Uri = url.parse().ok()?;
    let is_encrypted = uri.scheme_str() == Some("https");
    let port = uri
        .port_u16()
        .unwrap_or(if is_encrypted { 443 } else { 80 });
    Some((format!("{}:{port}", uri.host()?), is_encrypted))
}
