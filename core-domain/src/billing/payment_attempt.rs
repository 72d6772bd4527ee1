//! Attempts to charge an invoice (contract: "Payment attempt" and "Dunning").

use std::time::Duration;

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{
    CustomerId, InvoiceId, PaymentAttemptId, Timestamp, record, state_machine, text_enum,
};

text_enum! {
    /// The status of an attempt to charge an invoice.
    pub enum AttemptStatus {
        /// The attempt is stored, and the provider has not been called yet.
        Ready = "ready",
        /// The provider has been called.
        Sent = "sent",
        /// The provider's response was lost or cannot be trusted.
        Unknown = "unknown",
        /// The customer must confirm the charge.
        ActionRequired = "action_required",
        /// The invoice was charged.
        Succeeded = "succeeded",
        /// The charge was declined.
        Failed = "failed",
        /// The provider has certainly not charged the invoice.
        NotExecuted = "not_executed",
    }
}

impl AttemptStatus {
    /// The statuses of an attempt whose outcome is open. An invoice has at most one such attempt.
    pub const OPEN: &'static [Self] = &[Self::Ready, Self::Sent, Self::Unknown];
}

state_machine! {
    /// The events of an attempt, which is created `ready`.
    pub enum AttemptEvent moves AttemptStatus {
        /// The provider is called.
        Send = "send": [Ready, Sent, Unknown] => Sent;
        /// The outcome of the call is unknown.
        Lose = "lose": [Sent] => Unknown;
        /// The customer must confirm the charge.
        RequireAction = "require_action": [Sent, Unknown] => ActionRequired;
        /// The invoice was charged.
        Succeed = "succeed": [Sent, Unknown, ActionRequired] => Succeeded;
        /// The charge was declined.
        Fail = "fail": [Sent, Unknown, ActionRequired] => Failed;
        /// The provider has not executed the call.
        Skip = "skip": [Ready, Sent, Unknown] => NotExecuted;
    }
}

/// An attempt to charge an invoice.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct PaymentAttempt {
    /// The id of the attempt, from which the key at the provider is derived.
    pub id: PaymentAttemptId,
    /// The invoice.
    pub invoice_id: InvoiceId,
    /// The customer.
    pub customer_id: CustomerId,
    /// The number of the attempt, from 1.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub number: i64,
    /// The payment method that is charged.
    pub payment_method_id: String,
    /// The status.
    pub status: AttemptStatus,
    /// Why the charge was declined: the code of the issuer or, if it gave none, of the provider. `None` if it was not.
    pub decline_code: Option<String>,
    /// Whether a later attempt with the same card is pointless.
    pub is_hard: bool,
    /// The instant of the attempt, on the clock of billing.
    pub created_at: Timestamp,
    /// When the status last changed, on the clock of the store.
    pub updated_at: Timestamp,
}

record! {
    PaymentAttempt as "payment attempt" by id, asked PaymentAttemptQuery;
}

/// Queries for attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentAttemptQuery {
    /// The attempts of an invoice, by descending number. Attempts of one second have no other order.
    Of(InvoiceId),
    /// The attempt of an invoice whose outcome is open.
    OpenOf(InvoiceId),
    /// The attempts of a customer whose outcome is open.
    OpenOfCustomer(CustomerId),
    /// The attempts whose outcome is open and which were last changed before an instant, oldest first.
    OpenSince(Timestamp),
    /// The attempts whose outcome is unknown.
    Unknown,
}

/// The times of the attempts, counted from the moment at which the invoice became final.
const SCHEDULE_DAYS: [u64; 5] = [0, 1, 3, 5, 7];

/// Returns the first time of the schedule after an instant at which an invoice is charged. Returns `None` after the last
/// one.
#[must_use]
pub fn next_attempt_after(finalized_at: Timestamp, instant: Timestamp) -> Option<Timestamp> {
    let mut times = SCHEDULE_DAYS
        .iter()
        .map(|days| after_days(finalized_at, *days));
    times.find(|time| *time > instant)
}

/// Returns when the collection of an invoice is given up at the latest.
#[must_use]
pub fn collection_ends_at(finalized_at: Timestamp) -> Timestamp {
    let last = SCHEDULE_DAYS.last().copied().unwrap_or(0);
    after_days(finalized_at, last)
}

fn after_days(instant: Timestamp, days: u64) -> Timestamp {
    instant.plus(Duration::from_secs(days * 24 * 60 * 60))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::assert_only_table_moves;

    #[test]
    fn an_invoice_is_charged_five_times_within_seven_days() {
        let start = Timestamp::EPOCH;
        let (mut at, mut days) = (start, vec![0]);
        while let Some(next) = next_attempt_after(start, at) {
            days.push(next.since(start).as_secs() / 86_400);
            at = next;
        }
        assert_eq!(days, [0, 1, 3, 5, 7]);
        assert_eq!(at, collection_ends_at(start));
    }

    proptest! {
        #[test]
        fn only_the_moves_of_the_table_happen(events: Vec<AttemptEvent>) {
            assert_only_table_moves(AttemptStatus::Ready, &events);
        }
    }
}
