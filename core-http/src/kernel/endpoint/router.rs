//! Which row answers a path, in every spelling.
//!
//! The documented form wins, then the form with the prefix a gateway took off, then what every service answers by itself,
//! then the natural spelling that remains without the prefix. In each, a static word beats a parameter; and so it does
//! between the form with the prefix and the natural one: `/lookup` below `/api/v1/platforms` is no platform.

use std::collections::BTreeMap;

use http::Method;
use percent_encoding::percent_decode_str;

use super::definition::Endpoint;
use super::health;
use super::service::ServiceError;

/// Rewrites documented paths to a natural spelling: `from` is replaced by `to`.
#[derive(Clone, Debug)]
pub(crate) struct Mount {
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

/// A path that exists.
#[derive(Debug)]
pub(crate) struct Route<'r> {
    methods: &'r BTreeMap<String, usize>,
    /// How many parameters the pattern has.
    variables: usize,
    params: Params<'r>,
}

/// The parameters of a path in their order.
#[derive(Debug)]
enum Params<'r> {
    /// As they stand in the path.
    Raw(matchit::Params<'r, 'r>),
    /// Decoded; `None` when one is not UTF-8.
    Decoded(Option<Vec<String>>),
}

fn decoded(params: &matchit::Params<'_, '_>) -> Option<Vec<String>> {
    let decode = |text: &str| {
        let decoded = percent_decode_str(text).decode_utf8().ok()?;
        (!decoded.contains('\0')).then(|| decoded.into_owned())
    };
    params.iter().map(|(_, value)| decode(value)).collect()
}

impl Route<'_> {
    /// The decoded parameters in their order; `None` when one is not UTF-8. Only the route that is taken needs them.
    pub(crate) fn into_params(self) -> Option<Vec<String>> {
        match self.params {
            Params::Raw(params) => decoded(&params),
            Params::Decoded(params) => params,
        }
    }

    /// The row of the method; `HEAD` is answered by the row of `GET`.
    pub(crate) fn row(&self, method: &Method) -> Option<usize> {
        let method = if method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        self.methods.get(method.as_str()).copied()
    }

    /// The value of the `Allow` header.
    pub(crate) fn allow(&self) -> String {
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

    fn at<'r>(&'r self, path: &'r str) -> Option<Route<'r>> {
        let found = self.router.at(path).ok()?;
        Some(Route {
            methods: self.tables.get(*found.value)?,
            variables: found.params.len(),
            params: Params::Raw(found.params),
        })
    }

    /// As [`Self::at`], for a path that is made for the look-up.
    fn at_made(&self, path: &str) -> Option<Route<'_>> {
        let found = self.router.at(path).ok()?;
        Some(Route {
            methods: self.tables.get(*found.value)?,
            variables: found.params.len(),
            params: Params::Decoded(decoded(&found.params)),
        })
    }
}

/// All paths of a service.
#[derive(Debug)]
pub(crate) struct Router {
    documented: Matcher,
    natural: Matcher,
    /// By prefix that is rewritten: the documented paths that begin with it, without it.
    below: Vec<(&'static str, Matcher)>,
}

impl Router {
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

    /// The documented form with the prefix a gateway took off.
    fn below<'r>(&'r self, prefix: &str, path: &'r str) -> Option<Route<'r>> {
        if let Some((_, matcher)) = self.below.iter().find(|(known, _)| *known == prefix) {
            return matcher.at(path);
        }
        let rest = if path == "/" { "" } else { path };
        let prefix = prefix.trim_end_matches('/');
        self.documented.at_made(&format!("{prefix}{rest}"))
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
