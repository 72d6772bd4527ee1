//! The numbers of the whole book, for operators (contract: "Overview").

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::calendar::Interval;
use super::money::{Currency, Money, MoneyError, divide_rounded};
use super::plan::PlanTier;
use super::subscription::SubscriptionStatus;
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
    /// Adds other invoices.
    pub fn add(&mut self, other: Self) {
        self.count += other.count;
        self.amount = self.amount.saturating_add(other.amount);
    }
}

/// The subscriptions with the same status, tier and price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionGroup {
    /// The status of each of the subscriptions.
    pub status: SubscriptionStatus,
    /// The tier of each of the subscriptions.
    pub tier: PlanTier,
    /// The interval of the price.
    pub interval: Interval,
    /// The price of one subscription for an interval, in minor units.
    pub amount: i64,
    /// The number of subscriptions.
    pub count: u64,
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

    /// Adds subscriptions to the counts and, if they are charged, to the recurring revenue.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the recurring revenue is too large.
    pub fn add_subscriptions(&mut self, group: SubscriptionGroup) -> Result<(), MoneyError> {
        *self.subscriptions.entry(group.status).or_default() += group.count;
        if group.status.is_live() {
            *self.by_tier.entry(group.tier).or_default() += group.count;
        }
        let recurs = matches!(
            group.status,
            SubscriptionStatus::Active | SubscriptionStatus::PastDue
        );
        if recurs {
            let month = monthly(group)? * i128::from(group.count);
            self.mrr = self.amount(i128::from(self.mrr) + month)?;
            self.arr = self.amount(i128::from(self.mrr) * MONTHS_PER_YEAR)?;
        }
        Ok(())
    }

    /// Adds open invoices with the same number of attempts to collect them.
    pub fn add_open_invoices(&mut self, attempts: i64, invoices: InvoiceSum) {
        self.open_invoices.add(invoices);
        if attempts > 0 {
            self.overdue.add(invoices);
        }
    }

    fn amount(&self, minor: i128) -> Result<i64, MoneyError> {
        Ok(Money::new(minor, self.currency)?.minor())
    }
}

/// Returns the price of one subscription for a month, in minor units.
fn monthly(group: SubscriptionGroup) -> Result<i128, MoneyError> {
    let amount = i128::from(group.amount);
    match group.interval {
        Interval::Month => Ok(amount),
        Interval::Year => divide_rounded(amount, MONTHS_PER_YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd() -> Currency {
        Currency::parse("usd").unwrap()
    }

    #[test]
    fn a_year_counts_as_a_twelfth_each_month_rounded_for_each_subscription() {
        let mut overview = Overview::empty(Timestamp::EPOCH, usd());
        let monthly = SubscriptionGroup {
            status: SubscriptionStatus::Active,
            tier: PlanTier::Starter,
            interval: Interval::Month,
            amount: 2_900,
            count: 2,
        };
        let yearly = SubscriptionGroup {
            status: SubscriptionStatus::PastDue,
            interval: Interval::Year,
            amount: 29_000,
            ..monthly
        };
        let of_status = |status| SubscriptionGroup { status, ..monthly };
        let trials = of_status(SubscriptionStatus::Trialing);
        let ended = of_status(SubscriptionStatus::Canceled);
        for group in [monthly, yearly, trials, ended] {
            overview.add_subscriptions(group).unwrap();
        }
        let month = 2 * 2_900 + 2 * 2_417;
        assert_eq!((overview.mrr, overview.arr), (month, 12 * month));
        assert_eq!(overview.by_tier[&PlanTier::Starter], 6);
        assert_eq!(overview.subscriptions[&SubscriptionStatus::Canceled], 2);
    }

    #[test]
    fn invoices_are_overdue_after_the_first_attempt() {
        let mut overview = Overview::empty(Timestamp::EPOCH, usd());
        let sum = |count, amount| InvoiceSum { count, amount };
        overview.add_open_invoices(0, sum(2, 500));
        overview.add_open_invoices(1, sum(1, 30));
        overview.add_open_invoices(4, sum(1, 4));
        assert_eq!(overview.open_invoices, sum(4, 534));
        assert_eq!(overview.overdue, sum(2, 34));
    }
}
