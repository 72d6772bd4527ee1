//! The addresses of the sites and workers of the local provider. They are checked against the URL of IAM.

use core_domain::registry::Hostname;
use core_http::gateway::ConfigError;
use core_local::SiteAddress;
use http::Uri;
use serde::{Deserialize, Serialize};

/// The addresses of the sites and workers of the local provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteOptions {
    /// The domain of the sites and workers: `http://NAME.DOMAIN:PORT/`. Choose a domain that shares no registrable
    /// domain with IAM. Default: `localhost`, whose subdomains browsers resolve to this machine.
    pub domain: String,
    /// The base URL at which sites and workers are also served by path, as `{by_path}/NAME/`:
    /// `http://sites.example.net`. All of them then share one origin. Its host must not be IAM's host. Default: none,
    /// nothing is served by path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_path: Option<String>,
}

impl Default for SiteOptions {
    fn default() -> Self {
        Self {
            domain: "localhost".to_owned(),
            by_path: None,
        }
    }
}

impl SiteOptions {
    /// Checks that sites can be served at these addresses next to IAM at its own.
    ///
    /// # Errors
    /// [`ConfigError`] names the invalid setting.
    pub(crate) fn check(&self, iam_url: &str) -> Result<(), ConfigError> {
        let is_hostname = || {
            let host = Hostname::parse(&self.domain);
            host.is_ok_and(|host| host.as_str() == self.domain && !self.domain.starts_with('*'))
        };
        if self.domain != "localhost" && !is_hostname() {
            return Err(config_error(
                "sites.domain",
                "must be a domain in lower case, such as sites.example.net",
            ));
        }
        let Some(base) = &self.by_path else {
            return Ok(());
        };
        let Some(host) = host_of(base).filter(|_| is_base(base)) else {
            return Err(config_error(
                "sites.by_path",
                "must be http:// or https:// with a host, and nothing after it",
            ));
        };
        if host_of(iam_url).is_some_and(|iam| is_same_host(&iam, &host)) {
            return Err(config_error(
                "sites.by_path",
                "has the host of IAM: pages of sites could use its cookies. Name another host",
            ));
        }
        Ok(())
    }

    /// Returns the addresses with the port of the listener.
    pub(crate) fn address(&self, port: u16) -> SiteAddress {
        SiteAddress {
            domain: self.domain.clone(),
            port,
            by_path: self.by_path.clone(),
        }
    }

    /// Returns each setting with an address whose pages can set cookies for IAM, and the problem.
    pub(crate) fn shared_with(&self, iam_url: &str) -> Vec<(&'static str, String)> {
        let Some(iam) = host_of(iam_url) else {
            return Vec::new();
        };
        let by_path = self.by_path.as_deref().and_then(host_of);
        let hosts = [
            ("sites.domain", Some(format!("site.{}", self.domain))),
            ("sites.by_path", by_path),
        ];
        let warning = |(setting, host): (&'static str, Option<String>)| {
            let shared = shared_domain(&iam, &host?)?.to_owned();
            let problem = format!(
                "sites are served below {shared}, the registrable domain of IAM: their pages can set cookies for IAM. \
                 Serve them below another domain"
            );
            Some((setting, problem))
        };
        hosts.into_iter().filter_map(warning).collect()
    }
}

fn config_error(setting: &'static str, problem: &str) -> ConfigError {
    ConfigError {
        setting,
        problem: problem.to_owned(),
    }
}

/// Returns the host of a URL in lower case.
fn host_of(url: &str) -> Option<String> {
    let url: Uri = url.parse().ok()?;
    let host = url.host()?;
    let host = host.strip_suffix('.').unwrap_or(host);
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

/// Returns whether a URL consists of a scheme and an authority only.
fn is_base(url: &str) -> bool {
    let authority = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    authority.is_some_and(|authority| !authority.contains(['/', '?', '#', '@']))
}

/// Returns whether pages of one host can use the cookies of the other. All addresses of this machine count as one host.
fn is_same_host(one: &str, other: &str) -> bool {
    one == other || is_this_machine(one) && is_this_machine(other)
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let address: Option<std::net::IpAddr> = address.parse().ok();
    host == "localhost"
        || address.is_some_and(|address| address.is_loopback() || address.is_unspecified())
}

/// The registrable domain that two hosts share, by the public suffix list; `None` if they share none. Pages of hosts
/// that share one can set cookies for each other.
pub(crate) fn shared_domain<'a>(one: &'a str, other: &str) -> Option<&'a str> {
    let is_number = |host: &str| {
        let address = host.trim_start_matches('[').trim_end_matches(']');
        address.parse::<std::net::IpAddr>().is_ok()
    };
    if is_number(one) || is_number(other) {
        return None;
    }
    let domain = psl::domain_str(one)?;
    (psl::domain_str(other) == Some(domain)).then_some(domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(domain: &str, by_path: Option<&str>) -> SiteOptions {
        SiteOptions {
            domain: domain.to_owned(),
            by_path: by_path.map(str::to_owned),
        }
    }

    #[test]
    fn sites_below_the_registrable_domain_of_iam_cause_a_warning() {
        let warned = |domain, by_path, iam| {
            let shared = options(domain, by_path).shared_with(iam).into_iter();
            shared.map(|(setting, _)| setting).collect::<Vec<_>>()
        };
        let iam = "https://IAM.example.org";
        for shared in ["example.org", "sites.example.org", "iam.example.org"] {
            assert_eq!(warned(shared, None, iam), ["sites.domain"], "{shared}");
        }
        for apart in ["localhost", "example.net", "sites.example.net"] {
            assert_eq!(warned(apart, None, iam), [""; 0], "{apart}");
        }
        let by_path = Some("https://sites.example.org");
        assert_eq!(warned("localhost", by_path, iam), ["sites.by_path"]);
        // Each customer of a public suffix has its own registrable domain.
        let iam = "https://iam.co.uk";
        assert_eq!(warned("example.co.uk", None, iam), [""; 0]);
        let iam = "https://iam.pages.dev";
        assert_eq!(warned("pages.dev", None, iam), [""; 0]);
        assert_eq!(warned("iam.pages.dev", None, iam), ["sites.domain"]);
        for this_machine in [
            "http://localhost:8081",
            "http://127.0.0.1:8081",
            "http://[::1]:8081",
        ] {
            assert_eq!(warned("localhost", None, this_machine), [""; 0]);
        }
    }

    #[test]
    fn sites_are_never_served_by_path_on_the_host_of_iam() {
        let check = |by_path, iam| options("localhost", Some(by_path)).check(iam);
        for (by_path, iam) in [
            ("http://iam.example.org:8090", "https://iam.example.org"),
            ("http://IAM.example.org.", "https://iam.example.org"),
            ("http://127.0.0.1:8090", "http://127.0.0.1:8081"),
            ("http://localhost:8090", "http://127.0.0.1:8081"),
            ("http://[::1]:8090", "http://localhost:8081"),
        ] {
            let refused = check(by_path, iam).unwrap_err();
            assert_eq!(refused.setting, "sites.by_path", "{by_path}");
            assert!(refused.problem.contains("the host of IAM"));
        }
        check("http://sites.example.net", "https://iam.example.org").unwrap();
    }

    #[test]
    fn invalid_site_addresses_are_refused() {
        let iam = "https://iam.example.org";
        for by_path in [
            "",
            "sites.example.net",
            "ftp://sites.example.net",
            "http://",
            "http://sites.example.net/",
            "http://sites.example.net/a?b",
        ] {
            let refused = options("localhost", Some(by_path)).check(iam).unwrap_err();
            assert_eq!(refused.setting, "sites.by_path", "{by_path}");
        }
        for domain in ["", ".", "Sites.example.net", "a/b", "-.net"] {
            let refused = options(domain, None).check(iam).unwrap_err();
            assert_eq!(refused.setting, "sites.domain", "{domain}");
        }
    }
}
