//! The ports and settings that all services of a process share.

use std::sync::Arc;

use core_domain::kernel::{Cipher, Clock, Ed25519Private, Entropy};
use core_domain::port::{Blobs, PasswordHasher, RateLimiter, Store};
use core_domain::use_case::provisioning::Kinds;

use super::in_flight::InFlight;
use super::open_streams::OpenStreams;
use super::options::ServiceOptions;
use super::service_key::ServiceKey;
use super::signals::{AccessSignal, JobSignal, SealSignal};
use super::store_check::StoreCheck;
use super::tracer::Tracer;
use crate::kernel::metrics::Metrics;

/// The ports and settings of the services. All services of a process share one value.
#[derive(Clone, Debug)]
pub struct App {
    /// The store of all records. It announces the effects of a commit, see
    /// [`AnnouncingStore`](core_domain::port::AnnouncingStore).
    pub store: Arc<dyn Store>,
    /// The clock for code outside of units of work.
    pub clock: Arc<dyn Clock>,
    /// The source of random bytes for ids and secrets.
    pub entropy: Arc<dyn Entropy>,
    /// The registered kinds of jobs.
    pub kinds: Arc<Kinds>,
    /// Creates and verifies password hashes.
    pub hasher: Arc<dyn PasswordHasher>,
    /// Stores uploads until a job has used them.
    pub blobs: Arc<dyn Blobs>,
    /// Counts the requests of clients that do not come through a gateway. Share it with the gateway of the process.
    pub limiter: Arc<dyn RateLimiter>,
    /// The key of trusted callers. `None` accepts every request without a credential as `Caller::Service`, for local
    /// development.
    pub service_key: Option<ServiceKey>,
    /// The issuer of service tokens: the public URL of IAM.
    pub issuer: String,
    /// Encrypts stored data that must be read again: responses with secrets, mails with links.
    pub cipher: Cipher,
    /// Signs the checkpoints of the audit log.
    pub audit_key: Ed25519Private,
    /// Signals that audit entries were sealed.
    pub sealed: SealSignal,
    /// Signals new events of jobs.
    pub jobs: JobSignal,
    /// Signals changes of a caller's access.
    pub access: AccessSignal,
    /// The settings of all services.
    pub options: ServiceOptions,
    /// The idempotency keys of writes in progress. Share one value between the services of a process.
    pub in_flight: InFlight,
    /// The number of open event streams by caller. Share one value between the services of a process.
    pub streams: OpenStreams,
    /// The last health check of the store. Share one value between the services and the gateway of a process.
    pub store_check: StoreCheck,
    /// The metrics of the suite. Share one value between the services and the gateway of a process.
    pub metrics: Metrics,
    /// Creates the spans of requests. `None` if no traces are exported.
    pub tracer: Option<Arc<Tracer>>,
}
