//! Details of customers at the payment provider: they follow the customer's record.

use super::Billing;
use super::provider::{details_of, payments_error};
use super::provider_run::ProviderRun;
use crate::access::{unaudited, unowned_records};
use crate::billing::{Customer, CustomerQuery};
use crate::kernel::{CustomerId, Result, Stored, Timestamp};
use crate::port::{Mode, OpKey, PaymentsError, Store, UnitOfWork, transact};

/// The most customers that one run sends.
const MAX_CUSTOMERS: u32 = 100;

/// Sends the changed details of customers to the provider. Call it every few minutes. Details that cannot be sent now are
/// sent in a later run, after those of all other customers.
///
/// # Errors
/// `PAYMENT_PROVIDER_UNAVAILABLE` if the provider cannot be reached.
pub async fn send_details(store: &dyn Store, billing: &Billing) -> Result<ProviderRun> {
    let mut uow = store.begin(Mode::Read).await?;
    let unsent = unowned_records::<Customer>(uow.as_mut())
        .list(&CustomerQuery::Unsent, MAX_CUSTOMERS)
        .await;
    uow.rollback().await;
    let mut run = ProviderRun::default();
    for customer in unsent? {
        let is_sent = match send(billing, &customer).await {
            Ok(()) => true,
            Err(error) if error.concerns_all() => return Err(payments_error(error)),
            Err(error) => {
                run.fail(customer.id.as_str(), &error);
                false
            }
        };
        run.done += usize::from(is_sent);
        transact(store, |uow, _| {
            let (id, since) = (&customer.id, customer.unsent_since);
            Box::pin(async move { record_sending(uow, id, since, is_sent).await })
        })
        .await?;
    }
    Ok(run)
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

/// Records whether the details were sent, unless they have changed since.
async fn record_sending(
    uow: &mut dyn UnitOfWork,
    customer: &CustomerId,
    since: Option<Timestamp>,
    is_sent: bool,
) -> Result<()> {
    let seen = unowned_records::<Customer>(uow).get(customer).await?;
    if seen.unsent_since != since {
        return Ok(());
    }
    let mut next = seen.edit();
    next.unsent_since = match is_sent {
        true => None,
        false => Some(uow.now().await?),
    };
    unaudited::replace(uow, &seen, next).await.map(drop)
}
