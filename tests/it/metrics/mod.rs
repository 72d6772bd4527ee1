//! The metrics of a suite: their numbers, their rendering, and the files that use them.
//!
//! - `exposition`: reads a rendering, and runs promtool.
//! - `requests`: requests to the gateway and the services.
//! - `work`: jobs, deliveries, the store and the backlog.
//! - `server`: the metrics of a real process.
//! - `guide`: the table in the guide for operators.
//! - `operations`: the dashboard and the alert rules.

mod exposition;
mod guide;
mod operations;
mod requests;
#[cfg(unix)]
mod server;
mod work;
