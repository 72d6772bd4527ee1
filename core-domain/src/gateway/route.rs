//! Routing: the service that a path belongs to, and the part of the path that is forwarded to it.

use super::path::{PathError, check_path, normalize_path};
use crate::kernel::SuiteService;

/// The table of the interface: each prefix and the service that it belongs to.
const PREFIXES: &[(&str, SuiteService)] = &[
    ("/api/v1/iam", SuiteService::Iam),
    ("/api/v1/platforms", SuiteService::Registry),
    ("/api/v1/onboarding", SuiteService::Registry),
    ("/api/v1/billing", SuiteService::Billing),
    ("/api/v1/provisioning", SuiteService::Provisioning),
    ("/api/v1/stacks", SuiteService::Stacks),
    ("/api/v1/cli", SuiteService::Cli),
];

/// A route of IAM under the prefix of the CLI service. IAM receives the whole path.
const WHOAMI: &str = "/api/v1/cli/whoami";

/// The prefixes of internal routes, relative to the service. They are not accessible through the gateway.
const INTERNAL_PREFIXES: &[&str] = &["/internal"];

/// The target of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The service that handles the request.
    pub service: SuiteService,
    /// The prefix that is removed from the path. Empty if the service receives the whole path.
    pub prefix: &'static str,
    /// The path that the service receives. It starts with a slash, and its bytes are otherwise unchanged.
    pub forwarded_path: String,
}

/// The destination of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The gateway's own `/health` or `/livez`.
    Health,
    /// The gateway's own `/readyz`.
    Readiness,
    /// The gateway's own API reference: `/docs`, or a path below it.
    Reference,
    /// The gateway's own metadata as an OAuth protected resource (RFC 9728).
    ResourceMetadata,
    /// A route of a service.
    Service(Route),
    /// An unknown or internal route under `/api/`. Callers are authenticated before they receive 404.
    UnknownApi,
    /// An unknown path outside `/api/`.
    Unknown,
}

impl Destination {
    /// Returns whether the destination requires a credential.
    #[must_use]
    pub fn is_api(&self) -> bool {
        matches!(self, Self::Service(_) | Self::UnknownApi)
    }

    /// Returns the route, if the destination is a service.
    #[must_use]
    pub fn route(&self) -> Option<&Route> {
        match self {
            Self::Service(route) => Some(route),
            _ => None,
        }
    }
}

impl SuiteService {
    /// Returns the prefixes of the service at the gateway. Each service has at least one, the gateway itself none.
    pub fn prefixes(self) -> impl Iterator<Item = &'static str> {
        let prefixes = PREFIXES.iter();
        let prefixes = prefixes.filter(move |(_, service)| *service == self);
        prefixes.map(|(prefix, _)| *prefix)
    }
}

/// Returns the part of `path` after `prefix`. `None` unless the prefix ends at the end of a path segment.
#[must_use]
pub fn strip_segment_prefix<'p>(path: &'p str, prefix: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(prefix)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// Returns whether a path is `base` or below it. Paths are compared decoded and without case, so that no other spelling
/// of a hidden route is forwarded.
#[must_use]
pub fn is_at_or_below(path: &str, base: &str) -> bool {
    let normal = |path| normalize_path(path).to_ascii_lowercase();
    normal(path)
        .strip_prefix(normal(base).as_slice())
        .is_some_and(|behind| behind.is_empty() || behind.first() == Some(&b'/'))
}

/// Returns whether a path is an internal route of its service.
fn is_private(rest: &str) -> bool {
    INTERNAL_PREFIXES
        .iter()
        .any(|private| is_at_or_below(rest, private))
}

fn service_route(path: &str) -> Option<Route> {
    if path == WHOAMI {
        return Some(Route {
            service: SuiteService::Iam,
            prefix: "",
            forwarded_path: WHOAMI.to_owned(),
        });
    }
    PREFIXES.iter().find_map(|(prefix, service)| {
        let rest = strip_segment_prefix(path, prefix)?;
        Some(Route {
            service: *service,
            prefix,
            forwarded_path: if rest.is_empty() { "/" } else { rest }.to_owned(),
        })
    })
}

/// Returns the destination of a path (without its query). Prefixes match whole segments and are case-sensitive.
///
/// # Errors
/// [`PathError`] if the path is refused.
pub fn find_route(path: &str) -> Result<Destination, PathError> {
    check_path(path)?;
    match path {
        "/health" | "/livez" => return Ok(Destination::Health),
        "/readyz" => return Ok(Destination::Readiness),
        "/.well-known/oauth-protected-resource" => return Ok(Destination::ResourceMetadata),
        _ => {}
    }
    if strip_segment_prefix(path, "/docs").is_some() {
        return Ok(Destination::Reference);
    }
    if !path.starts_with("/api/") {
        return Ok(Destination::Unknown);
    }
    let Some(route) = service_route(path) else {
        return Ok(Destination::UnknownApi);
    };
    check_path(&route.forwarded_path)?;
    if is_private(&route.forwarded_path) {
        return Ok(Destination::UnknownApi);
    }
    Ok(Destination::Service(route))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn service(path: &str) -> Option<(SuiteService, &'static str, String)> {
        let destination = find_route(path).unwrap();
        let route = destination.route()?;
        Some((route.service, route.prefix, route.forwarded_path.clone()))
    }

    #[test]
    fn line_35_every_prefix_of_the_interface_reaches_its_service_without_the_prefix() {
        for (word, name) in [
            ("iam", SuiteService::Iam),
            ("platforms", SuiteService::Registry),
            ("onboarding", SuiteService::Registry),
            ("billing", SuiteService::Billing),
            ("provisioning", SuiteService::Provisioning),
            ("stacks", SuiteService::Stacks),
            ("cli", SuiteService::Cli),
        ] {
            let (found, prefix, rest) = service(&format!("/api/v1/{word}/x/y")).unwrap();
            assert_eq!(
                (found, prefix, rest.as_str()),
                (name, format!("/api/v1/{word}").as_str(), "/x/y")
            );
        }
    }

    #[test]
    fn line_35_a_prefix_with_or_without_a_slash_reaches_the_root() {
        for path in ["/api/v1/platforms", "/api/v1/platforms/"] {
            assert_eq!(service(path).unwrap().2, "/", "{path}");
        }
    }

    #[test]
    fn line_35_prefixes_match_whole_segments_and_are_case_sensitive() {
        for path in [
            "/api/v1/platformsX",
            "/api/v1/Platforms",
            "/api/v1/%70latforms",
            "/api/v1",
            "/api/v2/platforms",
            "/api/",
        ] {
            assert_eq!(find_route(path), Ok(Destination::UnknownApi), "{path}");
        }
        for path in [
            "/",
            "/api",
            "/apis/v1/iam",
            "/healthz",
            "/health/",
            "/internal",
        ] {
            assert_eq!(find_route(path), Ok(Destination::Unknown), "{path}");
        }
    }

    #[test]
    fn the_reference_has_one_path_and_the_paths_below_it() {
        for path in ["/docs", "/docs/", "/docs/assets/docs.js"] {
            assert_eq!(find_route(path), Ok(Destination::Reference), "{path}");
        }
        for path in ["/Docs", "/docsx", "/x/docs"] {
            assert_eq!(find_route(path), Ok(Destination::Unknown), "{path}");
        }
    }

    #[test]
    fn the_resource_metadata_has_exactly_one_path() {
        let path = "/.well-known/oauth-protected-resource";
        assert_eq!(find_route(path), Ok(Destination::ResourceMetadata));
        for path in [
            "/.well-known",
            "/.well-known/oauth-protected-resource/",
            "/.well-known/oauth-protected-resource/x",
            "/.well-known/oauth-authorization-server",
        ] {
            assert_eq!(find_route(path), Ok(Destination::Unknown), "{path}");
        }
    }

    #[test]
    fn every_service_but_the_gateway_has_prefixes_that_reach_it() {
        for name in SuiteService::ALL {
            let is_reachable = name.prefixes().count() > 0;
            assert_eq!(is_reachable, *name != SuiteService::Gateway, "{name}");
            for prefix in name.prefixes() {
                assert_eq!(service(prefix), Some((*name, prefix, "/".to_owned())));
            }
        }
    }

    #[test]
    fn line_37_internal_routes_are_hidden_in_every_spelling() {
        for path in [
            "/api/v1/iam/internal",
            "/api/v1/iam/internal/",
            "/api/v1/iam/internal/platform-status",
            "/api/v1/iam/%69nternal/platform-status",
            "/api/v1/provisioning/Internal/platform-status",
        ] {
            assert_eq!(find_route(path), Ok(Destination::UnknownApi), "{path}");
        }
        assert!(service("/api/v1/iam/internals").is_some());
        assert!(service("/api/v1/platforms/x/internal").is_some());
    }

    #[test]
    fn line_39_whoami_is_forwarded_to_iam_with_its_whole_path() {
        let (name, prefix, rest) = service("/api/v1/cli/whoami").unwrap();
        assert_eq!(
            (name, prefix, rest.as_str()),
            (SuiteService::Iam, "", WHOAMI)
        );
        assert_eq!(service("/api/v1/cli/whoamis").unwrap().0, SuiteService::Cli);
    }

    #[test]
    fn line_35_the_forwarded_path_is_unchanged_byte_for_byte() {
        assert_eq!(
            service("/api/v1/stacks/a%20b/%C3%a9/").unwrap().2,
            "/a%20b/%C3%a9/"
        );
    }

    proptest! {
        #[test]
        fn line_36_prefix_and_forwarded_path_make_up_the_path_and_the_latter_is_safe(
            path in "/api/v1/(iam|platforms|cli|stacks|onboarding)(/[a-z.%0-9;]{0,6}){0,4}"
        ) {
            if let Ok(Destination::Service(route)) = find_route(&path) {
                prop_assert_eq!(check_path(&route.forwarded_path), Ok(()));
                let again = format!("{}{}", route.prefix, route.forwarded_path);
                prop_assert_eq!(again.trim_end_matches('/'), path.trim_end_matches('/'));
                prop_assert!(!is_private(&route.forwarded_path));
            }
        }

        #[test]
        fn line_45_finding_a_route_never_panics(path in ".{0,60}") {
            let _ = find_route(&path);
        }
    }
}
