//! Invoices and their lines (contract: "Invoice" and "State machines").

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metric::Metric;
use super::money::{Currency, Money, MoneyError};
use super::party::Party;
use super::payment_method::PaymentProvider;
use super::plan::PlanTier;
use super::settlement::Settlement;
use super::tax::{LineTax, TaxRate, TaxTreatment};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{count, few};
use crate::kernel::{
    CreditGrantId, CustomerId, InvoiceId, InvoiceLineId, PlatformId, StackId, SubscriptionId,
    Timestamp, record, state_machine, text_enum,
};

text_enum! {
    /// The status of an invoice.
    pub enum InvoiceStatus {
        /// The invoice can still change and has no number.
        Draft = "draft",
        /// The invoice is final and not paid yet.
        Open = "open",
        /// The invoice is paid, or nothing was due.
        Paid = "paid",
        /// The invoice was cancelled. Its credits have been returned.
        Void = "void",
        /// The invoice was written off. It can still be paid.
        Uncollectible = "uncollectible",
    }
}

state_machine! {
    /// The events of an invoice, which is created as a draft.
    pub enum InvoiceEvent moves InvoiceStatus {
        /// The lines become final, and an amount is due.
        Finalize = "finalize": [Draft] => Open, "invoice.finalized";
        /// The invoice was paid, or becomes final and nothing is due.
        Pay = "pay": [Draft, Open, Uncollectible] => Paid, "invoice.paid";
        /// Collection has been given up.
        WriteOff = "write_off": [Open] => Uncollectible, "invoice.uncollectible";
        /// The invoice is cancelled.
        Void = "void": [Open, Uncollectible] => Void, "invoice.voided";
    }
}

text_enum! {
    /// The cause of an invoice.
    pub enum BillingReason {
        /// The first invoice of a subscription.
        SubscriptionCreate = "subscription_create",
        /// A new period of a subscription.
        SubscriptionCycle = "subscription_cycle",
        /// A change of a subscription during a period.
        SubscriptionUpdate = "subscription_update",
        /// The end of a subscription.
        SubscriptionCancel = "subscription_cancel",
        /// Metered usage of a period that has ended.
        Usage = "usage",
        /// The request of an operator.
        Manual = "manual",
    }
}

text_enum! {
    /// The type of a line of an invoice.
    pub enum LineType {
        /// A period of a subscription.
        Subscription = "subscription",
        /// The credit for the rest of a period at the old price.
        ProrationCredit = "proration_credit",
        /// The charge for the rest of a period at the new price.
        ProrationCharge = "proration_charge",
        /// Metered usage of a period.
        Usage = "usage",
        /// Metered usage that was reported after its period had been invoiced.
        UsageAdjustment = "usage_adjustment",
        /// An amount that an operator has set.
        Manual = "manual",
    }
}

impl LineType {
    /// Returns whether a line corrects an earlier one, and thus is taxed at the rate of that one.
    #[must_use]
    pub const fn is_correction(self) -> bool {
        matches!(self, Self::ProrationCredit | Self::UsageAdjustment)
    }

    /// Returns whether a line charges for a plan.
    const fn is_plan(self) -> bool {
        matches!(self, Self::Subscription | Self::ProrationCharge)
    }
}

/// How the amount of a line was prorated: `fullAmount` times `secondsLeft` divided by `secondsTotal`, rounded once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct LineProration {
    /// The seconds from the change to the end of the period.
    pub seconds_left: u64,
    /// The seconds of the whole period.
    pub seconds_total: u64,
    /// The amount of the whole period in minor units.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub full_amount: i64,
}

/// A line of an invoice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct InvoiceLine {
    /// The id of the line.
    pub id: InvoiceLineId,
    /// The type of the line.
    #[serde(rename = "type")]
    pub kind: LineType,
    /// The description for people.
    pub description: String,
    /// The amount in minor units. Negative for a credit.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub amount: i64,
    /// The currency of the amount.
    pub currency: Currency,
    /// The number of units.
    pub quantity: u64,
    /// The price of one unit in minor units, as a decimal number.
    pub unit_amount_decimal: String,
    /// The tier of the plan. `null` if the line is about none.
    pub tier: Option<PlanTier>,
    /// The metric of a usage line. `null` for other lines.
    pub metric: Option<Metric>,
    /// The stack of a usage line. `null` if the line is about none.
    pub stack_id: Option<StackId>,
    /// The first instant that the line is for.
    pub period_start: Timestamp,
    /// The first instant after it.
    pub period_end: Timestamp,
    /// How the amount was prorated. `null` if it was not.
    pub proration: Option<LineProration>,
    /// The tax, which `amount` does not include.
    pub tax: LineTax,
}

/// A part of a credit that was applied to an invoice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct AppliedCredit {
    /// The credit.
    pub credit_id: CreditGrantId,
    /// The applied amount in minor units.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub amount: i64,
}

/// The tax of all lines of an invoice with one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaxSum {
    /// The rate.
    pub rate: TaxRate,
    /// The sum of the lines without the tax.
    pub net: Money,
    /// The sum of the taxes of the lines.
    pub tax: Money,
}

/// An invoice, without its lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Invoice {
    /// The id of the invoice.
    pub id: InvoiceId,
    /// The number, which is gapless per customer. `null` until the invoice is final.
    pub number: Option<String>,
    /// The platform that the customer pays for. `null` if there is none.
    pub platform_id: Option<PlatformId>,
    /// The customer that pays.
    pub customer_id: CustomerId,
    /// The subscription that the invoice is for. `null` if it is for none.
    pub subscription_id: Option<SubscriptionId>,
    /// The status.
    pub status: InvoiceStatus,
    /// The cause of the invoice.
    pub billing_reason: BillingReason,
    /// The currency of all amounts.
    pub currency: Currency,
    /// The first instant that the invoice is for.
    pub period_start: Timestamp,
    /// The first instant after it.
    pub period_end: Timestamp,
    /// The sum of the lines in minor units.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub subtotal: i64,
    /// The amount that is deducted from the sum of the lines, in minor units.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub discount_total: i64,
    /// The tax in minor units.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub tax_total: i64,
    /// `subtotal` less `discountTotal`, plus `taxTotal`.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub total: i64,
    /// The amount that credits have paid, in minor units.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub credits_applied: i64,
    /// The amount that moved from the invoice to the balance of the customer, in minor units. Negative if the invoice collects a
    /// debt.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub balance_applied: i64,
    /// `total` less `creditsApplied` and `balanceApplied`. Never negative.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub amount_due: i64,
    /// The amount that was paid, in minor units.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub amount_paid: i64,
    /// The amount that is still open, in minor units.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub amount_remaining: i64,
    /// The number of attempts to charge the invoice.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "0_u32..99"))]
    pub attempt_count: u32,
    /// When the invoice is charged next. `null` if no attempt is planned.
    pub next_payment_attempt_at: Option<Timestamp>,
    /// When the invoice became final. `null` until then.
    pub finalized_at: Option<Timestamp>,
    /// When the invoice was paid. `null` until then.
    pub paid_at: Option<Timestamp>,
    /// When the invoice was cancelled. `null` if it was not.
    pub voided_at: Option<Timestamp>,
    /// When the invoice was written off. `null` if it was not.
    pub marked_uncollectible_at: Option<Timestamp>,
    /// The issuer, as it was when the invoice became final. `null` if none was configured.
    pub issuer: Option<Party>,
    /// The details of the customer, as they were when the invoice became final.
    pub customer: Party,
    /// The payment provider.
    pub provider: PaymentProvider,
    /// The id of the invoice at the provider. `null` until the provider has it.
    pub provider_id: Option<String>,
    /// When the invoice was created.
    pub created_at: Timestamp,
    /// When the invoice was last changed.
    pub updated_at: Timestamp,
    /// The lines. They are final when the invoice is.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub lines: Vec<InvoiceLine>,
    /// The credits that were applied.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub applied_credits: Vec<AppliedCredit>,
    /// When the clock charges the invoice next, or gives collection up. `None` if it does neither.
    #[serde(skip)]
    pub due_at: Option<Timestamp>,
    /// Since when the invoice is void here and has to be cancelled at the provider. `None` if it does not.
    #[serde(skip)]
    pub closing_since: Option<Timestamp>,
    /// The status at the provider, if it contradicts the status here. `None` if it does not.
    #[serde(skip)]
    pub contradiction: Option<InvoiceStatus>,
}

record! {
    Invoice as "invoice" by id, asked InvoiceQuery;
    audited in |invoice| invoice.platform_id.as_ref(), touched updated_at;
}

impl Invoice {
    /// Returns the amounts of the lines.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if an amount is too large.
    pub fn line_amounts(&self) -> Result<Vec<Money>, MoneyError> {
        let amounts = self.lines.iter();
        amounts
            .map(|line| Money::new(line.amount.into(), line.currency))
            .collect()
    }

    /// Taxes the lines at a rate. A line that corrects an earlier one keeps its own rate. Returns the tax of all lines.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if an amount is too large.
    pub fn tax_lines(&mut self, rate: TaxRate) -> Result<Money, MoneyError> {
        let mut sum = Money::zero(self.currency);
        for line in &mut self.lines {
            if !line.kind.is_correction() {
                line.tax.rate = rate;
            }
            let net = Money::new(line.amount.into(), self.currency)?;
            let tax = line.tax.rate.on(net)?;
            line.tax.amount = tax.minor();
            sum = sum.plus(tax)?;
        }
        Ok(sum)
    }

    /// Returns the rate at which the plan is taxed: that of the last line that charges for a plan.
    #[must_use]
    pub fn plan_tax(&self) -> TaxRate {
        let mut newest_first = self.lines.iter().rev();
        let charge = newest_first.find(|line| line.kind.is_plan());
        charge.map(|line| line.tax.rate).unwrap_or_default()
    }

    /// Returns the tax of each rate in minor units, in the order of the rates, and the amount that it is for.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if a sum is too large.
    pub fn taxes(&self) -> Result<Vec<TaxSum>, MoneyError> {
        let mut sums = BTreeMap::new();
        for line in &self.lines {
            let rate = line.tax.rate;
            let zero = Money::zero(self.currency);
            let sum = sums.entry(rate).or_insert(TaxSum {
                rate,
                net: zero,
                tax: zero,
            });
            sum.net = sum
                .net
                .plus(Money::new(line.amount.into(), self.currency)?)?;
            sum.tax = sum
                .tax
                .plus(Money::new(line.tax.amount.into(), self.currency)?)?;
        }
        sums.retain(|rate, _| rate.treatment() != TaxTreatment::Untaxed);
        Ok(sums.into_values().collect())
    }

    /// Sets the amounts of a final invoice.
    pub fn set_amounts(&mut self, settlement: &Settlement, tax: Money) {
        self.subtotal = settlement.subtotal.minor();
        self.tax_total = tax.minor();
        self.total = settlement.total.minor();
        self.credits_applied = settlement.credits_applied.minor();
        self.balance_applied = settlement.balance_applied.minor();
        self.amount_due = settlement.amount_due.minor();
        self.amount_remaining = self.amount_due;
    }

    /// Returns whether the amounts follow from the lines and from each other. An invoice that is neither open nor paid
    /// has nothing to pay.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let lines: i128 = self.lines.iter().map(|line| i128::from(line.amount)).sum();
        let taxes = self.lines.iter().map(|line| i128::from(line.tax.amount));
        let [subtotal, total, due] = [self.subtotal, self.total, self.amount_due].map(i128::from);
        let [discount, tax] = [self.discount_total, self.tax_total].map(i128::from);
        let [credits, balance] = [self.credits_applied, self.balance_applied].map(i128::from);
        let [paid, remaining] = [self.amount_paid, self.amount_remaining].map(i128::from);
        let is_settled = match self.status {
            InvoiceStatus::Open | InvoiceStatus::Paid => paid + remaining == due,
            _ => remaining == 0,
        };
        subtotal == lines
            && tax == taxes.sum::<i128>()
            && total == subtotal - discount + tax
            && due == total - credits - balance
            && due >= 0
            && is_settled
    }

    /// Returns what is still to pay.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the stored amount is too large.
    pub fn remaining(&self) -> Result<Money, MoneyError> {
        Money::new(self.amount_remaining.into(), self.currency)
    }
}

/// Queries for invoices, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvoiceQuery {
    /// The invoices of a customer.
    Of {
        /// The customer.
        customer_id: CustomerId,
        /// The status; `None` for all.
        status: Option<InvoiceStatus>,
    },
    /// The invoice of a customer with this id.
    One(CustomerId, InvoiceId),
    /// The open invoices of a subscription.
    OpenOf(SubscriptionId),
    /// The invoices that the clock charges by an instant, the first one first.
    Due {
        /// The customer; `None` for all.
        of: Option<CustomerId>,
        /// The instant.
        by: Timestamp,
    },
    /// The invoices that the provider has and that were created since an instant, the first one first.
    PushedSince(Timestamp),
    /// The open invoices of all customers.
    Open,
    /// The void invoices that have to be cancelled at the provider, the first one first.
    Closing,
    /// The invoices whose status at the provider contradicts the status here.
    Contradicted,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::{Machine, assert_only_table_moves};

    proptest! {
        #[test]
        fn only_the_moves_of_the_table_happen(events: Vec<InvoiceEvent>) {
            assert_only_table_moves(InvoiceStatus::Draft, &events);
        }

        #[test]
        fn a_paid_or_cancelled_invoice_never_changes(
            ended in prop::sample::select(vec![InvoiceStatus::Paid, InvoiceStatus::Void]),
            event: InvoiceEvent,
        ) {
            prop_assert!(event.next(ended).is_err());
        }
    }
}
