//! The metrics of a suite, and the handle that renders them.
//!
//! - `handle`: [`SuiteMetrics`], which the host program mounts or renders.
//! - `options`: their settings.
//! - `store`: units of work and connections, as a decorator of the store.
//! - `jobs`: what the worker does.
//! - `deliveries`: attempts to deliver messages, mails and webhooks.
//! - `background`: panics of background tasks, the sealer, the archives of the audit log, and the billing ticker.
//! - `payments`: calls of the payment provider, as a decorator.
//! - `blobs`: operations of the store for uploads, as a decorator.
//! - `backlog`: gauges that need queries, refreshed by a background task.
//! - `spans`: the export of traces.
//! - `process`: the process, the tokio runtime and the build.
//!
//! Requests are measured by `core-http`. Each file contains the definitions of its metrics.

mod background;
mod backlog;
mod blobs;
mod deliveries;
mod handle;
mod jobs;
mod options;
mod payments;
mod process;
mod spans;
mod store;

pub(crate) use background::{ArchiveMetrics, BillingMetrics, SealerMetrics, task_panics};
pub(crate) use backlog::Backlog;
pub(crate) use blobs::MeteredBlobs;
pub(crate) use deliveries::DeliveryMetrics;
pub use handle::SuiteMetrics;
pub(crate) use jobs::JobMetrics;
pub use options::MetricsOptions;
pub(crate) use payments::MeteredPayments;
pub(crate) use process::register_process;
pub(crate) use spans::register_spans;
pub(crate) use store::{MeteredStore, register_cells, register_pools};
