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
    /// When the attempt was stored.
    pub created_at: Timestamp,
    /// When the status last changed.
    pub updated_at: Timestamp,
}

record! {
    PaymentAttempt as "payment attempt" by id, asked PaymentAttemptQuery;
}

/// Queries for attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentAttemptQuery {
    /// The attempts of an invoice, newest first.
    Of(InvoiceId),
    /// The attempt of an invoice whose outcome is open.
    OpenOf(InvoiceId),
    /// The attempts whose outcome is open and which were last changed before an instant, oldest first.
    OpenSince(Timestamp),
}

/// The times of the attempts, counted from the moment at which the invoice became final.
const SCHEDULE_DAYS: [u64; 5] = [0, 1, 3, 5, 7];

/// Returns when an invoice is charged next, after a number of attempts. Returns `None` after the last one.
#[must_use]
pub fn next_attempt_at(finalized_at: Timestamp, attempts: u32) -> Option<Timestamp> {
    let days = SCHEDULE_DAYS.get(usize::try_from(attempts).ok()?)?;
    Some(finalized_at.plus(Duration::from_secs(days * 24 * 60 * 60)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::assert_only_table_moves;

    #[test]
    fn an_invoice_is_charged_five_times_within_seven_days() {
        let start = Timestamp::EPOCH;
        let days = |attempts| {
            let next = next_attempt_at(start, attempts)?;
            Some(next.since(start).as_secs() / 86_400)
        };
        let all: Vec<_> = (0..6).map(days).collect();
        assert_eq!(all, [Some(0), Some(1), Some(3), Some(5), Some(7), None]);
    }

    proptest! {
        #[test]
        fn only_the_moves_of_the_table_happen(events: Vec<AttemptEvent>) {
            assert_only_table_moves(AttemptStatus::Ready, &events);
        }
    }
}
