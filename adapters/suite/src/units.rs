//! Units of work of the program that embeds the suite: its own statements and use cases of the suite in one transaction.
//!
//! ```
//! # #[cfg(feature = "sqlite")]
//! # async fn sell(suite: &core_suite::Suite) -> core_suite::units::Result<()> {
//! use core_suite::units::enlist_sqlite;
//!
//! let units = suite.units();
//! units.transact(|unit, _| Box::pin(async move {
//!     // .. call use cases of the suite with `units.context()` and `unit` ..
//!     enlist_sqlite(unit, |connection| connection.execute("INSERT INTO orders VALUES ('a chair')", [])).await?;
//!     Ok(())
//! })).await
//! # }
//! ```
//!
//! The body runs again if the unit conflicts with a concurrent one, so it must have no effect outside of the unit. If it
//! returns an error, nothing is stored. The program creates its own tables over its own connections, before it uses them.
//!
//! `enlist_sqlx` (feature `sqlx`) passes the `sqlx::PgConnection` of the unit, `enlist_sqlite` (feature `sqlite`) the
//! `rusqlite::Connection`. On the other stores they fail. `examples/embed` has a complete program (`customers`).

use std::sync::Arc;

use core_domain::kernel::Context;
use core_domain::port::{Store, transact};

pub use core_domain::kernel::{Error, Result};
pub use core_domain::port::{Env, UnitOfWork, Work};
#[cfg(feature = "sqlx")]
pub use core_sqlx::{HostWork, enlist as enlist_sqlx, sqlx};
#[cfg(feature = "sqlite")]
pub use core_storage::sqlite::{enlist as enlist_sqlite, rusqlite};

/// Runs units of work on behalf of the host program. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Units {
    store: Arc<dyn Store>,
    cx: Context,
}

impl Units {
    pub(crate) fn new(store: Arc<dyn Store>, cx: Context) -> Self {
        Self { store, cx }
    }

    /// Returns the context for the use cases of the suite. They see the caller `host`, who has the permissions of an
    /// operator.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.cx
    }

    /// Runs the body in a unit of work that writes, and commits it. If the unit conflicts with a concurrent one, runs the
    /// body again after a pause, see [`core_domain::port::transact`]. After the commit the suite continues with what
    /// follows from it: it starts jobs, and sends messages and mails.
    ///
    /// # Errors
    /// The error of the body; `SERVICE_UNAVAILABLE` if the store failed or every run met a conflict.
    pub async fn transact<'env, T, F>(&self, body: F) -> Result<T>
    where
        F: for<'unit> Fn(&'unit mut dyn UnitOfWork, Env<'unit, 'env>) -> Work<'unit, T>
            + Send
            + Sync,
    {
        transact(self.store.as_ref(), body).await
    }
}
