//! Which row answers a path, in every spelling.
//!
//! The documented form wins, then the form with the prefix a gateway took off, then what every service answers by itself,
//! then the natural spelling that remains without the prefix. In each, a static word beats a parameter; and so it does
//! between the form with the prefix and the natural one: `/lookup` below `/api/v1/platforms` is no platform.

use std::collections::BTreeMap;

use http::Method;
use percent_encoding::percent_decode_str;

use super::endpoint::Endpoint;
use super::health;
use super::service_error::ServiceError;

/// Rewrites documented paths to a natural spelling: `from` is replaced by `to`.
#[derive(Clone, Debug)]
pub(super) struct Mount {
    pub(super) from: &'static str,
    pub(super) to: &'static str,
}

/// A path that exists.
#[derive(Debug)]
pub(super) struct Route<'r> {
    methods: &'r BTreeMap<String, usize>,
    /// How many parameters the pattern has.
    variables: usize,
    /// The decoded parameters in their order; `None` when one is not UTF-8.
    pub(super) params: Option<Vec<String>>,
}

impl Route<'_> {
    /// The row of the method; `HEAD` is answered by the row of `GET`.
    pub(super) fn row(&self, method: &Method) -> Option<usize> {
        let method = if method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        self.methods.get(method.as_str()).copied()
    }

    /// The value of the `Allow` header.
    pub(super) fn allow(&self) -> String {
        let mut methods: Vec<&str> = self.methods.keys().map(String::as_str).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.join(", ")
    }
}

/// Method to row, for every pattern.
type Table = BTreeMap<String, BTreeMap<String, usize>>;

#[derive(Debug, Default)]
struct Matcher {
    tables: Vec<BTreeMap<String, usize>>,
    router: matchit::Router<usize>,
}

impl Matcher {
    fn of(table: Table) -> Result<Self, ServiceError> {
        let mut matcher = Self::default();
        for (pattern, methods) in table {
            matcher
                .router
                .insert(pattern.clone(), matcher.tables.len())
                .map_err(|error| ServiceError::Path(format!("{pattern}: {error}")))?;
            matcher.tables.push(methods);
        }
        Ok(matcher)
    }

    fn at(&self, path: &str) -> Option<Route<'_>> {
        let found = self.router.at(path).ok()?;
        let decode = |text: &str| {
            let decoded = percent_decode_str(text).decode_utf8().ok()?;
            (!decoded.contains('\0')).then(|| decoded.into_owned())
        };
        Some(Route {
            methods: self.tables.get(*found.value)?,
            variables: found.params.len(),
            params: found
                .params
                .iter()
                .map(|(_, value)| decode(value))
                .collect(),
        })
    }
}

/// All paths of a service.
#[derive(Debug)]
pub(super) struct Router {
    documented: Matcher,
    natural: Matcher,
}

impl Router {
    pub(super) fn of(endpoints: &[Endpoint], mounts: &[Mount]) -> Result<Self, ServiceError> {
        let mut documented = Table::new();
        let mut natural = Table::new();
        for (row, endpoint) in endpoints.iter().enumerate() {
            for path in endpoint.paths() {
                add(&mut documented, endpoint, row, path)?;
                if let Some(path) = mounts.iter().find_map(|mount| strip_mount(path, mount)) {
                    add(&mut natural, endpoint, row, &path)?;
                }
            }
        }
        Ok(Self {
            documented: Matcher::of(documented)?,
            natural: Matcher::of(natural)?,
        })
    }

    pub(super) fn find(&self, path: &str, prefix: Option<&str>) -> Option<Route<'_>> {
        if let Some(route) = self.documented.at(path) {
            return Some(route);
        }
        let natural = || {
            if health::is_path(path) {
                return None;
            }
            self.natural.at(path)
        };
        let Some(whole) = prefix.and_then(|prefix| self.below(prefix, path)) else {
            return natural();
        };
        natural()
            .filter(|natural| natural.variables < whole.variables)
            .or(Some(whole))
    }

    /// The documented form with the prefix a gateway took off.
    fn below(&self, prefix: &str, path: &str) -> Option<Route<'_>> {
        let rest = if path == "/" { "" } else { path };
        let prefix = prefix.trim_end_matches('/');
        self.documented.at(&format!("{prefix}{rest}"))
    }
}

fn add(table: &mut Table, endpoint: &Endpoint, row: usize, path: &str) -> Result<(), ServiceError> {
    let methods = table.entry(pattern(path)).or_default();
    match methods.insert(endpoint.method().to_string(), row) {
        None => Ok(()),
        Some(_) => Err(ServiceError::Duplicate(format!(
            "{} {path}",
            endpoint.method()
        ))),
    }
}

/// The path with its parameters named by position, so that two rows may call the same one differently.
fn pattern(path: &str) -> String {
    let mut position = 0;
    let segments = path.split('/').map(|segment| {
        if !segment.starts_with('{') {
            return segment.to_owned();
        }
        position += 1;
        let star = if segment.starts_with("{*") { "*" } else { "" };
        format!("{{{star}p{position}}}")
    });
    segments.collect::<Vec<_>>().join("/")
}

fn strip_mount(path: &str, mount: &Mount) -> Option<String> {
    let rest = path.strip_prefix(mount.from)?;
    if !rest.is_empty() && !rest.starts_with('/') {
        return None;
    }
    let spelled = format!("{}{rest}", mount.to);
    Some(if spelled.is_empty() {
        "/".to_owned()
    } else {
        spelled
    })
}
