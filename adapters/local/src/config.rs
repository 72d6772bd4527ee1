//! The configuration of the local provider.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use core_domain::cli::SiteLimits;
use core_domain::kernel::{Clock, duration_text};
use core_domain::port::{PlatformSuspensions, ProviderError, ResourceRef, TrafficMeter};
use core_domain::registry::ResourceType;
use http::Uri;
use http::uri::Authority;
use serde::{Deserialize, Serialize};

use crate::logs::{ClientAddress, LogOptions};
use crate::workerd::{Workerd, WorkerdOptions};

/// The configuration of the local provider.
#[derive(Clone, Debug)]
pub struct LocalConfig {
    /// The folder that contains everything; created if it does not exist. The provider changes nothing outside it.
    pub root: PathBuf,
    /// The addresses at which sites and workers are served.
    pub sites: SiteAddress,
    /// The clock that measures the expiry of key-value entries and of queue leases.
    pub clock: Arc<dyn Clock>,
    /// The rules that decide which old deployments are kept.
    pub retention: Retention,
    /// Maximum number, sizes and path lengths of the files of a site.
    pub site_limits: SiteLimits,
    /// Maximum disk space of the sites of one owner, in bytes, including replaced deployments. If it is exceeded,
    /// replaced deployments are deleted, oldest first. Default: no limit.
    pub site_bytes_per_owner: u64,
    /// The `workerd` program that runs workers, see [`find_workerd`](crate::find_workerd). If `None`, workers are
    /// stored but not run.
    pub workerd: Option<Workerd>,
    /// The limits and options of running workers.
    pub workers: WorkerdOptions,
    /// The command that hosts workers in a separate process (Unix only). If `None`, this process hosts them. Default:
    /// `None`.
    pub worker_host: Option<WorkerHostCommand>,
    /// The options of the logs of workers and sites.
    pub logs: LogOptions,
    /// Returns the addresses of clients, for [`LogOptions::client_addresses`]. If `None`, no addresses are recorded.
    /// Default: `None`.
    pub client_address: Option<ClientAddress>,
    /// Services that workers can reach by plain HTTP at any address, including addresses of this machine. Auth workers
    /// need IAM here. Default: none.
    pub reachable: Vec<Authority>,
    /// The source of platform suspensions. Sites and workers of suspended platforms respond with 451. If `None`, no
    /// platform is suspended. Default: `None`.
    pub suspensions: Option<Arc<dyn PlatformSuspensions>>,
    /// Counts the requests to sites and workers, by the platform that owns them. Default: `None`.
    pub traffic: Option<Arc<dyn TrafficMeter>>,
    /// The time that the provider waits before and again after every change. The states "not yet done" and "done but
    /// not yet recorded" then last long enough to be observed. Default: 0.
    pub latency: Duration,
    /// Failures that tests inject. Default: none.
    pub faults: Faults,
}

impl LocalConfig {
    /// Returns the default configuration: sites at `http://{project}.localhost:{port}/`, default retention, no
    /// `workerd`, no injected faults.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>, site_port: u16, clock: Arc<dyn Clock>) -> Self {
        Self {
            root: root.into(),
            sites: SiteAddress::on_this_machine(site_port),
            clock,
            retention: Retention::default(),
            site_limits: SiteLimits::default(),
            site_bytes_per_owner: u64::MAX,
            workerd: None,
            workers: WorkerdOptions::default(),
            worker_host: None,
            logs: LogOptions::default(),
            client_address: None,
            reachable: Vec::new(),
            suspensions: None,
            traffic: None,
            latency: Duration::ZERO,
            faults: Faults::default(),
        }
    }
}

/// A command that hosts the workers of a provider in its own process.
///
/// The process calls [`run_worker_host`](crate::run_worker_host), writes nothing to standard output and logs to
/// standard error. It inherits only `PATH` and `TMPDIR` from the environment of this process.
///
/// The memory limit counts the memory that its allocator reserves, even if it is unused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerHostCommand {
    /// The path of the executable file.
    pub program: PathBuf,
    /// The arguments of the command line.
    pub args: Vec<String>,
    /// Additional environment variables, as pairs of name and value.
    pub env: Vec<(String, String)>,
}

/// Decides which deployments of a project are kept in addition to the current one of each branch. The others are
/// deleted when the next deployment goes live, and by the daily clean-up.
///
/// A preview that exceeds the number or the age is deleted; a new preview is never refused for that reason. A site that
/// exceeds `limits.site_bytes_per_platform` is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Number of replaced `production` deployments that are kept. Replaced deployments of previews are not kept.
    /// Default: 10.
    pub previous: usize,
    /// Maximum number of previews of a site. A preview is a branch other than `production` with its latest deployment.
    /// A further preview deletes the one with the oldest deployment, and its address. Default: 10.
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

/// The addresses of sites and workers. Each site and worker has its own host, so sites share neither cookies nor
/// browser storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteAddress {
    /// The parent domain of all addresses, without a leading dot: `http://{name}.{domain}:{port}/`. Browsers resolve
    /// every name below `localhost` to this machine.
    pub domain: String,
    /// The TCP port of the site host.
    pub port: u16,
    /// An additional base address at which sites and workers are served by path, `{by_path}/{name}/`. If it is set,
    /// deployments report this address. Example: `http://sites.example.net`, without a slash at the end. All sites
    /// below it share one origin. Its host must differ from the host of IAM, because cookies ignore ports. Default:
    /// none.
    pub by_path: Option<String>,
}

impl SiteAddress {
    /// Returns addresses below `localhost`, without an address by path.
    #[must_use]
    pub fn on_this_machine(port: u16) -> Self {
        Self {
            domain: "localhost".to_owned(),
            port,
            by_path: None,
        }
    }

    /// Returns the URL of the site or worker with this address label.
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

    /// Returns whether `host` serves sites and workers by path. `host` must be in lower case and without a port.
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

/// A point in a call at which a test can inject an error or end the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultMoment {
    /// Before the first change.
    Before,
    /// The object is complete in the staging folder and not yet published. For a site, the contents of its files are
    /// already stored.
    Staged,
    /// The deployment is stored, but its address still serves the previous deployment.
    Published,
    /// The deployment is served at its address; older deployments still exist.
    Live,
    /// An older deployment is marked as replaced and its address, if it had one, is deleted. Its files still exist.
    Pruning,
    /// All hostnames of the object are deleted; the object itself still exists.
    Unrouted,
    /// All changes are complete; the call has not returned yet.
    Done,
}

/// The position of a possible fault: the call, its object and the progress.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FaultPoint<'a> {
    /// The name of the call: `create`, `remove`, `deploy`, `route`, `unroute` or `secrets`. For a customer's hostname:
    /// `serve` or `stop`.
    pub call: &'static str,
    /// The type of the object that the call changes; `None` for a customer's hostname.
    pub resource_type: Option<ResourceType>,
    /// The name of the object, or the customer's hostname.
    pub name: &'a str,
    /// The progress of the call.
    pub moment: FaultMoment,
}

type Hook = dyn Fn(FaultPoint<'_>) -> Option<ProviderError> + Send + Sync;

/// A hook that tests use to inject faults. Every changing call asks it at every [`FaultMoment`]. If it returns an
/// error, the call fails with that error.
#[derive(Clone, Default)]
pub struct Faults(Option<Arc<Hook>>);

impl Faults {
    /// Creates faults from a function that returns the error to inject, or `None`.
    pub fn new(
        hook: impl Fn(FaultPoint<'_>) -> Option<ProviderError> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(hook)))
    }

    pub(crate) fn at(
        &self,
        call: &'static str,
        resource: &ResourceRef,
        moment: FaultMoment,
    ) -> crate::error::Result<()> {
        self.check(FaultPoint {
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
        moment: FaultMoment,
    ) -> crate::error::Result<()> {
        self.check(FaultPoint {
            call,
            resource_type: None,
            name: hostname,
            moment,
        })
    }

    fn check(&self, point: FaultPoint<'_>) -> crate::error::Result<()> {
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
