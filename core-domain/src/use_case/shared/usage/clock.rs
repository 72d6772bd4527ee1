//! The clock of billing: that of the store or, for tests, one that is ahead of it. Metered usage and billing read the same
//! clock.

use crate::access::unowned_records;
use crate::billing::TestClock;
use crate::kernel::{Result, Timestamp};
use crate::port::UnitOfWork;

/// The clock that billing and metered usage read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BillingClock {
    /// The clock of the store.
    #[default]
    Store,
    /// The clock of the store, moved forward by an operator. A year of billing then takes seconds.
    Test,
}

impl BillingClock {
    /// Returns the current instant of this clock.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn now(self, uow: &mut dyn UnitOfWork) -> Result<Timestamp> {
        let now = uow.now().await?;
        self.at(uow, now).await
    }

    /// Returns the instant of this clock for an instant of the store.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn at(self, uow: &mut dyn UnitOfWork, store: Timestamp) -> Result<Timestamp> {
        if self == Self::Store {
            return Ok(store);
        }
        let id = TestClock::ID.to_owned();
        let clock = unowned_records::<TestClock>(uow).find(&id).await?;
        Ok(clock.map_or(store, |clock| clock.at(store)))
    }
}
