//! Execution of workers with `workerd`, the runtime of Cloudflare's workers.
//!
//! Each worker runs in its own process, so that a script that fails to compile, ends or hangs does not affect other
//! workers. The first request for a worker starts its process. A change of script or secrets replaces the process, and
//! an idle process is stopped. At most [`WorkerdOptions::processes`] run at the same time. If a process ends, the next
//! request starts it again, after a pause that doubles each time.
//!
//! Provider and process communicate over two Unix sockets in a folder that only the current user can access. One
//! carries requests to the worker; the other carries the requests of the script to its bindings. A process can access
//! only the bindings of its own worker, and it does not inherit the environment of the provider. Its guard, a shell,
//! waits for a pipe that the provider holds open. When the provider ends for any reason, the pipe closes and the guard
//! stops the process.
//!
//! A separate process can host all workers and their bindings ([`LocalConfig::worker_host`]). Its memory is limited, so
//! that workers cannot harm the server. The server sends requests to it over a Unix socket and starts it again if it
//! has ended.
//!
//! [`LocalConfig::worker_host`]: crate::LocalConfig::worker_host

mod bindings;
mod capnp;
mod console;
mod forward;
#[cfg(unix)]
mod host_logs;
#[cfg(unix)]
mod host_process;
#[cfg(unix)]
mod host_server;
#[cfg(unix)]
mod host_suspensions;
#[cfg(unix)]
mod host_wire;
mod launch;
mod log;
mod peers;
mod pool;
#[cfg(unix)]
mod process;
#[cfg(not(unix))]
#[path = "process_elsewhere.rs"]
mod process;
mod program;
mod refusal;

use std::time::Duration;

use core_domain::kernel::duration_text;
use serde::{Deserialize, Serialize};

use crate::limits::BindingLimits;

pub(crate) use forward::prepare_request as forwarded;
#[cfg(unix)]
pub use host_server::run_worker_host;
pub(crate) use pool::Workers;
pub use program::{Workerd, find_workerd};

/// The options for running workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerdOptions {
    /// Maximum number of workers that run at the same time, each in a process of about 60 MB. If another worker must
    /// start, the longest unused one is stopped. Default: 16.
    pub processes: usize,
    /// Time without requests after which a worker is stopped. Default: 5 minutes.
    #[serde(with = "duration_text")]
    pub idle: Duration,
    /// Maximum time until a worker's response starts. Default: 30 seconds.
    #[serde(with = "duration_text")]
    pub answer_timeout: Duration,
    /// If `true`, scripts may also fetch from this machine and from private networks. Default: `false`.
    pub private_network: bool,
    /// If `true`, a separate process hosts workers and their bindings, if the program supports it. Default: `true`.
    pub process: bool,
    /// Maximum memory of that process and of each worker process, in bytes. Minimum: 768 MiB; a worker needs about 550
    /// MiB to start. Default: 1 GiB.
    pub memory: u64,
    /// The limits of the calls that workers make to their bindings.
    pub bindings: BindingLimits,
}

impl WorkerdOptions {
    /// Minimum of [`WorkerdOptions::memory`], in bytes.
    pub const MIN_MEMORY: u64 = 768 * 1024 * 1024;
}

impl Default for WorkerdOptions {
    fn default() -> Self {
        Self {
            processes: 16,
            idle: Duration::from_secs(5 * 60),
            answer_timeout: Duration::from_secs(30),
            private_network: false,
            process: true,
            memory: 1024 * 1024 * 1024,
            bindings: BindingLimits::default(),
        }
    }
}
