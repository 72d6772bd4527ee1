//! The destination of a request: a worker, or a path of a site.

use core_domain::port::ResourceRef;
use core_domain::registry::ResourceType;
use percent_encoding::percent_decode_str;
use unicode_normalization::UnicodeNormalization;

use crate::config::SiteAddress;
use crate::data_dir::DataDir;
use crate::error::Result;
use crate::hostname::{RouteTarget, find_by_label, resolve_host};
use crate::manifest::Manifest;
use crate::names::is_safe_part;
use crate::site;

/// The destination of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// A request to a worker.
    Worker {
        /// The name of the worker.
        name: String,
        /// The path of the request, percent-encoded as received.
        path: String,
    },
    /// A request to a site; its path may not exist.
    Site(SitePath),
}

impl Destination {
    /// Finds the destination. An object or a hostname with this host wins. On the host of addresses by path, the first
    /// part of the path selects the object. Returns `None` if no object can have such an address.
    pub(crate) fn find(
        data: &DataDir,
        host: Option<&str>,
        path: &str,
        addresses: &SiteAddress,
    ) -> Result<Option<Self>> {
        let Some(host) = host.map(bare_host) else {
            return Ok(None);
        };
        let place = resolve_host(data, &host, &addresses.domain)?;
        match place {
            Some(RouteTarget::Worker(name)) => {
                let path = path.to_owned();
                return Ok(Some(Self::Worker { name, path }));
            }
            Some(RouteTarget::Site(label)) => {
                return Ok(SitePath::of_site(label, path).map(Self::Site));
            }
            None => {}
        }
        if !addresses.is_by_path(&host) {
            return Ok(None);
        }
        let inside = path.strip_prefix('/').unwrap_or(path);
        let (first, rest) = inside.split_once('/').unwrap_or((inside, ""));
        if let Some(RouteTarget::Worker(name)) = find_by_label(data, first)? {
            let path = format!("/{rest}");
            return Ok(Some(Self::Worker { name, path }));
        }
        Ok(SitePath::by_path(path).map(Self::Site))
    }

    /// Returns the path of a request inside the object, percent-encoded as received. `raw_path` is the path of the
    /// request.
    pub(crate) fn path_inside<'a>(&'a self, raw_path: &'a str) -> &'a str {
        match self {
            Self::Worker { path, .. } => path,
            Self::Site(target) if target.prefix == "/" => raw_path,
            Self::Site(_) => {
                let inside = raw_path.strip_prefix('/').unwrap_or(raw_path);
                inside.find('/').map_or("/", |end| &inside[end..])
            }
        }
    }

    /// Returns the object; `None` if the site does not exist.
    fn object(&self, data: &DataDir) -> Result<Option<ResourceRef>> {
        Ok(match self {
            Self::Worker { name, .. } => Some(ResourceRef {
                resource_type: ResourceType::Worker,
                name: name.clone(),
            }),
            Self::Site(target) => site::resolve(data, &target.label)?.map(|live| ResourceRef {
                resource_type: ResourceType::Pages,
                name: live.project,
            }),
        })
    }
}

/// The object that a request is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) destination: Destination,
    pub(crate) object: ResourceRef,
    /// The owner of the object.
    pub(crate) owner: String,
}

impl Target {
    /// Finds the object of a request. Returns `None` if it does not exist.
    pub(crate) fn find(
        data: &DataDir,
        host: Option<&str>,
        path: &str,
        addresses: &SiteAddress,
    ) -> Result<Option<Self>> {
        let Some(destination) = Destination::find(data, host, path, addresses)? else {
            return Ok(None);
        };
        let Some(object) = destination.object(data)? else {
            return Ok(None);
        };
        let manifest = Manifest::read(data, &object)?;
        Ok(manifest.map(|manifest| Self {
            destination,
            object,
            owner: manifest.owner,
        }))
    }
}

/// The decoded target of a site request. Every part of `path` is one plain name without encoding, dot parts or
/// separators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SitePath {
    /// The address label of the site: `{project}` or `{branch}--{project}`.
    pub(crate) label: String,
    /// The URL path of the site's root: `/` or `/{label}/`.
    pub(crate) prefix: String,
    /// The path inside the site, without a slash at either end; empty for the front page.
    pub(crate) path: String,
    /// Whether the requested path ends in a slash.
    pub(crate) has_trailing_slash: bool,
}

impl SitePath {
    /// Parses a path that starts with the address label. Returns `None` if no site can have such a path.
    fn by_path(path: &str) -> Option<Self> {
        let inside = path.strip_prefix('/')?;
        let (label, inside) = match inside.split_once('/') {
            Some((label, inside)) => (decode_part(label)?, Some(inside)),
            None => (decode_part(inside)?, None),
        };
        let prefix = format!("/{label}/");
        match inside {
            Some(inside) => Self::inside(label, prefix, inside),
            None => Some(Self {
                label,
                prefix,
                path: String::new(),
                has_trailing_slash: false,
            }),
        }
    }

    /// Parses a path of a site that is selected by host. Returns `None` if no site can have such a path.
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
                .map(decode_part)
                .collect::<Option<Vec<_>>>()?
                .join("/")
        };
        Some(Self {
            label,
            prefix,
            path,
            has_trailing_slash: directory,
        })
    }
}

/// Decodes one part of a path and normalizes it to form C, like the paths of sites. Returns `None` if the result is not
/// a plain name.
fn decode_part(part: &str) -> Option<String> {
    let text: String = percent_decode_str(part).decode_utf8().ok()?.nfc().collect();
    is_safe_part(&text).then_some(text)
}

/// Returns the host without port and final dot, in lower case.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn target(label: &str, prefix: &str, path: &str, directory: bool) -> Option<SitePath> {
        Some(SitePath {
            label: label.to_owned(),
            prefix: prefix.to_owned(),
            path: path.to_owned(),
            has_trailing_slash: directory,
        })
    }

    fn of_site(path: &str) -> Option<SitePath> {
        SitePath::of_site("site".to_owned(), path)
    }

    #[test]
    fn path_is_parsed_with_and_without_the_site_label() {
        assert_eq!(of_site("/"), target("site", "/", "", true));
        assert_eq!(
            of_site("/a%20b/c.css"),
            target("site", "/", "a b/c.css", false)
        );
        assert_eq!(of_site("/docs/"), target("site", "/", "docs", true));

        let by_path = SitePath::by_path;
        assert_eq!(by_path("/site"), target("site", "/site/", "", false));
        assert_eq!(by_path("/site/"), target("site", "/site/", "", true));
        assert_eq!(by_path("/site/x/"), target("site", "/site/", "x", true));
        assert_eq!(by_path("/"), None);
    }

    #[test]
    fn host_ignores_port_final_dot_and_case() {
        for (host, bare) in [
            ("site.localhost:8090", "site.localhost"),
            ("SITE.localhost", "site.localhost"),
            ("site.localhost.:80", "site.localhost"),
            ("[::1]:8090", "[::1]"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(bare_host(host), bare);
        }
    }

    #[test]
    fn path_traversal_is_refused_in_every_encoding() {
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
            assert_eq!(of_site(path), None, "{path}");
            let by_path = format!("/site{path}");
            assert_eq!(SitePath::by_path(&by_path), None, "{by_path}");
        }
        for path in ["/../site/", "/%2e%2e/", "/%2fsite/"] {
            assert_eq!(SitePath::by_path(path), None, "{path}");
        }
    }

    #[test]
    fn path_is_decoded_once() {
        let parsed = of_site("/%252e%252e/x");
        assert_eq!(parsed, target("site", "/", "%2e%2e/x", false));
    }
}
