//! The infrastructure provider of a single machine: SQLite files, object folders, and a host for static sites and
//! workers.
//!
//! [`LocalInfrastructure`] implements the infrastructure port in one folder. [`SiteHost`] serves its sites and workers.
//! [`FileBlobs`] stores uploads. The folder contains:
//!
//! ```text
//! d1/{name}/      manifest.json  database.sqlite
//! kv/{name}/      manifest.json  entries.sqlite
//! queue/{name}/   manifest.json  messages.sqlite
//! r2/{name}/      manifest.json  objects/{digest of the key}
//! worker/{name}/  manifest.json  current.json  versions/{digest}/bundle.json, modules/..
//! pages/{name}/   manifest.json  branches/{label}  deployments/{id}/index.json, deployment.json  content/{digest}
//!                 replaced/{id}
//! route/{hostname}      the target of a platform hostname
//! hostname/{hostname}   the target of a customer's hostname
//! .staging/       unfinished objects
//! .site-layout    version of the folder layout of sites
//! ```
//!
//! A worker or pages project with secrets also has a `secrets.json`, and one with a log a folder `logs` with its last
//! lines.
//!
//! Three rules keep the folder consistent:
//!
//! 1. Every object is written in the staging folder, synced and renamed into place. After an interruption an object is
//!    complete or absent.
//! 2. One function turns names into paths. It refuses symbolic links and everything that is not a plain name.
//! 3. Every object has a manifest that names its owner, from the moment it exists.
//!
//! # Running workers
//! If `workerd` is available ([`find_workerd`], [`LocalConfig::workerd`]; Unix only), [`SiteHost`] forwards requests to
//! workers. Each worker runs in its own process ([`WorkerdOptions`]). The extension of a module decides its kind:
//! `.js`, `.mjs` and no extension mean an ES module, `.cjs` a CommonJS module, `.json` a JSON value, and all others a
//! text.
//!
//! | binding | supported |
//! |---|---|
//! | `kv` | `get` (one key or many), `getWithMetadata`, `put` with expiry and metadata, `delete`, `list` |
//! | `d1` | `prepare`, `bind`, `first`, `all`, `run`, `raw`, `batch` in one transaction, `exec`; not `dump` |
//! | `r2` | `head`, `get` with ranges and conditions, `put`, `delete`, `list`; not multipart uploads |
//! | `queue` | `send` and `sendBatch`; messages wait for [`Queue::pull`], no worker consumes them |
//! | `worker` | `fetch` of another worker; not its other methods |
//! | `pages` | `fetch` of a site |
//! | `vars`, secrets | texts and JSON values |
//!
//! The limits below are those that Cloudflare documents. Limits that depend on the machine are settings
//! ([`BindingLimits`]). A call that exceeds a limit throws an error in the worker and changes nothing.
//!
//! | binding | limits |
//! |---|---|
//! | `kv` | key 512 bytes, value 25 MiB, metadata 1,024 bytes, list 1,000 keys, 100 keys of one `get` with 25 MiB together |
//! | `d1` | statement 100 KB, 100 parameters, 100 columns, text, blob or row 2 MB, 1,000 statements of a batch, 30 seconds; no transactions, no `ATTACH`, only the pragmas that D1 allows |
//! | `r2` | key 1,024 bytes, metadata 8,192 bytes, list and `delete` 1,000 objects |
//! | `queue` | message 128 KiB, batch 100 messages and 256 KiB |
//!
//! Unsupported calls throw an error with an explanation. Durable objects, cron triggers and web sockets are not
//! supported.

mod blobs;
mod bucket;
mod config;
mod data_dir;
mod deploy;
mod error;
mod execution;
mod host;
mod hostname;
mod infrastructure;
mod kv;
mod limits;
mod logs;
mod manifest;
mod names;
mod object;
mod object_list;
mod port;
mod prune;
mod queue;
mod secrets;
mod site;
mod site_content;
mod sqlite;
mod stores;
mod suspension_gate;
mod worker;
mod workerd;

pub use blobs::FileBlobs;
pub use bucket::Bucket;
pub use config::{
    FaultMoment, FaultPoint, Faults, LocalConfig, Retention, SiteAddress, WorkerHostCommand,
};
pub use error::{LocalError, PathError, Result};
pub use host::{SiteBody, SiteHost};
pub use infrastructure::LocalInfrastructure;
pub use kv::{KvEntry, KvKey, KvNamespace};
pub use limits::BindingLimits;
pub use logs::{ClientAddress, LogOptions};
pub use object::{Object, ObjectInfo, ObjectMetadata};
pub use queue::{Message, Queue};
pub use worker::{WorkerBinding, WorkerScript, WorkerVersion};
#[cfg(unix)]
pub use workerd::run_worker_host;
pub use workerd::{Workerd, WorkerdOptions, find_workerd};
