//! What the benchmarks and the soak share: child processes whose CPU time is their own, the stores they use, and a cheap
//! HTTP client.

pub(crate) mod arguments;
pub(crate) mod backend;
pub(crate) mod cpu;
pub(crate) mod http;
pub(crate) mod installation;
pub(crate) mod load;
pub(crate) mod process;
pub(crate) mod server;
