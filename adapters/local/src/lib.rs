//! Infrastructure on this machine: SQLite files, bucket folders, a host of static sites, and workers that run.
//!
//! [`LocalInfrastructure`] implements the infrastructure port in one folder; [`SiteHost`] serves its sites;
//! [`FileBlobs`] keeps uploads. What is in the folder:
//!
//! ```text
//! d1/{name}/      manifest.json  database.sqlite
//! kv/{name}/      manifest.json  entries.sqlite
//! queue/{name}/   manifest.json  messages.sqlite
//! r2/{name}/      manifest.json  objects/{digest of the key}
//! worker/{name}/  manifest.json  current.json  versions/{digest}/bundle.json, modules/..
//! pages/{name}/   manifest.json  branches/{label}  deployments/{id}/index.json, deployment.json, content/{digest}
//!                 replaced/{id}
//! route/{hostname}      what a hostname of ours leads to
//! hostname/{hostname}   what a customer's hostname leads to
//! .staging/       what is being made
//! ```
//!
//! A worker and a pages project with secrets have a `secrets.json` too.
//!
//! Three rules keep it whole. Everything is made in the staging folder, synced and renamed into place, so that an
//! interruption at any moment leaves the whole thing or nothing. A name becomes a path only through one function, which
//! refuses everything but plain names and symbolic links. An object says who it belongs to from its first moment.
//!
//! # Workers that run
//! Where `workerd` is found ([`find_workerd`], [`LocalConfig::workerd`]; Unix alone), [`SiteHost`] hands requests to workers, each
//! in a process of its own ([`WorkerdOptions`]). Of the modules of a worker those that end in `.js`, `.mjs` or nothing are ES modules,
//! `.cjs` is a CommonJS module, `.json` a value, and everything else a text.
//!
//! | binding | what works |
//! |---|---|
//! | `kv` | `get` (one key or many), `getWithMetadata`, `put` with expiry and metadata, `delete`, `list` |
//! | `d1` | `prepare`, `bind`, `first`, `all`, `run`, `raw`, `batch` in one transaction, `exec`; not `dump` |
//! | `r2` | `head`, `get` with ranges and conditions, `put`, `delete`, `list`; not multipart uploads |
//! | `queue` | `send` and `sendBatch`; messages wait for [`Queue::pull`], no worker consumes them |
//! | `worker` | `fetch` of another worker; not its other methods |
//! | `pages` | `fetch` of a site |
//! | `vars`, secrets | texts, and values of JSON |
//!
//! What does not work throws an error that says so. There are no durable objects, cron triggers or web sockets.

mod blobs;
mod bucket;
mod config;
mod data_dir;
mod deploy;
mod error;
mod host;
mod hostname;
mod infrastructure;
mod kv;
mod manifest;
mod names;
mod port;
mod prune;
mod queue;
mod secrets;
mod site;
mod sqlite;
mod stores;
mod suspension_gate;
mod worker;
mod workerd;

pub use blobs::FileBlobs;
pub use bucket::{Bucket, Object, ObjectInfo, ObjectMetadata};
pub use config::{FaultPoint, Faults, LocalConfig, Moment, Retention, SiteAddress};
pub use error::{LocalError, PathError, Result};
pub use host::{SiteBody, SiteHost};
pub use infrastructure::LocalInfrastructure;
pub use kv::{KvEntry, KvKey, KvNamespace};
pub use queue::{Message, Queue};
pub use worker::{WorkerBinding, WorkerScript, WorkerVersion};
pub use workerd::{Workerd, WorkerdOptions, find_workerd};
