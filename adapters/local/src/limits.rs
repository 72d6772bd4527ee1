//! The limits of bindings that are settings.

use std::time::Duration;

use core_domain::kernel::duration_text;
use serde::{Deserialize, Serialize};

const MIB: usize = 1024 * 1024;

/// The limits of the calls that workers make to their bindings. A call that exceeds one fails in the worker. Limits that
/// Cloudflare documents and that are no settings, such as the length of a key, are constants of each store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BindingLimits {
    /// Maximum number of calls of one worker that run at a time. Further calls wait. Default: 16.
    pub calls: usize,
    /// How long a call waits until it runs. Default: 10 seconds.
    #[serde(with = "duration_text")]
    pub call_wait: Duration,
    /// How long the store works on one call. Default: 30 seconds, as D1.
    #[serde(with = "duration_text")]
    pub call_timeout: Duration,
    /// Maximum number of connections of one worker to its bindings: calls that run, calls that wait, and calls of other
    /// workers. Default: 256.
    pub connections: usize,
    /// Maximum memory of the calls of one worker together, in bytes: their requests, and their responses until the worker
    /// has read them. Default: 32 MiB.
    pub memory_bytes: usize,
    /// Maximum number of threads that work on the calls of all workers. Default: 64.
    pub threads: usize,
    /// Maximum number of rows in the results of one request to D1. Default: 100,000.
    pub result_rows: usize,
    /// Maximum size of the results of one request to D1, in bytes of JSON. Default: 10 MiB.
    pub result_bytes: usize,
    /// Maximum size of one D1 database, key-value namespace or queue, in bytes. Default: 10 GB, as D1.
    pub database_bytes: u64,
    /// Maximum size of one R2 object, in bytes. Default: 5 GiB, as one upload to R2.
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
    /// Returns the name of the first limit that is zero: no call could ever succeed.
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
