//! Use cases of billing: customers, payment methods, subscriptions, invoices, credits and the journal.
//!
//! The suite owns subscriptions, periods, proration and credits. The payment provider ([`crate::port::Payments`]) knows
//! customers, payment methods and one invoice for each invoice of the suite. It is never called inside a unit of work: a
//! first unit stores what is to be done, then the provider is called, and a second unit stores the outcome. See
//! [`charge`].
//!
//! Changes by time, such as renewals, are jobs; see [`advance_job`]. They are dated at the instant at which they are due.

pub mod advance_job;
pub mod backlog;
pub(in crate::use_case::billing) mod book;
mod boundary;
mod build_usage;
pub mod cancellation;
pub mod card_entry;
mod card_notice;
pub mod change;
pub mod charge;
pub mod clock;
pub mod closing;
pub mod credit;
pub mod customer;
pub mod customer_details;
mod due;
pub mod event_job;
mod feed_position;
pub mod follow;
pub mod inbox;
pub mod invoice;
mod invoice_state;
mod job_failure;
pub mod journal_check;
pub mod journal_export;
pub mod ledger;
pub mod manual_invoice;
mod news;
mod operation;
pub mod overview;
pub mod page_links;
pub mod pay;
mod payment;
pub mod payment_method;
mod period_invoice;
pub mod plan;
pub mod plan_migration;
pub mod portal;
mod provider;
pub mod provider_run;
mod quote;
pub mod reconcile;
pub mod recovery;
mod refund;
mod resume;
pub mod storage_usage;
pub mod subscription;
mod subscription_state;
mod sync;
pub mod trial;
pub mod upgrade;
pub mod usage;
pub mod usage_invoice;
mod usage_period;

use std::sync::Arc;

use crate::billing::{Currency, Money, MoneyError, Party, PlanCatalog, TaxRate, TaxTable};
use crate::kernel::{Cipher, Error, Result, Timestamp};
use crate::port::{Payments, TaxCalculator, UnitOfWork};
use crate::use_case::shared::usage::Metering;
use clock::BillingClock;
use page_links::PageLinks;

/// The configured plans and the payment provider, which all use cases of billing share.
#[derive(Clone, Debug)]
pub struct Billing {
    /// The newest terms of all plans.
    pub plans: PlanCatalog,
    /// The payment provider.
    pub payments: Arc<dyn Payments>,
    /// The clock.
    pub clock: BillingClock,
    /// Encrypts the mails that wait to be sent.
    pub cipher: Cipher,
    /// The addresses of the pages.
    pub pages: PageLinks,
    /// The taxes on invoices.
    pub taxes: Arc<dyn TaxCalculator>,
    /// The issuer of invoices. `None` if none is configured.
    pub issuer: Option<Party>,
}

impl Billing {
    /// Returns the currency of the book, which is that of all plans.
    #[must_use]
    pub fn currency(&self) -> Currency {
        self.plans.currency()
    }

    /// Returns the plans and the clock by which usage is metered.
    #[must_use]
    pub const fn metering(&self) -> Metering<'_> {
        Metering {
            plans: &self.plans,
            clock: self.clock,
        }
    }

    /// Returns the current instant of billing.
    pub(in crate::use_case::billing) async fn now(
        &self,
        uow: &mut dyn UnitOfWork,
    ) -> Result<Timestamp> {
        self.clock.now(uow).await
    }

    /// Returns the smallest amount that is charged. A smaller one is added to the balance of the customer.
    #[must_use]
    pub fn minimum_charge(&self, currency: Currency) -> Money {
        Money::of_price(MINIMUM_CHARGE, currency)
    }
}

impl TaxCalculator for TaxTable {
    fn rate(&self, customer: &Party) -> TaxRate {
        self.rate(customer)
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
