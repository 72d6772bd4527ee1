//! What all services share.

use std::sync::Arc;

use core_domain::kernel::{Cipher, Clock, Ed25519Private, Entropy};
use core_domain::port::{Blobs, PasswordHasher, RateLimiter, Store};
use core_domain::use_case::provisioning::Kinds;

use super::access_signal::AccessSignal;
use super::idempotency::InFlight;
use super::options::ServiceOptions;
use super::seal_signal::SealSignal;
use super::service_key::ServiceKey;
use super::store_check::StoreCheck;
use super::streams::OpenStreams;

/// The ports and settings the services work with. One value serves all of them.
#[derive(Clone, Debug)]
pub struct App {
    /// Where records are kept. What follows from a commit is announced by the store, see
    /// [`AnnouncingStore`](core_domain::port::AnnouncingStore).
    pub store: Arc<dyn Store>,
    /// The time outside of units of work.
    pub clock: Arc<dyn Clock>,
    /// Where ids and secrets come from.
    pub entropy: Arc<dyn Entropy>,
    /// The kinds of jobs there are.
    pub kinds: Arc<Kinds>,
    /// Makes and checks password hashes.
    pub hasher: Arc<dyn PasswordHasher>,
    /// Keeps uploads until a job has used them.
    pub blobs: Arc<dyn Blobs>,
    /// Counts the requests of clients that reach a service without a gateway; share it with the gateway of the process.
    pub limiter: Arc<dyn RateLimiter>,
    /// The key of trusted callers. `None`: every call is let in as `Caller::Service` (local development).
    pub service_key: Option<ServiceKey>,
    /// Who issues service tokens: the address people reach IAM at.
    pub issuer: String,
    /// Encrypts what is stored and must be read again: answers that hold secrets, mails with links.
    pub cipher: Cipher,
    /// Signs the checkpoints of the audit.
    pub audit_key: Ed25519Private,
    /// Told when entries of the audit were sealed; whoever seals in this process announces it.
    pub sealed: SealSignal,
    /// Told when what somebody may do has changed; whoever listens to the commits of this process announces it.
    pub access: AccessSignal,
    /// The settings of every service.
    pub options: ServiceOptions,
    /// The writes with an idempotency key that run at the moment; share it between services of one process.
    pub in_flight: InFlight,
    /// The open event streams by caller; share it between services of one process.
    pub streams: OpenStreams,
    /// The last health check of the store; share it between services of one process.
    pub store_check: StoreCheck,
}

impl App {
    /// Returns whether the store works, as of a second ago at most. Completes within two seconds.
    pub(crate) async fn is_store_healthy(&self) -> bool {
        self.store_check.is_healthy(&self.store).await
    }
}
