//! How the jobs of billing fail: an outage of the provider, or of the database of a platform, is no failure, so they wait.

use std::time::Duration;

use super::provider::ChargeFailure;
use crate::kernel::{Error, StoreError, Timestamp};
use crate::port::PaymentsError;
use crate::provisioning::JobError;
use crate::use_case::provisioning::StepError;

/// The pause while the provider or a database cannot be reached.
const OUTAGE_PAUSE: Duration = Duration::from_secs(30);

/// The pauses before the outcome of a charge is looked up again: the first one that is longer than the charge is old,
/// else the last one.
const LOOK_UP_PAUSES: [Duration; 3] = [
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
];

/// The pause while another request changes the same customer.
const CONFLICT_PAUSE: Duration = Duration::from_secs(5);

/// Returns the error of a step that waits for another change of the customer.
pub(super) fn wait_for_other_change(now: Timestamp) -> StepError {
    wait_until(now.plus(CONFLICT_PAUSE), "another change of the customer")
}

/// Returns the error of a step that waits until an instant.
fn wait_until(until: Timestamp, reason: &str) -> StepError {
    StepError::Wait {
        until,
        reason: reason.to_owned(),
        output: None,
    }
}

/// Returns the error of a step whose call of the provider has failed. `age` is that of the charge whose outcome is unknown.
pub(super) fn step_error(failure: ChargeFailure, now: Timestamp, age: Duration) -> StepError {
    match failure {
        ChargeFailure::Unknown => {
            let mut pauses = LOOK_UP_PAUSES.into_iter();
            let pause = pauses.find(|pause| *pause > age);
            let pause = pause.unwrap_or(LOOK_UP_PAUSES[LOOK_UP_PAUSES.len() - 1]);
            wait_until(now.plus(pause), "the outcome of a charge")
        }
        ChargeFailure::Provider(PaymentsError::Throttled(pause)) => {
            wait_until(now.plus(pause), "the payment provider to accept requests")
        }
        ChargeFailure::Provider(
            error @ (PaymentsError::Invalid(_) | PaymentsError::Unauthorized(_)),
        ) => {
            let refused = JobError::new("PAYMENT_PROVIDER_REFUSED", error.to_string());
            StepError::Permanent(refused, None)
        }
        ChargeFailure::Provider(_) => wait_until(now.plus(OUTAGE_PAUSE), "the payment provider"),
        ChargeFailure::Store(error) => unit_error(error, now),
    }
}

/// Returns the error of a step whose unit of work has failed.
pub(super) fn unit_error(error: Error, now: Timestamp) -> StepError {
    match error {
        Error::Store(StoreError::Unavailable(_)) => {
            wait_until(now.plus(OUTAGE_PAUSE), "the database of the platform")
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_waits_while_a_database_cannot_be_reached() {
        let unavailable = || Error::Store(StoreError::unavailable("the cell cannot be reached"));
        let now = Timestamp::EPOCH;
        let age = Duration::ZERO;
        for error in [
            unit_error(unavailable(), now),
            step_error(ChargeFailure::Store(unavailable()), now, age),
        ] {
            assert!(matches!(error, StepError::Wait { until, .. } if until > now));
        }
        let refused = unit_error(Error::Forbidden, now);
        assert!(matches!(refused, StepError::Permanent(..)), "{refused:?}");
    }
}
