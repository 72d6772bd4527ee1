//! The check of the name servers that find the records of custom domains.

#[cfg(feature = "dns")]
use std::time::{Duration, Instant};

use super::Finding;
use crate::SuiteBuilder;

impl SuiteBuilder {
    /// Asks each configured name server, or those of the operating system, for the root zone. Returns nothing if the
    /// host program has set a resolver.
    #[cfg(feature = "dns")]
    pub(super) async fn name_server_findings(&self) -> Vec<Finding> {
        if self.dns_resolver.is_some() {
            return Vec::new();
        }
        let options = &self.settings.dns;
        let time = options.timeout.min(super::CHECK_TIMEOUT);
        if options.nameservers.is_empty() {
            return vec![check_name_servers(None, time).await];
        }
        // Each one alone, so that one which works does not hide the others.
        let servers = options.nameservers.iter();
        let checks = servers.map(|server| check_name_servers(Some(server), time));
        futures_util::future::join_all(checks).await
    }

    /// Returns nothing: without the feature `dns` no records of domains are looked up.
    #[cfg(not(feature = "dns"))]
    #[expect(clippy::unused_async, reason = "with the feature it connects")]
    pub(super) async fn name_server_findings(&self) -> Vec<Finding> {
        Vec::new()
    }
}

/// Asks a name server, or those of the operating system, for the root zone.
#[cfg(feature = "dns")]
async fn check_name_servers(server: Option<&String>, time: Duration) -> Finding {
    let servers = server.map(std::slice::from_ref).unwrap_or_default();
    let dns = match core_dns::HickoryDns::new(servers, time) {
        Ok(dns) => dns,
        Err(error) => return Finding::failure("name servers", error.to_string()),
    };
    let began = Instant::now();
    let outcome = dns.finds_root().await;
    let outcome = outcome.map_err(|error| core_domain::port::Cause::new(error).to_string());
    name_server_finding(server, &outcome, began.elapsed())
}

/// Returns the finding for the outcome of a query for the root zone: `true` if it was found. `server` is `None` for the
/// name servers of the operating system.
#[cfg(feature = "dns")]
fn name_server_finding(
    server: Option<&String>,
    outcome: &Result<bool, String>,
    took: Duration,
) -> Finding {
    let subject = "name servers";
    let name = server.map_or("the operating system's", String::as_str);
    match (outcome, server) {
        (Ok(true), _) => Finding::fine(subject, format!("{name}: resolve names ({took:.0?})")),
        (Ok(false), _) => {
            let text = format!(
                "{name}: the response has no root servers; custom domains need a recursive name server \
                 (dns.nameservers)"
            );
            Finding::warning(subject, text)
        }
        (Err(problem), Some(_)) => {
            let text = format!(
                "{name}: {problem}; custom domains cannot be verified: check the address (dns.nameservers) and the \
                 firewall (port 53, UDP and TCP)"
            );
            Finding::failure(subject, text)
        }
        // Many installations have no custom domains, and no access to public names.
        (Err(problem), None) => {
            let text = format!(
                "{name}: {problem}; custom domains cannot be verified: check /etc/resolv.conf, or set dns.nameservers"
            );
            Finding::warning(subject, text)
        }
    }
}

#[cfg(all(test, feature = "dns"))]
mod tests {
    use core_dns::testing::LoopbackDns;

    use super::*;
    use crate::doctor::Severity;

    async fn findings(servers: &[&LoopbackDns]) -> Vec<Finding> {
        let servers = servers.iter().map(|server| server.address().to_string());
        let builder = SuiteBuilder::default().settings(|settings| {
            settings.dns.nameservers = servers.collect();
            settings.dns.timeout = Duration::from_millis(500);
        });
        builder.name_server_findings().await
    }

    #[tokio::test]
    async fn each_configured_name_server_is_asked_alone() {
        let [recursive, other, broken, silent] = [
            LoopbackDns::start().await.unwrap(),
            LoopbackDns::start().await.unwrap(),
            LoopbackDns::start().await.unwrap(),
            LoopbackDns::start().await.unwrap(),
        ];
        recursive.add_root_server("a.root-servers.test");
        broken.fail("");
        silent.ignore("");
        let found = findings(&[&recursive, &other, &broken, &silent]).await;
        let severities: Vec<_> = found.iter().map(|one| one.severity).collect();
        let expected = [
            Severity::Fine,
            Severity::Warning,
            Severity::Failure,
            Severity::Failure,
        ];
        assert_eq!(severities, expected, "{found:?}");
        for (server, one) in [recursive, other, broken, silent].iter().zip(&found) {
            assert!(one.text.contains(&server.address().to_string()), "{one}");
        }
        assert!(found[1].text.contains("recursive"), "{}", found[1]);
        assert!(found[3].text.contains("firewall"), "{}", found[3]);
    }

    #[test]
    fn the_name_servers_of_the_system_are_at_most_a_warning() {
        let problem = Err("no response".to_owned());
        let found = name_server_finding(None, &problem, Duration::ZERO);
        assert_eq!(found.severity, Severity::Warning, "{found}");
        assert!(found.text.contains("/etc/resolv.conf"), "{found}");
        let found = name_server_finding(None, &Ok(true), Duration::ZERO);
        assert_eq!(found.severity, Severity::Fine, "{found}");
    }

    #[tokio::test]
    async fn an_invalid_address_is_a_failure() {
        let builder = SuiteBuilder::default()
            .settings(|settings| settings.dns.nameservers = vec!["ns.example.org".to_owned()]);
        let found = builder.name_server_findings().await;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Failure, "{}", found[0]);
    }
}
