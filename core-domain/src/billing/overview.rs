//! The numbers of the whole book, for operators (contract: "Overview").

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::calendar::Interval;
use super::invoice::Invoice;
use super::money::{Currency, Money, MoneyError, divide_rounded};
use super::plan::PlanTier;
use super::subscription::{Subscription, SubscriptionStatus};
use crate::kernel::Timestamp;

/// The months of a year.
const MONTHS_PER_YEAR: i128 = 12;

/// The number of invoices and the sum of their amounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvoiceSum {
    /// The number of invoices.
    pub count: u64,
    /// The sum that is still to pay, in minor units.
    pub amount: i64,
}

impl InvoiceSum {
    /// Adds an invoice.
    pub fn add(&mut self, invoice: &Invoice) {
        self.count += 1;
        self.amount = self.amount.saturating_add(invoice.amount_remaining);
    }
}

/// The state of the events from the payment provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookState {
    /// When the last event was received. `null` if none was.
    pub last_event_at: Option<Timestamp>,
    /// The number of events that were received more than an hour ago and could not be applied yet.
    pub failed: u64,
}

/// The numbers of the whole book.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// The instant of the numbers, on the clock of billing.
    pub as_of: Timestamp,
    /// The currency of all amounts.
    pub currency: Currency,
    /// The number of customers.
    pub customers: u64,
    /// The number of subscriptions by status. Every status is there.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub subscriptions: BTreeMap<SubscriptionStatus, u64>,
    /// The number of subscriptions that have not ended, by tier. Every tier is there.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub by_tier: BTreeMap<PlanTier, u64>,
    /// The recurring revenue of a month in minor units: the amounts of `active` and `past_due` subscriptions, those of a
    /// year divided by 12 and rounded once each.
    pub mrr: i64,
    /// The recurring revenue of a year in minor units: twelve times `mrr`.
    pub arr: i64,
    /// The open invoices.
    pub open_invoices: InvoiceSum,
    /// The open invoices that could not be collected at least once.
    pub overdue: InvoiceSum,
    /// The revenue that the journal has for the last 30 days, in minor units, without tax.
    pub revenue30d: i64,
    /// The sum that is left of all credits, in minor units.
    pub credits_outstanding: i64,
    /// The number of charges whose outcome is unknown.
    pub attempts_unknown: u64,
    /// The number of invoices whose status at the payment provider contradicts the status here. Compare them by hand.
    pub reconcile_differences: u64,
    /// The events from the payment provider.
    pub webhooks: WebhookState,
}

impl Overview {
    /// Creates an overview of an empty book.
    #[must_use]
    pub fn empty(as_of: Timestamp, currency: Currency) -> Self {
        let statuses = SubscriptionStatus::ALL.iter();
        let tiers = PlanTier::ALL.iter();
        Self {
            as_of,
            currency,
            customers: 0,
            subscriptions: statuses.map(|status| (*status, 0)).collect(),
            by_tier: tiers.map(|tier| (*tier, 0)).collect(),
            mrr: 0,
            arr: 0,
            open_invoices: InvoiceSum::default(),
            overdue: InvoiceSum::default(),
            revenue30d: 0,
            credits_outstanding: 0,
            attempts_unknown: 0,
            reconcile_differences: 0,
            webhooks: WebhookState::default(),
        }
    }

    /// Adds a subscription that has not ended. Its status is counted elsewhere.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the recurring revenue is too large.
    pub fn add_live(&mut self, subscription: &Subscription) -> Result<(), MoneyError> {
        *self.by_tier.entry(subscription.tier).or_default() += 1;
        let recurs = matches!(
            subscription.status,
            SubscriptionStatus::Active | SubscriptionStatus::PastDue
        );
        if recurs {
            let month = monthly(subscription)?;
            self.mrr = self.amount(i128::from(self.mrr) + i128::from(month))?;
            self.arr = self.amount(i128::from(self.mrr) * MONTHS_PER_YEAR)?;
        }
        Ok(())
    }

    /// Adds an open invoice.
    pub fn add_open(&mut self, invoice: &Invoice) {
        self.open_invoices.add(invoice);
        if invoice.attempt_count > 0 {
            self.overdue.add(invoice);
        }
    }

    fn amount(&self, minor: i128) -> Result<i64, MoneyError> {
        Ok(Money::new(minor, self.currency)?.minor())
    }
}

/// Returns the amount of a subscription for a month, in minor units.
fn monthly(subscription: &Subscription) -> Result<i64, MoneyError> {
    let amount = i128::from(subscription.amount);
    let minor = match subscription.interval {
        Interval::Month => amount,
        Interval::Year => divide_rounded(amount, MONTHS_PER_YEAR)?,
    };
    Ok(Money::new(minor, subscription.currency)?.minor())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn usd() -> Currency {
        Currency::parse("usd").unwrap()
    }

    proptest! {
        #[test]
        fn a_year_counts_as_a_twelfth_each_month(mut subscription: Subscription) {
            let mut overview = Overview::empty(Timestamp::EPOCH, usd());
            subscription.currency = usd();
            subscription.status = SubscriptionStatus::Active;
            for (interval, amount) in [(Interval::Month, 2900), (Interval::Year, 29_000)] {
                subscription.interval = interval;
                subscription.amount = amount;
                overview.add_live(&subscription).unwrap();
            }
            subscription.status = SubscriptionStatus::Trialing;
            overview.add_live(&subscription).unwrap();
            prop_assert_eq!((overview.mrr, overview.arr), (2900 + 2417, 12 * (2900 + 2417)));
            prop_assert_eq!(overview.by_tier[&subscription.tier], 3);
        }
    }
}
