//! The Cloudflare infrastructure provider: [`CloudflareInfrastructure`] implements the infrastructure port with the
//! Cloudflare API v4.
//!
//! Every call can be repeated. An object is looked up by name before it is created, and again whenever the outcome of
//! the creation is unknown. Objects of other owners are never changed.
//!
//! The owner of a worker is stored in a tag, and the owner of a project in a variable. Databases, namespaces, buckets
//! and queues cannot be marked, so their names contain the owner ([`core_domain::registry::is_name_of_platform`]).
//!
//! # The token
//! The API token needs these permissions for the account: D1, Workers KV Storage, Workers R2 Storage, Queues, Workers
//! Scripts and Cloudflare Pages, all *Edit*, and Account Settings *Read*. For the zones of hostnames it needs Zone
//! *Read* and DNS, Workers Routes, SSL and Certificates, the last three *Edit*. Neither the token nor any secret
//! appears in logs, errors or `Debug` output.
//!
//! # Requests
//! Cloudflare allows 1200 requests in five minutes for each token, and blocks the token if it exceeds them. All calls
//! of a process share one rate limiter. It spreads requests, or returns a throttling error if the wait is too long.
//! Processes that share a token must divide the number ([`CloudflareOptions::requests`]). After a response with status
//! 429, no request is sent until the time in it has passed. Logs contain the `cf_ray` of each request.
//!
//! # Sites
//! Cloudflare does not return the files of a deployment, and knows contents only by its own hash. Receipts of the last 20
//! deployments of a project tell both ([`CloudflareInfrastructure::with_receipts`]): uploads need only changed files, and
//! previews can be promoted and rolled back. Whether Cloudflare still has a content is asked each time.
//!
//! # Logs
//! The logs of workers and sites come from the tails of Cloudflare, which report requests after they have ended and have
//! no earlier lines. They need the permission Workers Tail *Read*. A site has lines only if it has functions. A reader
//! opens one tail for each worker and site, at most 32, and closes them at its end.
//!
//! # What is not supported
//! - Bundling: a folder `_worker.js` of a site is refused, and its folder `functions` is ignored.
//! - Setting the fallback origin of the zone for customers' hostnames.
//! - Wildcard hostnames of customers.
//! - Jurisdictions, and locations of databases and buckets.
//! - Deleting routes that were created manually for a deleted worker.

mod binding;
mod bound;
mod call;
mod client;
mod d1;
mod envelope;
mod error;
mod hostname;
mod infrastructure;
mod kv;
mod logs;
mod multipart;
mod options;
mod ownership;
mod pages;
mod paging;
mod queue;
mod r2;
mod rate;
mod secrets;
mod worker;

pub use client::TlsError;
pub use infrastructure::{CloudflareError, CloudflareInfrastructure};
pub use options::{API_BASE_URL, CloudflareAccount, CloudflareOptions, OptionError};
