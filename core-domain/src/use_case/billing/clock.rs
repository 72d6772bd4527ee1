//! The test clock of billing, which an operator moves forward.

use crate::access::{OperatorScope, unaudited, unowned_records};
use crate::billing::TestClock;
use crate::kernel::{Code, Error, Result, Timestamp};
use crate::port::UnitOfWork;

pub use crate::use_case::shared::usage::BillingClock;

/// Moves the clock of billing forward to an instant. It runs on from there. Without an instant, nothing is moved. Returns
/// the current instant of billing.
///
/// # Errors
/// - `INVALID_STATE` if billing has no test clock.
/// - `VALIDATION_ERROR` if the instant is in the past.
pub async fn move_forward(
    _: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    clock: BillingClock,
    to: Option<Timestamp>,
) -> Result<Timestamp> {
    let now = clock.now(uow).await?;
    let Some(to) = to else {
        return Ok(now);
    };
    if clock == BillingClock::Store {
        return Err(Error::refused(
            Code::InvalidState,
            "The clock of billing can be moved only if the setting `billing.test_clock` is on.",
        ));
    }
    if to < now {
        let message = "The clock of billing runs forward. Give an instant that is not in the past.";
        return Err(Error::invalid("now", "invalid", message));
    }
    let ahead = to.since(uow.now().await?).as_millis();
    let ahead_ms = i64::try_from(ahead)
        .map_err(|_| Error::invalid("now", "invalid", "The instant is too late."))?;
    let id = TestClock::ID.to_owned();
    match unowned_records::<TestClock>(uow).find(&id).await? {
        Some(seen) => {
            let mut next = seen.edit();
            next.ahead_ms = ahead_ms;
            unaudited::replace(uow, &seen, next).await?;
        }
        None => {
            unaudited::insert(uow, TestClock { id, ahead_ms }).await?;
        }
    }
    Ok(to)
}
