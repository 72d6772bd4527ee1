//! Details of customers at the payment provider: they follow the customer's record.

use super::Billing;
use crate::access::{unaudited, unowned_records};
use crate::billing::{Customer, CustomerQuery};
use crate::kernel::{CustomerId, Result, Stored, Timestamp};
use crate::port::{Mode, OpKey, PayingCustomer, PaymentsError, Store, UnitOfWork, transact};

/// The most customers that one run sends.
const MAX_CUSTOMERS: u32 = 100;

/// Returns the details that the provider gets.
pub(super) fn details_of(customer: &Customer) -> PayingCustomer {
    PayingCustomer {
        id: customer.id.clone(),
        platform_id: customer.platform_id.clone(),
        email: customer.email.as_str().to_owned(),
        name: customer.name.as_ref().map(|name| name.as_str().to_owned()),
    }
}

/// Sends the changed details of customers to the provider. Returns the number of customers. Call it every few minutes; what
/// cannot be sent now is sent in a later run.
///
/// # Errors
/// Only those of the store.
pub async fn send_details(store: &dyn Store, billing: &Billing) -> Result<usize> {
    let mut uow = store.begin(Mode::Read).await?;
    let unsent = unowned_records::<Customer>(uow.as_mut())
        .list(&CustomerQuery::Unsent, MAX_CUSTOMERS)
        .await;
    uow.rollback().await;
    let mut sent = 0;
    for customer in unsent? {
        if send(billing, &customer).await.is_err() {
            continue;
        }
        transact(store, |uow, _| {
            let (id, since) = (&customer.id, customer.unsent_since);
            Box::pin(async move { mark_sent(uow, id, since).await })
        })
        .await?;
        sent += 1;
    }
    Ok(sent)
}

async fn send(billing: &Billing, customer: &Stored<Customer>) -> Result<(), PaymentsError> {
    let Some(provider_id) = &customer.provider_id else {
        return Ok(());
    };
    let step = format!("details:{}", customer.version());
    let key = OpKey::new(customer.id.as_str(), &step);
    let details = details_of(customer);
    billing
        .payments
        .update_customer(&key, provider_id, &details)
        .await
}

/// Records that the details were sent, unless they have changed since.
async fn mark_sent(
    uow: &mut dyn UnitOfWork,
    customer: &CustomerId,
    since: Option<Timestamp>,
) -> Result<()> {
    let seen = unowned_records::<Customer>(uow).get(customer).await?;
    if seen.unsent_since != since {
        return Ok(());
    }
    let mut next = seen.edit();
    next.unsent_since = None;
    unaudited::replace(uow, &seen, next).await.map(drop)
}
