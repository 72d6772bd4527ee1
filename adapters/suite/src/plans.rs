//! The versions of the plans: moves subscriptions from one to another.
//!
//! A subscription keeps the version of its plan through all renewals, also after a new version was configured.
//! [`Plans::migrate`] moves all subscriptions of a version, each at its first boundary 30 days or more after a mail to its
//! customer. `core-server migrate-plan FROM TO` does the same.
//!
//! ```
//! # async fn move_all(suite: &core_suite::Suite) -> Result<(), Box<dyn std::error::Error>> {
//! let plans = suite.plans();
//! let summary = plans.migrate("growth:1".parse()?, "growth:2".parse()?).await?;
//! println!("{} subscriptions will move", summary.planned);
//! # Ok(()) }
//! ```

use std::sync::Arc;

use core_domain::access::authorize_operator;
use core_domain::kernel::{Context, Entropy, Result};
use core_domain::port::Store;
use core_domain::use_case::billing::{Billing, plan_migration};

pub use core_domain::billing::{PlanTier, PlanVersionName, PlanVersionNameError};
pub use core_domain::use_case::billing::plan_migration::MigrationSummary;

/// Moves subscriptions between the versions of the plans. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Plans {
    store: Arc<dyn Store>,
    billing: Arc<Billing>,
    cx: Context,
}

impl Plans {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        billing: Arc<Billing>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        Self {
            store,
            billing,
            cx: Context::system(entropy),
        }
    }

    /// Plans the move of all subscriptions of a version to another version, and queues a mail to each customer. Call it
    /// again after an interruption: no customer is notified twice. A customer can still choose another plan or cancel.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` names the version that was never configured, or that cannot be the target.
    pub async fn migrate(
        &self,
        from: PlanVersionName,
        to: PlanVersionName,
    ) -> Result<MigrationSummary> {
        let scope = authorize_operator(&self.cx)?;
        let (store, billing) = (self.store.as_ref(), self.billing.as_ref());
        plan_migration::migrate_plan(&self.cx, &scope, store, billing, from, to).await
    }
}
