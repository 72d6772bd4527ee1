//! Code that the benchmarks and the soak test share: child processes whose CPU time can be measured, the stores they
//! use, and a cheap HTTP client.

pub(crate) mod arguments;
pub(crate) mod backend;
pub(crate) mod cpu;
pub(crate) mod http;
pub(crate) mod installation;
pub(crate) mod load;
pub(crate) mod process;
pub(crate) mod server;
