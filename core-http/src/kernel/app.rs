//! What all services share.

use std::sync::Arc;

use core_domain::kernel::{Clock, Entropy};
use core_domain::port::{Blobs, Mode, PasswordHasher, Store, StoreError, Wake};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::InFlight;

/// The ports and settings the services work with. One value serves all of them.
#[derive(Clone, Debug)]
pub struct App {
    /// Where records are kept.
    pub store: Arc<dyn Store>,
    /// The time outside of units of work.
    pub clock: Arc<dyn Clock>,
    /// Where ids and secrets come from.
    pub entropy: Arc<dyn Entropy>,
    /// Told after every commit.
    pub wake: Arc<dyn Wake>,
    /// Makes and checks password hashes.
    pub hasher: Arc<dyn PasswordHasher>,
    /// Keeps uploads until a job has used them.
    pub blobs: Arc<dyn Blobs>,
    /// The key of trusted callers. `None`: every call is let in as `Caller::Service` (local development).
    pub service_key: Option<ServiceKey>,
    /// The writes with an idempotency key that run at the moment; share it between services of one process.
    pub in_flight: InFlight,
}

impl App {
    /// Asks the store for a sign of life.
    ///
    /// # Errors
    /// [`StoreError`] when it gives none.
    pub(crate) async fn check_store(&self) -> Result<(), StoreError> {
        self.store.begin(Mode::Auto).await?.now().await?;
        Ok(())
    }
}

/// The key of trusted callers, kept as a hash alone.
#[derive(Clone)]
pub struct ServiceKey([u8; 32]);

impl ServiceKey {
    /// Takes the key.
    #[must_use]
    pub fn new(key: &str) -> Self {
        Self(Sha256::digest(key).into())
    }

    /// Tells whether this is the key, in a time that does not depend on either.
    #[must_use]
    pub fn is(&self, presented: &str) -> bool {
        let presented: [u8; 32] = Sha256::digest(presented).into();
        self.0.ct_eq(&presented).into()
    }
}

impl std::fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServiceKey(..)")
    }
}
