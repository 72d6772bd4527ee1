//! Shares the uploads of the Platform Control API Suite between nodes in a bucket of an S3-compatible object store.
//!
//! ```no_run
//! # fn open(clock: std::sync::Arc<dyn core_domain::kernel::Clock>) -> Result<(), core_s3::OptionError> {
//! use core_domain::kernel::Secret;
//! use core_s3::{S3Blobs, S3Config, S3Credentials};
//!
//! let url = "s3://uploads/core?region=eu-central-1&endpoint=https://s3.example.org";
//! let credentials = S3Credentials::Key {
//!     id: "access-key".to_owned(),
//!     secret: Secret::new("open sesame"),
//!     session_token: None,
//! };
//! let blobs = S3Blobs::open(&S3Config::new(url, credentials), "/var/lib/core", clock)?;
//! # drop(blobs);
//! # Ok(()) }
//! ```
//!
//! # Objects
//! A blob is an object. Its key is the prefix of the URL, a slash and the key of the blob. Objects below other prefixes are
//! neither listed nor changed, so several installations can share a bucket.
//!
//! # Memory and files
//! A staged blob is a local file without a name, which the system deletes with the process. A commit uploads it. A blob of
//! more than [`PART_BYTES`] is a multipart upload, of which two parts are in memory at the same time. A reader has the
//! blob in another local file without a name, so that it does not change while it is read.
//!
//! A process that ends during a multipart upload leaves parts in the bucket that no request lists. Give the bucket a
//! lifecycle rule that deletes incomplete multipart uploads after a day.
//!
//! # Failures
//! Requests that fail for a moment are repeated for a few seconds. After that the operation fails, and the next one
//! tries again. Requests have time limits, see [`S3Options`].
//!
//! # Connections
//! The HTTP client is hyper with rustls and ring, like in the other adapters. `object_store` signs, repeats and decodes.

mod blobs;
mod bucket;
mod config;
mod credentials;
mod download;
mod error;
mod http_client;
mod options;
mod shared_file;
mod staged;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
mod url;

pub use blobs::S3Blobs;
pub use config::S3Config;
pub use credentials::S3Credentials;
pub use error::S3Error;
pub use options::{OptionError, S3Options};
pub use staged::PART_BYTES;
