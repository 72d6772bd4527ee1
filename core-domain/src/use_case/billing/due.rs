//! The records that time changes, and when: subscriptions, invoices to charge, usage periods, credits and changes that
//! expire, and cards.

use crate::access::unowned_records;
use crate::billing::usage::{UsagePeriod, UsagePeriodQuery};
use crate::billing::{
    BillingOperation, BillingOperationQuery, CreditGrant, CreditGrantQuery, Customer,
    CustomerQuery, Invoice, InvoiceQuery, Subscription, SubscriptionQuery,
};
use crate::kernel::{
    CreditGrantId, CustomerId, InvoiceId, Result, SubscriptionId, Timestamp, UsagePeriodId,
};
use crate::port::UnitOfWork;

/// A change by time for a customer. Of the changes at the same instant, the first variant is made first.
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
    /// A usage period ends, or is priced and invoiced.
    Usage(UsagePeriodId),
    /// The customer is notified that the card expires.
    Card,
}

impl DueItem {
    /// Returns the kind and the id of the record. The record of a card is its customer.
    pub(super) fn record(&self) -> String {
        match self {
            Self::Credit(id) => format!("credit:{id}"),
            Self::Operation(id) => format!("operation:{id}"),
            Self::Subscription(id) => format!("subscription:{id}"),
            Self::Invoice(id) => format!("invoice:{id}"),
            Self::Usage(id) => format!("usage:{id}"),
            Self::Card => "card".to_owned(),
        }
    }
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
pub(super) async fn list(
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
    let query = UsagePeriodQuery::Due {
        of: of.cloned(),
        by,
    };
    let periods = unowned_records::<UsagePeriod>(uow);
    for period in periods.list(&query, limit).await? {
        let of_customer = period.due_at.zip(period.customer_id.clone());
        due.extend(of_customer.map(|(at, customer)| Due {
            at,
            item: DueItem::Usage(period.id.clone()),
            customer,
            version: period.version(),
        }));
    }
    let query = CustomerQuery::CardNoticeDue {
        of: of.cloned(),
        by,
    };
    let customers = unowned_records::<Customer>(uow);
    for customer in customers.list(&query, limit).await? {
        due.extend(customer.card_notice_at.map(|at| Due {
            at,
            item: DueItem::Card,
            customer: customer.id.clone(),
            version: customer.version(),
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
