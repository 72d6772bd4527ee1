//! How the local provider is set up.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use core_domain::cli::Limits;
use core_domain::kernel::{Clock, duration_text};
use core_domain::port::{PlatformSuspensions, ProviderError, ResourceRef};
use core_domain::registry::ResourceType;
use http::Uri;
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
    /// The largest number, sizes and paths of a site's files.
    pub site_limits: Limits,
    /// Bytes that the sites of one owner take on the disk, with replaced deployments: these are removed first, oldest first.
    /// Default: no limit.
    pub site_bytes_per_owner: u64,
    /// What runs the workers, see [`find_workerd`](crate::find_workerd); without it they are stored alone.
    pub workerd: Option<Workerd>,
    /// How they are run.
    pub workers: WorkerdOptions,
    /// The command that hosts workers in a process of its own (Unix alone). Default: `None`, this process hosts them.
    pub worker_host: Option<WorkerHostCommand>,
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
            sites: SiteAddress::on_this_machine(site_port),
            clock,
            retention: Retention::default(),
            site_limits: Limits::default(),
            site_bytes_per_owner: u64::MAX,
            workerd: None,
            workers: WorkerdOptions::default(),
            worker_host: None,
            reachable: Vec::new(),
            suspensions: None,
            faults: Faults::default(),
        }
    }
}

/// A command whose process hosts the workers of a provider: it calls [`run_worker_host`](crate::run_worker_host), writes
/// nothing to standard output and logs to standard error. Of the environment of this process it has only `PATH` and `TMPDIR`.
///
/// The limit of its memory counts what its allocator reserves, even if it is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerHostCommand {
    /// The path of the executable file.
    pub program: PathBuf,
    /// The arguments of the command line.
    pub args: Vec<String>,
    /// Environment variables and their values.
    pub env: Vec<(String, String)>,
}

/// Which deployments of a project are kept besides the one its address shows. The others are removed when the next
/// deployment goes live, and by the daily clean-up.
///
/// A preview above the number or the age is removed, never refused. A site above `limits.site_bytes_per_platform` is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Number of replaced deployments of `production` that are kept. Previews keep none. Default: 10.
    pub previous: usize,
    /// Maximum number of previews of a site: branches other than `production`, each with its latest deployment. A further
    /// preview removes the one with the oldest deployment, and its address. Default: 10.
    pub previews: usize,
    /// How long a preview is kept after its latest deployment. Default: 7 days.
    #[serde(with = "duration_text")]
    pub preview_age: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            previous: 10,
            previews: 10,
            preview_age: Duration::from_secs(7 * 24 * 60 * 60),
        }
    }
}

/// The addresses of sites and workers. Each has a host of its own, so that the pages of one site share neither cookies nor
/// storage with another site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteAddress {
    /// The domain below which every object has a name, without a leading dot: `http://{name}.{domain}:{port}/`. Browsers
    /// lead every name below `localhost` to this machine.
    pub domain: String,
    /// The port of the host.
    pub port: u16,
    /// The address at which objects are served by path as well, `{by_path}/{name}/`, and which deployments then show:
    /// `http://sites.example.net`, without a slash at the end. All sites there share one origin. It must not have the host
    /// of IAM: cookies know no ports. Default: none.
    pub by_path: Option<String>,
}

impl SiteAddress {
    /// Addresses below `localhost`, and none by path.
    #[must_use]
    pub fn on_this_machine(port: u16) -> Self {
        Self {
            domain: "localhost".to_owned(),
            port,
            by_path: None,
        }
    }

    /// Where a site is served.
    #[must_use]
    pub fn url(&self, label: &str) -> String {
        let Self {
            domain,
            port,
            by_path,
        } = self;
        match by_path {
            Some(base) => format!("{base}/{label}/"),
            None if *port == 80 => format!("http://{label}.{domain}/"),
            None => format!("http://{label}.{domain}:{port}/"),
        }
    }

    /// Tells whether objects are found by path at a host, which is in lower case and without port.
    pub(crate) fn is_by_path(&self, host: &str) -> bool {
        let base = self
            .by_path
            .as_deref()
            .and_then(|base| base.parse::<Uri>().ok());
        base.is_some_and(|base| {
            base.host()
                .is_some_and(|own| own.eq_ignore_ascii_case(host))
        })
    }
}

/// A moment in a call at which a test may make it fail, or the process die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Moment {
    /// Nothing was done yet.
    Before,
    /// The object is whole in the staging folder, and not in its place. The contents of a site's files are in theirs.
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
        let by_host = SiteAddress::on_this_machine;
        assert_eq!(by_host(8090).url("site"), "http://site.localhost:8090/");
        assert_eq!(by_host(80).url("site"), "http://site.localhost/");
        let by_path = SiteAddress {
            by_path: Some("http://Sites.example.net:8090".to_owned()),
            ..by_host(8090)
        };
        assert_eq!(by_path.url("site"), "http://Sites.example.net:8090/site/");
        assert!(by_path.is_by_path("sites.example.net"));
        assert!(!by_path.is_by_path("127.0.0.1") && !by_host(8090).is_by_path("127.0.0.1"));
    }
}
