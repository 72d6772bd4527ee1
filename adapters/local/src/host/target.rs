//! What a request asks for: a worker, or a site and a path inside it.

use core_domain::port::ResourceRef;
use core_domain::registry::ResourceType;
use percent_encoding::percent_decode_str;
use unicode_normalization::UnicodeNormalization;

use crate::data_dir::DataDir;
use crate::error::Result;
use crate::hostname::{RouteTarget, labelled, target_of};
use crate::manifest::Manifest;
use crate::names::is_safe_part;
use crate::site;

/// What a request is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// A worker.
    Worker {
        /// Its name.
        name: String,
        /// The path it is asked for, in its encoding.
        path: String,
    },
    /// A file of a site, if there is one.
    Site(Target),
}

impl Destination {
    /// Finds it: by the host, when an object or a hostname has it, otherwise by the first part of the path. `None` when
    /// nothing can have such a path.
    pub(crate) fn find(
        data: &DataDir,
        host: Option<&str>,
        path: &str,
        domain: &str,
    ) -> Result<Option<Self>> {
        let place = match host.map(bare_host) {
            Some(host) => target_of(data, &host, domain)?,
            None => None,
        };
        match place {
            Some(RouteTarget::Worker(name)) => {
                let path = path.to_owned();
                return Ok(Some(Self::Worker { name, path }));
            }
            Some(RouteTarget::Site(label)) => {
                return Ok(Target::of_site(label, path).map(Self::Site));
            }
            None => {}
        }
        let inside = path.strip_prefix('/').unwrap_or(path);
        let (first, rest) = inside.split_once('/').unwrap_or((inside, ""));
        let is_by_path = host.is_none_or(|host| label_of(&bare_host(host), domain).is_none());
        if is_by_path && let Some(RouteTarget::Worker(name)) = labelled(data, first)? {
            let path = format!("/{rest}");
            return Ok(Some(Self::Worker { name, path }));
        }
        Ok(Target::parse(host, path, domain).map(Self::Site))
    }

    /// Returns the owner of the object; `None` if the object does not exist.
    pub(crate) fn owner(&self, data: &DataDir) -> Result<Option<String>> {
        let object = match self {
            Self::Worker { name, .. } => Some(ResourceRef {
                resource_type: ResourceType::Worker,
                name: name.clone(),
            }),
            Self::Site(target) => site::resolve(data, &target.label)?.map(|live| ResourceRef {
                resource_type: ResourceType::Pages,
                name: live.project,
            }),
        };
        let Some(object) = object else {
            return Ok(None);
        };
        Ok(Manifest::read(data, &object)?.map(|manifest| manifest.owner))
    }
}

/// A request, taken apart. Every part of `path` is one plain name: no encoding, dots or separators are left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The address of the site: `{project}` or `{branch}--{project}`.
    pub(crate) label: String,
    /// What stands before the path inside the site: `/` or `/{label}/`.
    pub(crate) prefix: String,
    /// Path inside the site without slash at either end; empty for the front page.
    pub(crate) path: String,
    /// Whether the request ends in a slash.
    pub(crate) directory: bool,
}

impl Target {
    /// Takes a request apart; `None` when no site can have such a path.
    pub(crate) fn parse(host: Option<&str>, path: &str, domain: &str) -> Option<Self> {
        let inside = path.strip_prefix('/')?;
        match host.map(bare_host).and_then(|host| label_of(&host, domain)) {
            Some(label) => Self::inside(label?, "/".to_owned(), inside),
            None => {
                let (label, inside) = match inside.split_once('/') {
                    Some((label, inside)) => (decoded(label)?, Some(inside)),
                    None => (decoded(inside)?, None),
                };
                let prefix = format!("/{label}/");
                match inside {
                    Some(inside) => Self::inside(label, prefix, inside),
                    None => Some(Self {
                        label,
                        prefix,
                        path: String::new(),
                        directory: false,
                    }),
                }
            }
        }
    }

    /// A path of a site whose address has no other parts.
    pub(crate) fn of_site(label: String, path: &str) -> Option<Self> {
        Self::inside(label, "/".to_owned(), path.strip_prefix('/')?)
    }

    fn inside(label: String, prefix: String, inside: &str) -> Option<Self> {
        let directory = inside.is_empty() || inside.ends_with('/');
        let parts = inside.strip_suffix('/').unwrap_or(inside);
        let path = if inside.is_empty() {
            String::new()
        } else {
            parts
                .split('/')
                .map(decoded)
                .collect::<Option<Vec<_>>>()?
                .join("/")
        };
        Some(Self {
            label,
            prefix,
            path,
            directory,
        })
    }
}

/// One part of a path without its encoding, in normalisation form C as the paths of sites are; `None` when it is not a
/// plain name then.
fn decoded(part: &str) -> Option<String> {
    let text: String = percent_decode_str(part).decode_utf8().ok()?.nfc().collect();
    is_safe_part(&text).then_some(text)
}

/// The host without port and final dot, in lower case.
fn bare_host(host: &str) -> String {
    let without_port = match host.rsplit_once(':') {
        Some((before, port)) if port.bytes().all(|b| b.is_ascii_digit()) => before,
        _ => host,
    };
    without_port
        .strip_suffix('.')
        .unwrap_or(without_port)
        .to_ascii_lowercase()
}

/// The label a host names below our domain: `None` when it is not below it, `Some(None)` when it is no label.
fn label_of(host: &str, domain: &str) -> Option<Option<String>> {
    let label = host.strip_suffix(domain)?.strip_suffix('.')?;
    let good = !label.is_empty() && !label.contains('.');
    Some(good.then(|| label.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(label: &str, prefix: &str, path: &str, directory: bool) -> Option<Target> {
        Some(Target {
            label: label.to_owned(),
            prefix: prefix.to_owned(),
            path: path.to_owned(),
            directory,
        })
    }

    #[test]
    fn a_site_is_named_by_host_or_by_path() {
        for host in [
            "site.localhost:8090",
            "SITE.localhost",
            "site.localhost.:80",
        ] {
            let by_host = |path| Target::parse(Some(host), path, "localhost");
            assert_eq!(by_host("/"), target("site", "/", "", true));
            assert_eq!(
                by_host("/a%20b/c.css"),
                target("site", "/", "a b/c.css", false)
            );
            assert_eq!(by_host("/docs/"), target("site", "/", "docs", true));
        }
        for host in [
            Some("127.0.0.1:8090"),
            Some("localhost"),
            Some("[::1]:8090"),
            None,
        ] {
            let by_path = |path| Target::parse(host, path, "localhost");
            assert_eq!(by_path("/site"), target("site", "/site/", "", false));
            assert_eq!(by_path("/site/"), target("site", "/site/", "", true));
            assert_eq!(by_path("/site/x/"), target("site", "/site/", "x", true));
            assert_eq!(by_path("/"), None);
        }
        assert_eq!(Target::parse(Some("a.b.localhost"), "/", "localhost"), None);
        assert_eq!(Target::parse(Some(".localhost"), "/", "localhost"), None);
    }

    #[test]
    fn no_encoding_of_a_way_out_is_a_path() {
        for path in [
            "/..",
            "/../x",
            "/a/../x",
            "/%2e%2e/x",
            "/.%2E/x",
            "/a%2fb",
            "/a%5cb",
            "/a\\b",
            "/a%00",
            "//etc/passwd",
            "/a//b",
            "/./a",
            "/%2e/a",
            "/a/%2e%2e%2f",
            "/%ff",
            "/%2f",
            "//",
        ] {
            assert_eq!(
                Target::parse(Some("s.localhost"), path, "localhost"),
                None,
                "{path}"
            );
            let by_path = format!("/site{path}");
            assert_eq!(
                Target::parse(None, &by_path, "localhost"),
                None,
                "{by_path}"
            );
        }
        for path in ["/../site/", "/%2e%2e/", "/%2fsite/"] {
            assert_eq!(Target::parse(None, path, "localhost"), None, "{path}");
        }
    }

    #[test]
    fn encoding_is_taken_off_once_only() {
        let parsed = Target::parse(Some("s.localhost"), "/%252e%252e/x", "localhost");
        assert_eq!(parsed, target("s", "/", "%2e%2e/x", false));
    }
}
