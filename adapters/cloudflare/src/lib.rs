//! Infrastructure at Cloudflare: [`CloudflareInfrastructure`] implements the infrastructure port over its API v4.
//!
//! Every call may be repeated. Objects are found again by their names, before they are made and whenever nobody knows whether
//! they were made; what another owner has is left alone. Whose an object is stands in a tag of a worker and in a variable of a
//! project; databases, namespaces, buckets and queues take no mark, so their names tell
//! ([`core_domain::registry::bears_platform`]).
//!
//! # The token
//! It needs, for the account: D1, Workers KV Storage, Workers R2 Storage, Queues, Workers Scripts and Cloudflare Pages, all
//! *Edit*, and Account Settings *Read*; for the zones that hostnames are in: Zone *Read*, DNS, Workers Routes, and SSL and
//! Certificates, the last three *Edit*. Neither it nor any secret is in a log, an error or a `Debug` text.
//!
//! # Requests
//! Cloudflare allows a token 1200 requests in five minutes and blocks it afterwards. All calls of a process go through one
//! limiter, which spreads them or answers that it is not the time; processes that share a token have to share the number
//! ([`CloudflareOptions::requests`]). After a 429 nobody sends before the time it names is over. Logs name each request by
//! `cf_ray`.
//!
//! # What it does not do
//! Compile: a folder `_worker.js` of a site is refused, and its folder `functions` is left out. Set the fallback origin of
//! the zone with the customers' hostnames. Serve wildcards of customers. Jurisdictions, and locations of databases and
//! buckets. Remove routes that somebody made by hand for a worker it removes.

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
pub use options::{API, CloudflareAccount, CloudflareOptions, OptionError};
