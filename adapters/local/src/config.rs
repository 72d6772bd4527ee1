//! How the local provider is set up.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Clock, duration_text};
use core_domain::port::{PlatformSuspensions, ProviderError, ResourceRef};
use core_domain::registry::ResourceType;
use http::uri::Authority;
use serde::{Deserialize, Serialize};

use crate::workerd::{Workerd, WorkerdOptions};

/// How the local provider is set up.
#[derive(Clone, Debug)]
pub struct LocalConfig {
    /// The folder everything lives in; made when needed. Nothing outside is touched.
    pub root: PathBuf,
    /// Which addresses sites are given.
    pub sites: SiteAddress,
    /// Expiry of key-value entries and of queue leases is measured with it.
    pub clock: Arc<dyn Clock>,
    /// Which deployments are kept.
    pub retention: Retention,
    /// What runs the workers, see [`find_workerd`](crate::find_workerd); without it they are stored alone.
    pub workerd: Option<Workerd>,
    /// How they are run.
    pub workers: WorkerdOptions,
    /// Services that workers can fetch from by plain HTTP wherever they run, on this machine too: IAM, which auth workers
    /// ask. None by default.
    pub reachable: Vec<Authority>,
    /// Tells which platforms are suspended: their sites and workers respond with 451. Default: `None`, no platform is.
    pub suspensions: Option<Arc<dyn PlatformSuspensions>>,
    /// Failures asked for by tests; none by default.
    pub faults: Faults,
}

impl LocalConfig {
    /// The usual set-up: sites at `http://{project}.localhost:{port}/`, the usual retention, nothing that runs workers, no
    /// faults.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>, site_port: u16, clock: Arc<dyn Clock>) -> Self {
        Self {
            root: root.into(),
            sites: SiteAddress::ByHost {
                domain: "localhost".to_owned(),
                port: site_port,
            },
            clock,
            retention: Retention::default(),
            workerd: None,
            workers: WorkerdOptions::default(),
            reachable: Vec::new(),
            suspensions: None,
            faults: Faults::default(),
        }
    }
}

/// Which deployments of a project are kept besides the one its address shows. The others are removed when the next
/// deployment goes live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// How many deployments of a branch are kept after a later one has replaced them. 10 by default.
    pub previous: usize,
    /// How long a deployment of another branch than `production` is kept. When the one that its branch shows is older, the
    /// branch's address ends too. 30 days by default.
    #[serde(with = "duration_text")]
    pub preview_age: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            previous: 10,
            preview_age: Duration::from_secs(30 * 24 * 60 * 60),
        }
    }
}

/// Which addresses sites are given. The host serves both forms whatever is chosen here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiteAddress {
    /// `http://{project}.{domain}:{port}/`. Browsers lead every name under `localhost` to this machine.
    ByHost {
        /// The domain, without a leading dot.
        domain: String,
        /// The port of the host.
        port: u16,
    },
    /// `{base}/{project}/`: for programs that cannot resolve names under `localhost`.
    ByPath {
        /// For example `http://127.0.0.1:8090`, without a slash at the end.
        base: String,
    },
}

impl SiteAddress {
    /// Where a site is served.
    #[must_use]
    pub fn url(&self, label: &str) -> String {
        match self {
            Self::ByHost { domain, port: 80 } => format!("http://{label}.{domain}/"),
            Self::ByHost { domain, port } => format!("http://{label}.{domain}:{port}/"),
            Self::ByPath { base } => format!("{base}/{label}/"),
        }
    }

    /// The domain under which the host looks for a project in the `Host` header.
    pub(crate) fn domain(&self) -> &str {
        match self {
            Self::ByHost { domain, .. } => domain,
            Self::ByPath { .. } => "localhost",
        }
    }
}

/// A moment in a call at which a test may make it fail, or the process die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Moment {
    /// Nothing was done yet.
    Before,
    /// The object is whole in the staging folder, and not in its place.
    Staged,
    /// A deployment is in its place, and its address still leads to the one before.
    Published,
    /// A deployment is shown at its address, and older ones are still there.
    Live,
    /// An older deployment is marked as replaced, its address if it had one is gone, and its files are still there.
    Pruning,
    /// No hostname leads to an object that is about to be removed any more, and it is still there.
    Unrouted,
    /// Everything is done, and the caller does not know.
    Done,
}

/// Where in which call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FaultPoint<'a> {
    /// `create`, `remove`, `deploy`, `route`, `secrets`, or for a customer's hostname `serve` and `stop`.
    pub call: &'static str,
    /// What the object of the call is; `None` for a customer's hostname.
    pub resource_type: Option<ResourceType>,
    /// The object, or the hostname.
    pub name: &'a str,
    /// How far the call has come.
    pub moment: Moment,
}

type Hook = dyn Fn(FaultPoint<'_>) -> Option<ProviderError> + Send + Sync;

/// Asked at every [`Moment`] of every changing call; an answer ends the call with that error. For tests.
#[derive(Clone, Default)]
pub struct Faults(Option<Arc<Hook>>);

impl Faults {
    /// Faults decided by a function.
    pub fn new(
        hook: impl Fn(FaultPoint<'_>) -> Option<ProviderError> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(hook)))
    }

    pub(crate) fn at(
        &self,
        call: &'static str,
        resource: &ResourceRef,
        moment: Moment,
    ) -> crate::error::Result<()> {
        self.ask(FaultPoint {
            call,
            resource_type: Some(resource.resource_type),
            name: &resource.name,
            moment,
        })
    }

    pub(crate) fn at_hostname(
        &self,
        call: &'static str,
        hostname: &str,
        moment: Moment,
    ) -> crate::error::Result<()> {
        self.ask(FaultPoint {
            call,
            resource_type: None,
            name: hostname,
            moment,
        })
    }

    fn ask(&self, point: FaultPoint<'_>) -> crate::error::Result<()> {
        match self.0.as_ref().and_then(|hook| hook(point)) {
            Some(fault) => Err(crate::error::LocalError::Fault(fault)),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Faults(hook)"
        } else {
            "Faults(none)"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_by_host_or_by_path() {
        let by_host = |port| SiteAddress::ByHost {
            domain: "localhost".to_owned(),
            port,
        };
        assert_eq!(by_host(8090).url("site"), "http://site.localhost:8090/");
        assert_eq!(by_host(80).url("site"), "http://site.localhost/");
        let base = "http://127.0.0.1:8090".to_owned();
        assert_eq!(
            SiteAddress::ByPath { base }.url("site"),
            "http://127.0.0.1:8090/site/"
        );
    }
}
