//! Maintenance leases: one process at a time performs a maintenance task, on any number of nodes.

use std::time::Duration;

use crate::access::{unaudited, unowned_records};
use crate::kernel::{Entropy, Error, Result, hex};
use crate::port::{Mode, Store, UnitOfWork, transact_in};
use crate::shared::{MaintenanceLease, MaintenanceLeaseQuery};

/// Number of bytes of a generated holder id.
const HOLDER_BYTES: usize = 16;

/// A process as the holder of the lease of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseHolder {
    /// The name of the task.
    task: &'static str,
    id: String,
    /// The duration for which a lease is acquired or renewed.
    duration: Duration,
}

impl LeaseHolder {
    /// Creates a holder with a random id, for a store that several processes use.
    #[must_use]
    pub fn generate(task: &'static str, duration: Duration, entropy: &dyn Entropy) -> Self {
        let mut bytes = [0; HOLDER_BYTES];
        entropy.fill(&mut bytes);
        let id = hex(&bytes);
        Self { task, id, duration }
    }

    /// Creates the holder for a store that only one process uses. After a restart, the next process takes the lease
    /// over immediately.
    #[must_use]
    pub fn exclusive(task: &'static str, duration: Duration) -> Self {
        let id = "sole".to_owned();
        Self { task, id, duration }
    }

    /// Acquires or renews the lease in the unit of work. Returns whether this process holds it. No other process can
    /// acquire it before the unit ends.
    pub(super) async fn acquire_in(&self, uow: &mut dyn UnitOfWork) -> Result<bool> {
        let now = uow.now().await?;
        let of_task = MaintenanceLeaseQuery::Of(self.task.to_owned());
        let mut claimed = unowned_records::<MaintenanceLease>(uow)
            .claim(&of_task, 1)
            .await?;
        let next = MaintenanceLease {
            task: self.task.to_owned(),
            holder: self.id.clone(),
            expires_at: now.plus(self.duration),
        };
        let Some(seen) = claimed.pop() else {
            return self.insert(uow, next).await;
        };
        let is_ours = seen.holder == self.id;
        if !is_ours && now < seen.expires_at {
            return Ok(false);
        }
        // A lease with more than half of its time left is not renewed.
        if !is_ours || seen.expires_at.since(now) < self.duration / 2 {
            unaudited::replace(uow, &seen, next).await?;
        }
        Ok(true)
    }

    /// Inserts the lease. Returns `false` if it exists, because another unit of work has locked it.
    async fn insert(&self, uow: &mut dyn UnitOfWork, lease: MaintenanceLease) -> Result<bool> {
        let found = unowned_records::<MaintenanceLease>(uow)
            .find(self.task)
            .await?;
        if found.is_some() {
            return Ok(false);
        }
        match unaudited::insert(uow, lease).await {
            Ok(_) => Ok(true),
            Err(Error::Store(error)) => Err(error.conflict_as_retry().into()),
            Err(error) => Err(error),
        }
    }

    /// Acquires or renews the lease in a unit of work of its own. Returns whether this process holds it.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn acquire(&self, store: &dyn Store) -> Result<bool> {
        transact_in(Mode::ReadCommitted, store, |uow, _| {
            Box::pin(self.acquire_in(uow))
        })
        .await
    }

    /// Releases the lease if this process holds it.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn release(&self, store: &dyn Store) -> Result<()> {
        transact_in(Mode::ReadCommitted, store, |uow, _| {
            Box::pin(async move {
                // Not a claim, which skips a lease that another process is checking at this moment.
                let leases = unowned_records::<MaintenanceLease>(uow);
                let Some(seen) = leases.find(self.task).await? else {
                    return Ok(());
                };
                if seen.holder != self.id {
                    return Ok(());
                }
                match unaudited::remove(uow, &seen).await {
                    Err(Error::Store(error)) => Err(error.conflict_as_retry().into()),
                    removed => removed,
                }
            })
        })
        .await
    }
}
