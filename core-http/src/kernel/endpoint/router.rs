//! The router: finds the row of a path, in every spelling of the path.
//!
//! A path can match in these spellings. The first match wins:
//! 1. The documented path.
//! 2. The documented path without the prefix that a gateway has removed (`X-Forwarded-Prefix`).
//! 3. A path that every service has, such as `/health`.
//! 4. The natural spelling: the documented path with its prefix replaced by a [`Mount`].
//!
//! In each spelling a static segment wins over a parameter. The same rule decides between spellings 2 and 4: after the
//! prefix `/api/v1/platforms` was removed, `/lookup` is the lookup and not a platform with the id `lookup`.

use std::collections::BTreeMap;

use http::Method;
use percent_encoding::percent_decode_str;

use super::definition::Endpoint;
use super::health;
use super::service_error::ServiceError;

/// A natural spelling of documented paths: the prefix `from` is replaced by `to`.
#[derive(Clone, Debug)]
pub(crate) struct Mount {
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

/// The match of a path.
#[derive(Debug)]
pub(crate) struct Route<'r> {
    /// The index of the row of each method.
    methods: &'r BTreeMap<String, usize>,
    /// The number of parameters of the pattern.
    variables: usize,
    params: Params<'r>,
}

/// The parameters of a path, in their order in the path.
#[derive(Debug)]
enum Params<'r> {
    /// Percent-encoded, as in the path.
    Raw(matchit::Params<'r, 'r>),
    /// Percent-decoded; `None` if a parameter is not UTF-8 or contains NUL.
    Decoded(Option<Vec<String>>),
}

/// Returns the percent-decoded parameters; `None` if one is not UTF-8 or contains NUL.
fn decode_params(params: &matchit::Params<'_, '_>) -> Option<Vec<String>> {
    let decode = |text: &str| {
        let decoded = percent_decode_str(text).decode_utf8().ok()?;
        (!decoded.contains('\0')).then(|| decoded.into_owned())
    };
    params.iter().map(|(_, value)| decode(value)).collect()
}

impl Route<'_> {
    /// Returns the decoded parameters in their order; `None` if one is not UTF-8 or contains NUL. They are decoded only
    /// here, because only the route that is used needs them.
    pub(crate) fn into_params(self) -> Option<Vec<String>> {
        match self.params {
            Params::Raw(params) => decode_params(&params),
            Params::Decoded(params) => params,
        }
    }

    /// Returns the index of the method's row, if there is one. `HEAD` uses the row of `GET`.
    pub(crate) fn row(&self, method: &Method) -> Option<usize> {
        let method = if method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        self.methods.get(method.as_str()).copied()
    }

    /// Returns the value of the `Allow` header.
    pub(crate) fn allow(&self) -> String {
        let mut methods: Vec<&str> = self.methods.keys().map(String::as_str).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.join(", ")
    }
}

/// The index of the row, by pattern and method.
type Table = BTreeMap<String, BTreeMap<String, usize>>;

/// A compiled [`Table`].
#[derive(Debug, Default)]
struct Matcher {
    /// By the value that the router returns: the index of the row, by method.
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

    fn at<'r>(&'r self, path: &'r str) -> Option<Route<'r>> {
        let found = self.router.at(path).ok()?;
        Some(Route {
            methods: self.tables.get(*found.value)?,
            variables: found.params.len(),
            params: Params::Raw(found.params),
        })
    }

    /// Like [`Self::at`], for a path that does not outlive the call. The parameters are decoded at once.
    fn find_decoded(&self, path: &str) -> Option<Route<'_>> {
        let found = self.router.at(path).ok()?;
        Some(Route {
            methods: self.tables.get(*found.value)?,
            variables: found.params.len(),
            params: Params::Decoded(decode_params(&found.params)),
        })
    }
}

/// All paths of a service, in every spelling.
#[derive(Debug)]
pub(crate) struct Router {
    documented: Matcher,
    natural: Matcher,
    /// For each prefix of a mount: the documented paths below it, without the prefix.
    below: Vec<(&'static str, Matcher)>,
}

impl Router {
    /// Compiles the paths of endpoints. Of several mounts, the first one that matches a path applies.
    ///
    /// # Errors
    /// - [`ServiceError::Duplicate`] if two rows have the same method and path.
    /// - [`ServiceError::Path`] if a path is malformed.
    pub(crate) fn of(endpoints: &[Endpoint], mounts: &[Mount]) -> Result<Self, ServiceError> {
        let mut documented = Table::new();
        let mut natural = Table::new();
        let mut below = vec![Table::new(); mounts.len()];
        for (row, endpoint) in endpoints.iter().enumerate() {
            for path in endpoint.paths() {
                add(&mut documented, endpoint, row, path)?;
                if let Some(path) = mounts.iter().find_map(|mount| strip_mount(path, mount)) {
                    add(&mut natural, endpoint, row, &path)?;
                }
                for (table, mount) in below.iter_mut().zip(mounts) {
                    let whole = Mount { to: "", ..*mount };
                    if let Some(path) = strip_mount(path, &whole) {
                        add(table, endpoint, row, &path)?;
                    }
                }
            }
        }
        Ok(Self {
            documented: Matcher::of(documented)?,
            natural: Matcher::of(natural)?,
            below: mounts
                .iter()
                .zip(below)
                .map(|(mount, table)| Ok((mount.from, Matcher::of(table)?)))
                .collect::<Result<_, ServiceError>>()?,
        })
    }

    /// Finds the route of a path; `prefix` is what a gateway has removed from it.
    pub(crate) fn find<'r>(&'r self, path: &'r str, prefix: Option<&str>) -> Option<Route<'r>> {
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

    /// Finds the documented path that consists of the removed prefix and this path.
    fn below<'r>(&'r self, prefix: &str, path: &'r str) -> Option<Route<'r>> {
        if let Some((_, matcher)) = self.below.iter().find(|(known, _)| *known == prefix) {
            return matcher.at(path);
        }
        let rest = if path == "/" { "" } else { path };
        let prefix = prefix.trim_end_matches('/');
        self.documented.find_decoded(&format!("{prefix}{rest}"))
    }
}

/// Adds a row to a table under a path.
///
/// # Errors
/// [`ServiceError::Duplicate`] if another row has the same method and path.
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

/// Returns the path with its parameters named by position, so that two rows can use different names for a parameter.
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

/// Returns the natural spelling of a path under a mount; `None` if the path is not below the mount's prefix.
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
