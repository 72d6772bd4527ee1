//! Running workers with `workerd`, the runtime of Cloudflare's workers.
//!
//! Each worker that is asked runs in a process of its own: a script that does not compile, ends or never answers takes no
//! other with it. A process is started by the first request for its worker, replaced when script or secrets have changed,
//! and stopped when nobody asks for a while; there are never more than [`WorkerdOptions::processes`]. One that ends is
//! started again by the next request, after a pause that doubles each time.
//!
//! Process and provider speak over two Unix sockets in a folder that only this user can look into: the requests go in over
//! the one, what the script asks of its bindings comes out over the other. A process can reach nothing but what its own
//! worker is bound to, and nothing of the environment of this process. It ends with the provider: a pipe that is never
//! written to tells its guard, a shell, when the other end has gone, however that came about.
//!
//! All of this, the bindings included, can be hosted by a process of its own ([`LocalConfig::worker_host`]), whose memory is
//! limited: what workers make of it then never harms the server. The server sends requests to it over a Unix socket and
//! starts it again when it has ended.
//!
//! [`LocalConfig::worker_host`]: crate::LocalConfig::worker_host

mod bindings;
mod capnp;
mod forward;
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

pub(crate) use forward::request as forwarded;
#[cfg(unix)]
pub use host_server::run_worker_host;
pub(crate) use pool::Workers;
pub use program::{Workerd, find_workerd};

/// How workers are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerdOptions {
    /// How many workers run at a time, each in a process with some 60 MB; the one that has waited longest for a request
    /// makes room for another. 16 by default.
    pub processes: usize,
    /// After how long without a request a worker is stopped. 5 minutes by default.
    #[serde(with = "duration_text")]
    pub idle: Duration,
    /// How long a worker may take until its answer begins. 30 seconds by default.
    #[serde(with = "duration_text")]
    pub answer_timeout: Duration,
    /// Whether scripts may fetch from this machine and from private networks too. Not by default.
    pub private_network: bool,
    /// Hosts workers and their bindings in a process of their own, if the program can start itself as one. Default: `true`.
    pub process: bool,
    /// Maximum memory of that process, and of the process of each worker, in bytes; at least 768 MiB, of which a worker needs
    /// some 550 to start. Default: 1 GiB.
    pub memory: u64,
    /// The limits of the calls that workers make to their bindings.
    pub bindings: BindingLimits,
}

impl WorkerdOptions {
    /// The least [`WorkerdOptions::memory`] with which workers start.
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
