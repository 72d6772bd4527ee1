//! Charges whose process has died.

use std::time::Duration;

use super::{Billing, charge};
use crate::access::unowned_records;
use crate::billing::{PaymentAttempt, PaymentAttemptQuery};
use crate::kernel::{Context, Result};
use crate::port::{Mode, Store};

/// The time after which the process that runs an attempt is taken for dead. It is longer than any call of a provider.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(60);

/// The most records of a kind that one run looks at.
const MAX_RECORDS: u32 = 100;

/// Finds out the outcome of charges that were interrupted. Returns the number of charges that were settled. Call it every
/// few minutes; a charge that fails is tried again in the next run.
///
/// # Errors
/// Only those of the store.
pub async fn recover(cx: &Context, store: &dyn Store, billing: &Billing) -> Result<usize> {
    let mut uow = store.begin(Mode::Read).await?;
    let before = uow.now().await?.minus(ATTEMPT_TIMEOUT);
    let open = PaymentAttemptQuery::OpenSince(before);
    let open = unowned_records::<PaymentAttempt>(uow.as_mut())
        .list(&open, MAX_RECORDS)
        .await;
    uow.rollback().await;
    let mut settled = 0;
    for attempt in open? {
        let outcome = charge::run(cx, store, billing, &attempt.id).await;
        settled += usize::from(outcome.is_ok());
    }
    Ok(settled)
}
