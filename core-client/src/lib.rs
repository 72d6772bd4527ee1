//! An async client of the Platform Control API, for programs and for the command line.
//!
//! A [`Client`] has one method per operation. It repeats failed requests where that is safe, sends an idempotency key with
//! every write that takes one, streams uploads from disk, and follows server-sent events across lost connections.
//!
//! ```no_run
//! use core_client::{Client, DeployOptions, Upload};
//!
//! # async fn example() -> core_client::Result<()> {
//! let client = Client::builder("https://api.example.org").token("core_...").build()?;
//! let archive = Upload::from_file("application/gzip", "site.tgz".as_ref()).map_err(core_client::Error::Upload)?;
//! let options = DeployOptions { branch: Some("redesign".to_owned()), ..DeployOptions::default() };
//! let queued = client.deploy("019a5b1e-...", archive, &options).await?;
//! let deployment = client.wait_for_deployment("019a5b1e-...", &queued.deployment_id).await?;
//! println!("{} {:?}", deployment.status, deployment.url);
//! # Ok(())
//! # }
//! ```
//!
//! The operations and types are compared with the OpenAPI documents of the server by a test. Enumerations have a variant
//! for values of newer servers, and structs can gain fields.
//!
//! Every request asks a [`TokenSource`] for its credential, so that a program decides how tokens are stored and refreshed.
//! Secrets are [`Secret`]s, which `Debug` does not show.

mod call;
mod calls;
mod client;
mod clock;
#[cfg(test)]
mod contract;
mod credential;
mod discovery;
mod error;
mod net;
mod operation;
mod operations;
mod secret;
pub mod types;

pub use client::{Client, ClientBuilder, parse_base_url};
pub use clock::{Clock, SystemClock};
pub use credential::{Credential, TokenSource};
pub use discovery::is_protected;
pub use error::{ApiError, Error, Issue, Result, TransportError, TransportStage};
pub use net::event_stream::EventStream;
pub use net::retry::RetryPolicy;
pub use net::upload::Upload;
pub use secret::Secret;
pub use types::deployment::{DeployOptions, SiteFile};
pub use types::page::{Page, PageQuery};
