//! The configurable limits of bindings.

use std::time::Duration;

use core_domain::kernel::duration_text;
use serde::{Deserialize, Serialize};

const MIB: usize = 1024 * 1024;

/// The limits of the calls that workers make to their bindings. A call that exceeds a limit fails in the worker. Fixed
/// limits that Cloudflare documents, such as the length of a key, are constants of each store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BindingLimits {
    /// Maximum number of concurrent calls of one worker. Further calls wait. Default: 16.
    pub calls: usize,
    /// Maximum time that a call waits before it starts. Default: 10 seconds.
    #[serde(with = "duration_text")]
    pub call_wait: Duration,
    /// Maximum time that the store works on one call. Default: 30 seconds, the same as D1.
    #[serde(with = "duration_text")]
    pub call_timeout: Duration,
    /// Maximum number of connections of one worker to its bindings. Running calls, waiting calls, and calls of other
    /// workers count. Default: 256.
    pub connections: usize,
    /// Maximum memory of all calls of one worker, in bytes. Requests count, and responses until the worker has read
    /// them. Default: 32 MiB.
    pub memory_bytes: usize,
    /// Maximum number of threads that execute the calls of all workers. Default: 64.
    pub threads: usize,
    /// Maximum number of rows in the results of one request to D1. Default: 100,000.
    pub result_rows: usize,
    /// Maximum size of the results of one request to D1, in bytes of JSON. Default: 10 MiB.
    pub result_bytes: usize,
    /// Maximum size of one D1 database, key-value namespace or queue, in bytes. Default: 10 GB, the same as D1.
    pub database_bytes: u64,
    /// Maximum size of one R2 object, in bytes. Default: 5 GiB, the same as one upload to R2.
    pub object_bytes: u64,
}

impl Default for BindingLimits {
    fn default() -> Self {
        Self {
            calls: 16,
            call_wait: Duration::from_secs(10),
            call_timeout: Duration::from_secs(30),
            connections: 256,
            memory_bytes: 32 * MIB,
            threads: 64,
            result_rows: 100_000,
            result_bytes: 10 * MIB,
            database_bytes: 10_000_000_000,
            object_bytes: 5 * 1024 * MIB as u64,
        }
    }
}

impl BindingLimits {
    /// Returns the name of the first setting that is zero. With a zero limit, every call would fail. `call_wait` may be
    /// zero.
    #[must_use]
    pub fn zero_limit(&self) -> Option<&'static str> {
        let limits = [
            ("workerd.bindings.calls", self.calls == 0),
            ("workerd.bindings.call_timeout", self.call_timeout.is_zero()),
            ("workerd.bindings.connections", self.connections == 0),
            ("workerd.bindings.memory_bytes", self.memory_bytes == 0),
            ("workerd.bindings.threads", self.threads == 0),
            ("workerd.bindings.result_rows", self.result_rows == 0),
            ("workerd.bindings.result_bytes", self.result_bytes == 0),
            ("workerd.bindings.database_bytes", self.database_bytes == 0),
            ("workerd.bindings.object_bytes", self.object_bytes == 0),
        ];
        let mut zero = limits.into_iter().filter(|(_, is_zero)| *is_zero);
        zero.next().map(|(name, _)| name)
    }
}
