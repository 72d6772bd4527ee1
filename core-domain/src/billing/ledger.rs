//! Records of the embedded payment provider, whose money is simulated (contract: "Stand-ins").

use super::money::Currency;
use super::payment_method::Card;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{InvoiceId, Timestamp, record, text_enum};

text_enum! {
    /// A test card. Only these exist, with the numbers and ids that Stripe has for them.
    pub enum TestCard {
        /// Every charge succeeds.
        Visa = "4242424242424242",
        /// The card cannot be attached.
        Declined = "4000000000000002",
        /// The card cannot be attached, because it has no money.
        InsufficientFunds = "4000000000009995",
        /// The card can be attached, and every charge is declined.
        DeclinedLater = "4000000000000341",
        /// Every charge must be confirmed.
        AuthenticationRequired = "4000002760003184",
    }
}

impl TestCard {
    /// Returns the id of the payment method that stands for the card until it is attached.
    #[must_use]
    pub const fn method_id(self) -> &'static str {
        match self {
            Self::Visa => "pm_card_visa",
            Self::Declined => "pm_card_chargeDeclined",
            Self::InsufficientFunds => "pm_card_chargeDeclinedInsufficientFunds",
            Self::DeclinedLater => "pm_card_chargeCustomerFail",
            Self::AuthenticationRequired => "pm_card_authenticationRequired",
        }
    }

    /// Returns the card whose method has this id.
    #[must_use]
    pub fn of_method(id: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|card| card.method_id() == id)
    }

    /// Returns the public part of the card, which expires at the end of 2034.
    #[must_use]
    pub fn card(self) -> Card {
        let number = self.as_str();
        Card {
            brand: "visa".to_owned(),
            last4: number[number.len().saturating_sub(4)..].to_owned(),
            exp_month: 12,
            exp_year: 2034,
            country: Some("US".to_owned()),
            funding: "credit".to_owned(),
        }
    }
}

/// A payment method of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct LedgerMethod {
    /// The id: `pm_` and 32 hexadecimal digits.
    pub id: String,
    /// The card.
    pub card: TestCard,
    /// The customer at the ledger. `None` after the method was detached.
    pub customer: Option<String>,
    /// When the method was created.
    pub created_at: Timestamp,
}

record! {
    LedgerMethod as "payment method" by id, asked LedgerMethodQuery;
}

/// Queries for payment methods of the ledger, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerMethodQuery {
    /// The methods that are attached to a customer.
    Of(String),
}

/// A setup intent of the ledger: a page on which a customer enters a test card.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct LedgerSetupIntent {
    /// The id: `seti_` and 32 hexadecimal digits.
    pub id: String,
    /// SHA-256 digest of the secret, in hexadecimal.
    pub secret_hash: String,
    /// The customer at the ledger.
    pub customer: String,
    /// The method that was added. `None` until then.
    pub method_id: Option<String>,
    /// When the intent was created.
    pub created_at: Timestamp,
}

record! {
    LedgerSetupIntent as "setup intent" by id, asked LedgerSetupIntentQuery;
}

/// Queries for setup intents of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerSetupIntentQuery {
    /// The intents that were created before an instant, oldest first.
    Before(Timestamp),
}

text_enum! {
    /// The status of an invoice of the ledger.
    pub enum LedgerInvoiceStatus {
        /// The invoice can be paid.
        Open = "open",
        /// The invoice was paid.
        Paid = "paid",
        /// The invoice was written off.
        Uncollectible = "uncollectible",
        /// The invoice was cancelled.
        Void = "void",
    }
}

/// An invoice of the ledger, one for each invoice of the suite with an amount due.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct LedgerInvoice {
    /// The id of the invoice of the suite.
    pub id: InvoiceId,
    /// The customer at the ledger.
    pub customer: String,
    /// The amount to charge in minor units.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub amount_due: i64,
    /// The currency.
    pub currency: Currency,
    /// The status.
    pub status: LedgerInvoiceStatus,
    /// When the invoice was created.
    pub created_at: Timestamp,
}

record! {
    LedgerInvoice as "invoice" by id, asked LedgerInvoiceQuery;
}

/// Queries for invoices of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerInvoiceQuery {
    /// All invoices.
    All,
}

text_enum! {
    /// The outcome of a charge of the ledger.
    pub enum LedgerOutcome {
        /// The invoice was charged.
        Paid = "paid",
        /// The card was declined.
        Declined = "declined",
        /// The customer must confirm the charge.
        ActionRequired = "action_required",
    }
}

/// A charge of the ledger. A repeated request with the same key has the stored outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct LedgerCharge {
    /// The key of the request.
    #[cfg_attr(any(test, feature = "proptest"), proptest(regex = "[a-z0-9:]{1,40}"))]
    pub op_key: String,
    /// The invoice.
    pub invoice_id: InvoiceId,
    /// The number of the charge of the invoice, from 1.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub number: i64,
    /// The payment method.
    pub method_id: String,
    /// The outcome.
    pub outcome: LedgerOutcome,
    /// When the charge was made.
    pub created_at: Timestamp,
}

record! {
    LedgerCharge as "charge" by op_key, asked LedgerChargeQuery;
}

/// Queries for charges of the ledger, the last one first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerChargeQuery {
    /// The charges of an invoice.
    Of(InvoiceId),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_card_is_found_by_the_id_of_its_method() {
        for card in TestCard::ALL {
            assert_eq!(TestCard::of_method(card.method_id()), Some(*card));
        }
        assert_eq!(TestCard::of_method("pm_card_mastercard"), None);
        assert_eq!(TestCard::Visa.card().last4, "4242");
    }
}
