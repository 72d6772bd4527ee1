//! Use cases of billing: customers, payment methods, subscriptions, invoices, credits and the journal.
//!
//! The suite owns subscriptions, periods, proration and credits. The payment provider ([`crate::port::Payments`]) knows
//! customers, payment methods and one invoice for each invoice of the suite. It is never called inside a unit of work: a
//! first unit stores what is to be done, then the provider is called, and a second unit stores the outcome. See
//! [`charge`].

pub(in crate::use_case::billing) mod book;
pub mod change;
pub mod charge;
pub mod credit;
pub mod customer;
pub mod invoice;
mod invoice_state;
pub mod ledger;
mod operation;
mod payment;
pub mod payment_method;
pub mod plan;
mod provider;
mod quote;
pub mod recovery;
pub mod subscription;
mod subscription_state;
pub mod upgrade;
pub mod usage;
pub mod usage_period;

use std::sync::Arc;

use crate::billing::{Currency, Money, MoneyError, PlanCatalog};
use crate::kernel::Error;
use crate::port::Payments;

/// The configured plans and the payment provider, which all use cases of billing share.
#[derive(Clone, Debug)]
pub struct Billing {
    /// The newest terms of all plans.
    pub plans: PlanCatalog,
    /// The payment provider.
    pub payments: Arc<dyn Payments>,
}

impl Billing {
    /// Returns the currency of the book, which is that of all plans.
    #[must_use]
    pub fn currency(&self) -> Currency {
        self.plans.currency()
    }

    /// Returns the smallest amount that is charged. A smaller one is added to the balance of the customer.
    #[must_use]
    pub fn minimum_charge(&self, currency: Currency) -> Money {
        Money::of_price(MINIMUM_CHARGE, currency)
    }
}

/// The smallest amount that is charged, in minor units of any currency.
const MINIMUM_CHARGE: u32 = 50;

impl From<MoneyError> for Error {
    fn from(error: MoneyError) -> Self {
        Self::Internal(format!("an amount cannot be computed: {error}"))
    }
}

impl From<crate::billing::JournalError> for Error {
    fn from(error: crate::billing::JournalError) -> Self {
        Self::Internal(format!("an entry of the journal is refused: {error}"))
    }
}
