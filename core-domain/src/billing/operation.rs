//! Operations: changes of a subscription that wait for a charge (contract: "Upgrade in full").

use std::time::Duration;

use super::calendar::Interval;
use super::plan::PlanTier;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{
    BillingOperationId, CustomerId, InvoiceId, SubscriptionId, Timestamp, record, state_machine,
    text_enum,
};

/// The time in which a first invoice, or the invoice of an upgrade, can be paid.
pub const TIME_TO_PAY: Duration = Duration::from_secs(23 * 60 * 60);

text_enum! {
    /// What an operation does when its invoice is paid.
    pub enum OperationKind {
        /// Activates a new subscription. If the first charge fails, nothing is kept.
        CreateOrNothing = "create_or_nothing",
        /// Changes the price of a subscription.
        Change = "change",
        /// Begins a new period of a paused subscription.
        Resume = "resume",
    }
}

text_enum! {
    /// The status of an operation.
    pub enum OperationStatus {
        /// The outcome of the charge is open.
        Running = "running",
        /// The customer must confirm the charge.
        Waiting = "waiting",
        /// The invoice was paid, and the change is made.
        Done = "done",
        /// The invoice was not paid, and the change is not made.
        Failed = "failed",
    }
}

state_machine! {
    /// The events of an operation, which is created `running`.
    pub enum OperationEvent moves OperationStatus {
        /// The customer must confirm the charge.
        Wait = "wait": [Running] => Waiting;
        /// The invoice was paid.
        Finish = "finish": [Running, Waiting] => Done;
        /// The invoice was not paid.
        Fail = "fail": [Running, Waiting] => Failed;
    }
}

/// A change of a subscription that waits for a charge. A subscription has at most one that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct BillingOperation {
    /// The id of the operation.
    pub id: BillingOperationId,
    /// The subscription.
    pub subscription_id: SubscriptionId,
    /// The customer that pays.
    pub customer_id: CustomerId,
    /// What the operation does.
    pub kind: OperationKind,
    /// The status.
    pub status: OperationStatus,
    /// The invoice that is charged.
    pub invoice_id: InvoiceId,
    /// The tier of the new price.
    pub tier: PlanTier,
    /// The version of the new price.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "1_u32..=9"))]
    pub plan_version: u32,
    /// The length of a period.
    pub interval: Interval,
    /// The number of units.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "1_u32..=1000"))]
    pub quantity: u32,
    /// What the current period is invoiced with when the invoice is paid, in minor units.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub billed_amount: i64,
    /// The instant of the change.
    pub at: Timestamp,
    /// Whether a new period begins at that instant.
    pub restarts_period: bool,
    /// When the operation fails if the invoice is not paid by then.
    pub expires_at: Timestamp,
    /// When the operation was created.
    pub created_at: Timestamp,
    /// When the status last changed.
    pub updated_at: Timestamp,
}

record! {
    BillingOperation as "billing operation" by id, asked BillingOperationQuery;
}

/// Queries for operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BillingOperationQuery {
    /// The operation of a subscription that has not ended.
    OpenOf(SubscriptionId),
    /// The operation with this invoice.
    WithInvoice(InvoiceId),
    /// The operations that have not ended and expire by an instant, the first to expire first.
    Due {
        /// The customer; `None` for all.
        of: Option<CustomerId>,
        /// The instant.
        by: Timestamp,
    },
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::assert_only_table_moves;

    proptest! {
        #[test]
        fn only_the_moves_of_the_table_happen(events: Vec<OperationEvent>) {
            assert_only_table_moves(OperationStatus::Running, &events);
        }
    }
}
