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
//! pages/{name}/   manifest.json  branches/{label}  deployments/{id}/index.json, deployment.json  content/{digest}
//!                 replaced/{id}
//! route/{hostname}      what a hostname of ours leads to
//! hostname/{hostname}   what a customer's hostname leads to
//! .staging/       what is being made
//! .site-layout    the version of the layout of sites
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
//! Limits are those that Cloudflare documents; those of the machine are settings ([`BindingLimits`]). A call above one throws
//! an error in the worker and changes nothing.
//!
//! | binding | limits |
//! |---|---|
//! | `kv` | key 512 bytes, value 25 MiB, metadata 1,024 bytes, list 1,000 keys, 100 keys of one `get` with 25 MiB together |
//! | `d1` | statement 100 KB, 100 parameters, 100 columns, text, blob or row 2 MB, 1,000 statements of a batch, 30 seconds; no transactions, `ATTACH` or pragmas besides those of D1 |
//! | `r2` | key 1,024 bytes, metadata 8,192 bytes, list and `delete` 1,000 objects |
//! | `queue` | message 128 KiB, batch 100 messages and 256 KiB |
//!
//! What does not work throws an error that says so. There are no durable objects, cron triggers or web sockets.

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
    FaultPoint, Faults, LocalConfig, Moment, Retention, SiteAddress, WorkerHostCommand,
};
pub use error::{LocalError, PathError, Result};
pub use host::{SiteBody, SiteHost};
pub use infrastructure::LocalInfrastructure;
pub use kv::{KvEntry, KvKey, KvNamespace};
pub use limits::BindingLimits;
pub use object::{Object, ObjectInfo, ObjectMetadata};
pub use queue::{Message, Queue};
pub use worker::{WorkerBinding, WorkerScript, WorkerVersion};
#[cfg(unix)]
pub use workerd::run_worker_host;
pub use workerd::{Workerd, WorkerdOptions, find_workerd};
