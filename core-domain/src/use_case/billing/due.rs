//! What time changes in billing, and when: subscriptions, invoices to charge, credits and changes that expire.

use std::collections::BTreeMap;

use super::Billing;
use super::advance_job::{Advance, AdvanceInput};
use crate::access::{SystemScope, unowned_records};
use crate::billing::{
    BillingOperation, BillingOperationQuery, CreditGrant, CreditGrantQuery, Invoice, InvoiceQuery,
    Subscription, SubscriptionQuery,
};
use crate::kernel::{
    Context, CreditGrantId, CustomerId, InvoiceId, Result, SubscriptionId, Timestamp,
};
use crate::port::{Mode, Store, UnitOfWork, transact};
use crate::provisioning::JobStatus;
use crate::use_case::provisioning::enqueue_many;

/// The most records of a kind that one run looks at.
const MAX_DUE: u32 = 10_000;

/// The number of jobs that are queued in one unit of work.
const JOBS_PER_UNIT: usize = 200;

/// Something that is due for a customer. Of what is due at the same instant, the first variant comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DueItem {
    /// A credit expires.
    Credit(CreditGrantId),
    /// A change was not paid in time.
    Operation(InvoiceId),
    /// A period, a trial or an unpaid subscription ends.
    Subscription(SubscriptionId),
    /// An invoice is charged.
    Invoice(InvoiceId),
}

/// Something that is due at an instant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due {
    pub(super) at: Timestamp,
    pub(super) item: DueItem,
    pub(super) customer: CustomerId,
    /// The version of the record.
    pub(super) version: i64,
}

/// Returns what is due by an instant, for one customer or for all: the first `limit` of each kind.
async fn list(
    uow: &mut dyn UnitOfWork,
    of: Option<&CustomerId>,
    by: Timestamp,
    limit: u32,
) -> Result<Vec<Due>> {
    let mut due = Vec::new();
    let query = CreditGrantQuery::Due {
        of: of.cloned(),
        by,
    };
    for credit in unowned_records::<CreditGrant>(uow)
        .list(&query, limit)
        .await?
    {
        due.extend(credit.expires_at.map(|at| Due {
            at,
            item: DueItem::Credit(credit.id.clone()),
            customer: credit.customer_id.clone(),
            version: credit.version(),
        }));
    }
    let query = BillingOperationQuery::Due {
        of: of.cloned(),
        by,
    };
    let operations = unowned_records::<BillingOperation>(uow);
    for operation in operations.list(&query, limit).await? {
        due.push(Due {
            at: operation.expires_at,
            item: DueItem::Operation(operation.invoice_id.clone()),
            customer: operation.customer_id.clone(),
            version: operation.version(),
        });
    }
    let query = SubscriptionQuery::Due {
        of: of.cloned(),
        by,
    };
    let subscriptions = unowned_records::<Subscription>(uow);
    for subscription in subscriptions.list(&query, limit).await? {
        due.extend(subscription.due_at.map(|at| Due {
            at,
            item: DueItem::Subscription(subscription.id.clone()),
            customer: subscription.customer_id.clone(),
            version: subscription.version(),
        }));
    }
    let query = InvoiceQuery::Due {
        of: of.cloned(),
        by,
    };
    for invoice in unowned_records::<Invoice>(uow).list(&query, limit).await? {
        due.extend(invoice.due_at.map(|at| Due {
            at,
            item: DueItem::Invoice(invoice.id.clone()),
            customer: invoice.customer_id.clone(),
            version: invoice.version(),
        }));
    }
    due.sort();
    Ok(due)
}

/// Returns what is due first for a customer by an instant.
pub(super) async fn first_of(
    uow: &mut dyn UnitOfWork,
    customer: &CustomerId,
    by: Timestamp,
) -> Result<Option<Due>> {
    let due = list(uow, Some(customer), by, 1).await?;
    Ok(due.into_iter().next())
}

/// The customers for whom something is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DueCustomers {
    /// The number of customers whose jobs run or will run.
    pub running: usize,
    /// The number of customers whose jobs wait for the payment provider, or have failed.
    pub waiting: usize,
}

/// Queues a job for each customer for whom something is due now, unless there is one. Call it every few seconds, on any
/// number of nodes.
///
/// # Errors
/// Only those of the store.
pub async fn queue_due(cx: &Context, store: &dyn Store, billing: &Billing) -> Result<DueCustomers> {
    let mut uow = store.begin(Mode::Read).await?;
    let now = billing.now(uow.as_mut()).await?;
    let due = list(uow.as_mut(), None, now, MAX_DUE).await;
    uow.rollback().await;
    let mut first = BTreeMap::new();
    for due in due? {
        first.entry(due.customer.clone()).or_insert(due);
    }
    let inputs = first.into_values().map(|due| AdvanceInput {
        customer_id: due.customer,
        due_at: due.at,
        version: due.version,
    });
    let inputs: Vec<_> = inputs.collect();
    let mut customers = DueCustomers::default();
    for inputs in inputs.chunks(JOBS_PER_UNIT) {
        let jobs = transact(store, |uow, _| {
            Box::pin(
                async move { enqueue_many::<Advance>(cx, &SystemScope::new(), uow, inputs).await },
            )
        });
        for job in jobs.await? {
            match job.status {
                JobStatus::Queued | JobStatus::Running => customers.running += 1,
                JobStatus::Waiting | JobStatus::Failed | JobStatus::Completed => {
                    customers.waiting += 1;
                }
            }
        }
    }
    Ok(customers)
}
