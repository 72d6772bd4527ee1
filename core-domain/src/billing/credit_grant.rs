//! Credits: amounts that pay for later invoices (contract: "Credit").

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::journal::CreditSource;
use super::money::{Currency, Money, MoneyError};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{
    CreditGrantId, CustomerId, InvoiceId, Line, PlatformId, Timestamp, record, state_machine,
    text_enum,
};

text_enum! {
    /// The status of a credit.
    pub enum CreditStatus {
        /// Something is left of the credit.
        Active = "active",
        /// Nothing is left of the credit.
        Exhausted = "exhausted",
        /// The rest of the credit has expired.
        Expired = "expired",
        /// An operator has withdrawn the rest of the credit.
        Voided = "voided",
    }
}

state_machine! {
    /// The events of a credit, which is created `active`.
    pub enum CreditEvent moves CreditStatus {
        /// The last part of the credit was applied to an invoice.
        Exhaust = "exhaust": [Active] => Exhausted, "credit.exhausted";
        /// An invoice was cancelled, and its part of the credit is returned.
        Return = "return": [Exhausted] => Active, "credit.returned";
        /// The credit expires.
        Expire = "expire": [Active] => Expired, "credit.expired";
        /// An operator withdraws the credit.
        Withdraw = "withdraw": [Active] => Voided, "credit.voided";
    }
}

text_enum! {
    /// Whether a credit was given or paid for.
    pub enum CreditCategory {
        /// The operator gave the credit.
        Promotional = "promotional",
        /// The customer has paid for the credit.
        Paid = "paid",
    }
}

impl CreditCategory {
    /// Returns the source of the value, for the journal.
    #[must_use]
    pub const fn source(self) -> CreditSource {
        match self {
            Self::Promotional => CreditSource::Promotional,
            Self::Paid => CreditSource::Paid,
        }
    }
}

/// A credit of a customer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct CreditGrant {
    /// The id of the credit.
    pub id: CreditGrantId,
    /// The id of the customer who has the credit.
    pub customer_id: CustomerId,
    /// The platform that the customer pays for. `null` if there is none.
    pub platform_id: Option<PlatformId>,
    /// The granted amount in minor units.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub amount: i64,
    /// The amount that is left, in minor units.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub remaining: i64,
    /// The currency of the amounts.
    pub currency: Currency,
    /// The reason for the credit, for people.
    pub description: CreditDescription,
    /// Whether the credit was given or paid for.
    pub category: CreditCategory,
    /// The order in which credits are used, from 0 to 100: lower ones first.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "0_u32..=100"))]
    pub priority: u32,
    /// When the credit was granted.
    pub effective_at: Timestamp,
    /// When the rest expires. `null` if it does not.
    pub expires_at: Option<Timestamp>,
    /// The status.
    pub status: CreditStatus,
    /// The operator who granted the credit: the id of a user or the name of a service.
    pub created_by: String,
    /// When the record was created.
    pub created_at: Timestamp,
}

/// The reason for a credit: one line of 1 to 500 characters.
pub type CreditDescription = Line<1, 500>;

record! {
    CreditGrant as "credit" by id, asked CreditGrantQuery;
    audited in |credit| credit.platform_id.as_ref();
}

impl CreditGrant {
    /// Returns what is left.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the stored amount is too large.
    pub fn remaining(&self) -> Result<Money, MoneyError> {
        Money::new(self.remaining.into(), self.currency)
    }

    /// Returns the reference of the entry for the part of a cancelled invoice that ended at once, because its credit had
    /// ended before.
    #[must_use]
    pub fn return_reference(credit: &CreditGrantId, invoice: &InvoiceId) -> String {
        format!("{credit}:{invoice}")
    }

    /// Returns whether the credit can be applied to an invoice at an instant.
    #[must_use]
    pub fn is_usable(&self, currency: Currency, now: Timestamp) -> bool {
        self.status == CreditStatus::Active
            && self.currency == currency
            && self.expires_at.is_none_or(|expires_at| now < expires_at)
    }

    /// Compares two credits by the order in which they are used: by priority, then those that expire first, then
    /// promotional ones, then older ones.
    #[must_use]
    pub fn use_order(&self, other: &Self) -> Ordering {
        let key = |credit: &Self| {
            (
                credit.priority,
                credit.expires_at.is_none(),
                credit.expires_at,
                credit.category,
                credit.effective_at,
                credit.id.clone(),
            )
        };
        key(self).cmp(&key(other))
    }
}

/// Queries for credits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreditGrantQuery {
    /// The credits of a customer, newest first.
    Of(CustomerId),
    /// The credits of all customers of which something is left.
    Active,
    /// The credits of a customer of which something is left.
    ActiveOf(CustomerId),
    /// The credits that expire by an instant, the first to expire first.
    Due {
        /// The customer; `None` for all.
        of: Option<CustomerId>,
        /// The instant.
        by: Timestamp,
    },
}

/// Request body that grants a credit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantCredit {
    /// The id of the customer who has the credit.
    pub customer_id: CustomerId,
    /// The amount in minor units, above 0.
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    pub amount: i64,
    /// The currency. Default: `usd`.
    #[serde(default = "default_currency")]
    #[schemars(length(equal = 3), example = &"usd")]
    pub currency: String,
    /// The reason for the credit, for people.
    pub description: CreditDescription,
    /// Whether the credit is given or paid for. Default: `promotional`.
    #[serde(default = "default_category")]
    pub category: CreditCategory,
    /// The order in which credits are used, from 0 to 100: lower ones first. Default: 50.
    #[serde(default = "default_priority")]
    #[schemars(range(max = 100))]
    pub priority: u32,
    /// When the rest expires. Default: never.
    pub expires_at: Option<Timestamp>,
}

fn default_currency() -> String {
    Currency::USD.code()
}

const fn default_category() -> CreditCategory {
    CreditCategory::Promotional
}

const fn default_priority() -> u32 {
    50
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::assert_only_table_moves;
    use crate::kernel::strategy::fixed_sample;

    #[test]
    fn credits_are_used_by_priority_then_expiry_then_category() {
        let sample = fixed_sample::<CreditGrant>(1);
        let credit = |priority, expires_at: Option<i64>, category| CreditGrant {
            priority,
            expires_at: expires_at.map(Timestamp::from_seconds),
            category,
            ..sample[0].clone()
        };
        let ordered = [
            credit(1, None, CreditCategory::Paid),
            credit(2, Some(5), CreditCategory::Paid),
            credit(2, Some(9), CreditCategory::Promotional),
            credit(2, Some(9), CreditCategory::Paid),
            credit(2, None, CreditCategory::Promotional),
            credit(2, None, CreditCategory::Paid),
        ];
        let mut sorted: Vec<_> = ordered.iter().rev().cloned().collect();
        sorted.sort_by(CreditGrant::use_order);
        assert_eq!(sorted, ordered);
    }

    proptest! {
        #[test]
        fn only_the_moves_of_the_table_happen(events: Vec<CreditEvent>) {
            assert_only_table_moves(CreditStatus::Active, &events);
        }
    }
}
