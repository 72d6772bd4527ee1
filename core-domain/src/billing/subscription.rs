//! Subscriptions (contract: "Subscription" and "State machines").

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calendar::{Anchor, Interval, Period};
use super::change::Recurring;
use super::invoice::Invoice;
use super::money::{Currency, Money, MoneyError};
use super::operation::TIME_TO_PAY;
use super::payment_method::PaymentProvider;
use super::plan::{PlanTerms, PlanTier};
use super::plan_migration::PlanMigration;
use super::plan_version::PlanVersionName;
use super::tax::TaxRate;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{
    CustomerId, InvoiceId, PlatformId, Reason, SubscriptionId, Timestamp, UserId, record,
    state_machine, text_enum,
};

text_enum! {
    /// The status of a subscription.
    pub enum SubscriptionStatus {
        /// The first invoice is not paid yet.
        Incomplete = "incomplete",
        /// The first invoice was not paid within 23 hours.
        IncompleteExpired = "incomplete_expired",
        /// The subscription is in its trial.
        Trialing = "trialing",
        /// The subscription is paid.
        Active = "active",
        /// An invoice could not be collected. Collection is tried again.
        PastDue = "past_due",
        /// An invoice could not be collected, and collection has been given up.
        Unpaid = "unpaid",
        /// The trial has ended without a payment method.
        Paused = "paused",
        /// The subscription has ended.
        Canceled = "canceled",
    }
}

impl SubscriptionStatus {
    /// The statuses of a subscription that has not ended. A platform has at most one such subscription.
    pub const LIVE: &'static [Self] = &[
        Self::Incomplete,
        Self::Trialing,
        Self::Active,
        Self::PastDue,
        Self::Unpaid,
        Self::Paused,
    ];

    /// Returns whether the subscription has not ended.
    #[must_use]
    pub fn is_live(self) -> bool {
        Self::LIVE.contains(&self)
    }

    /// Returns whether the limits are those of the subscription's tier, and not those of `free`.
    #[must_use]
    pub const fn grants_tier(self) -> bool {
        matches!(self, Self::Trialing | Self::Active | Self::PastDue)
    }
}

state_machine! {
    /// The events that change the status of a subscription. A new one is `trialing`, `active` or `incomplete`.
    pub enum SubscriptionEvent moves SubscriptionStatus {
        /// The first invoice, the invoice after a pause, or every open invoice was paid.
        Pay = "pay": [Incomplete, Trialing, PastDue, Unpaid, Paused] => Active, "subscription.activated";
        /// The first invoice was not paid in time.
        Expire = "expire": [Incomplete] => IncompleteExpired, "subscription.expired";
        /// An invoice could not be collected.
        Fail = "fail": [Trialing, Active] => PastDue, "subscription.past_due";
        /// The last attempt to collect an invoice has failed.
        GiveUp = "give_up": [PastDue] => Unpaid, "subscription.unpaid";
        /// The trial has ended without a payment method.
        Pause = "pause": [Trialing] => Paused, "subscription.paused";
        /// An operator has started or extended a trial.
        StartTrial = "start_trial": [Trialing, Active, PastDue, Paused] => Trialing, "subscription.trial_started";
        /// The subscription has ended.
        Cancel = "cancel": [Incomplete, Trialing, Active, PastDue, Unpaid, Paused] => Canceled, "subscription.canceled";
    }
}

/// The price that a subscription will have after the current period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct PendingChange {
    /// The tier of the new plan.
    pub tier: PlanTier,
    /// The id of the new price.
    pub price_id: String,
    /// The number of units.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "1_u32..=1000"))]
    pub quantity: u32,
    /// When the change is made.
    pub effective_at: Timestamp,
}

/// A subscription of a customer to a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Subscription {
    /// The id of the subscription.
    pub id: SubscriptionId,
    /// The platform whose tier the subscription governs. `null` if it governs none.
    pub platform_id: Option<PlatformId>,
    /// The customer that pays.
    pub customer_id: CustomerId,
    /// The user that the customer is. `null` if it is a platform.
    pub user_id: Option<UserId>,
    /// The tier of the plan.
    pub tier: PlanTier,
    /// The id of the plan.
    pub plan_id: String,
    /// The id of the price.
    pub price_id: String,
    /// The number of units, from 1 to 1,000.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "1_u32..=1000"))]
    pub quantity: u32,
    /// The status.
    pub status: SubscriptionStatus,
    /// The amount of one period in minor units: the price times the quantity.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub amount: i64,
    /// The currency of the amount.
    pub currency: Currency,
    /// The length of a period.
    pub interval: Interval,
    /// The instant from which the periods are counted.
    pub anchor: Timestamp,
    /// The first instant of the current period.
    pub current_period_start: Timestamp,
    /// The first instant after the current period.
    pub current_period_end: Timestamp,
    /// When the last trial began. `null` if there was none.
    pub trial_start: Option<Timestamp>,
    /// When the last trial ends or has ended. `null` if there was none.
    pub trial_ends_at: Option<Timestamp>,
    /// Whether the subscription ends with the current period.
    pub cancel_at_period_end: bool,
    /// When the subscription will end. `null` if no end is planned.
    pub cancel_at: Option<Timestamp>,
    /// When the cancellation was requested. `null` if there was none.
    pub canceled_at: Option<Timestamp>,
    /// When the subscription ended. `null` while it has not.
    pub ended_at: Option<Timestamp>,
    /// The reason that was given for the cancellation. `null` if there is none.
    pub cancellation_reason: Option<Reason>,
    /// The change that is made at the end of the current period. `null` if there is none.
    pub pending_change: Option<PendingChange>,
    /// The move to another version of a plan that the operator has planned. `null` if there is none.
    pub migration: Option<PlanMigration>,
    /// The id of the payment method of this subscription. `null` if the customer's default is charged.
    pub default_payment_method_id: Option<String>,
    /// The id of the newest invoice. `null` if there is none.
    pub latest_invoice_id: Option<InvoiceId>,
    /// The payment provider.
    pub provider: PaymentProvider,
    /// When the subscription was created.
    pub created_at: Timestamp,
    /// When the subscription was last changed.
    pub updated_at: Timestamp,
    /// The version of the plan's terms.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "1_u32..=9"))]
    pub plan_version: u32,
    /// What the current period was invoiced with for the plan in force, in minor units. Credits for the rest of the
    /// period are computed from it. 0 in a trial and while the period is unpaid.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub billed_amount: i64,
    /// The rate at which that amount was taxed.
    #[serde(skip)]
    pub billed_tax: TaxRate,
    /// When the price was last changed. A preview that is older is no longer valid.
    #[serde(skip)]
    pub price_changed_at: Timestamp,
    /// When the last upgrade was made by a tenant, which can be undone for 15 minutes. `None` if there was none.
    #[serde(skip)]
    pub upgraded_at: Option<Timestamp>,
    /// The version of the terms in `pending_change`. `None` if there is no such change.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "version()"))]
    pub pending_plan_version: Option<u32>,
    /// When collection was given up. `None` unless the subscription is unpaid.
    #[serde(skip)]
    pub unpaid_since: Option<Timestamp>,
    /// When the customer is notified next that the trial ends. `None` if no notice is planned.
    #[serde(skip)]
    pub trial_notice_at: Option<Timestamp>,
    /// When time changes the subscription next: [`Subscription::next_due`], for the index.
    #[serde(skip)]
    pub due_at: Option<Timestamp>,
}

/// How long before the end of a trial the customer is notified about it, the longest first.
const TRIAL_NOTICES: [Duration; 2] = [
    Duration::from_secs(7 * 24 * 60 * 60),
    Duration::from_secs(24 * 60 * 60),
];

/// The time after which an unpaid subscription ends.
const UNPAID_LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

#[cfg(any(test, feature = "proptest"))]
fn version() -> impl proptest::strategy::Strategy<Value = Option<u32>> {
    proptest::option::of(1_u32..=9)
}

record! {
    Subscription as "subscription" by id, asked SubscriptionQuery;
    audited in |subscription| subscription.platform_id.as_ref(), touched updated_at;
}

/// The price of a subscription: the terms of a plan, the interval and the number of units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price<'p> {
    /// The terms of the plan.
    pub terms: &'p PlanTerms,
    /// The length of a period.
    pub interval: Interval,
    /// The number of units, from 1 to 1,000.
    pub quantity: u32,
}

impl Price<'_> {
    /// Returns the amount of one period for all units.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if it is too large.
    pub fn recurring(&self) -> Result<Recurring, MoneyError> {
        Ok(Recurring {
            amount: self.terms.amount(self.interval).times(self.quantity)?,
            interval: self.interval,
        })
    }

    /// Returns the id of the price.
    #[must_use]
    pub fn id(&self) -> String {
        self.terms.price_id(self.interval)
    }
}

impl Subscription {
    /// Returns the current period.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the stored period is empty, which never happens.
    pub fn period(&self) -> Result<Period, MoneyError> {
        Period::new(self.current_period_start, self.current_period_end).ok_or(MoneyError::TooLarge)
    }

    /// Returns the recurring price.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the stored amount is too large.
    pub fn recurring(&self) -> Result<Recurring, MoneyError> {
        Ok(Recurring {
            amount: Money::new(self.amount.into(), self.currency)?,
            interval: self.interval,
        })
    }

    /// Returns what the current period was invoiced with.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the stored amount is too large.
    pub fn billed_money(&self) -> Result<Money, MoneyError> {
        Money::new(self.billed_amount.into(), self.currency)
    }

    /// Records that an invoice for the plan has been settled: the amount of the period, and the rate at which it was taxed.
    pub fn set_billed(&mut self, amount: i64, invoice: &Invoice) {
        self.billed_amount = amount;
        self.billed_tax = invoice.plan_tax();
    }

    /// Sets the price. Does not change the period. Removes a planned change and, with another version of a plan, a planned
    /// migration.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the amount is too large.
    pub fn set_price(&mut self, price: &Price<'_>, now: Timestamp) -> Result<(), MoneyError> {
        self.amount = price.recurring()?.amount.minor();
        self.currency = price.terms.currency;
        let previous = self.plan_version_name();
        self.tier = price.terms.tier;
        self.plan_id = price.terms.plan_id(price.interval);
        self.price_id = price.id();
        self.quantity = price.quantity;
        self.interval = price.interval;
        self.plan_version = price.terms.version;
        self.price_changed_at = now;
        self.forget_change();
        if self.plan_version_name() != previous {
            self.migration = None;
        }
        Ok(())
    }

    /// Returns when time changes the subscription next: at a notice about the end of its trial, at the end of its period
    /// or trial, after 23 hours without the first payment, or 30 days after collection was given up. `None` if time does
    /// not change it.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        match self.status {
            SubscriptionStatus::Incomplete => Some(self.created_at.plus(TIME_TO_PAY)),
            SubscriptionStatus::Trialing => {
                let end = self.current_period_end;
                Some(self.trial_notice_at.map_or(end, |notice| notice.min(end)))
            }
            SubscriptionStatus::Active | SubscriptionStatus::PastDue => {
                Some(self.current_period_end)
            }
            SubscriptionStatus::Unpaid => {
                self.unpaid_since.map(|since| since.plus(UNPAID_LIFETIME))
            }
            SubscriptionStatus::Paused
            | SubscriptionStatus::Canceled
            | SubscriptionStatus::IncompleteExpired => None,
        }
    }

    /// Returns whether the current period is the trial.
    #[must_use]
    pub fn is_in_trial(&self) -> bool {
        self.status == SubscriptionStatus::Trialing
            && self.trial_ends_at == Some(self.current_period_end)
    }

    /// Plans the next notice about the end of the trial that is due after an instant: seven days or one day before the end.
    pub fn plan_trial_notice(&mut self, after: Timestamp) {
        let end = self.trial_ends_at.filter(|_| self.is_in_trial());
        let notices = end.map(|end| TRIAL_NOTICES.map(|before| end.minus(before)));
        let mut notices = notices.into_iter().flatten();
        self.trial_notice_at = notices.find(|notice| *notice > after);
    }

    /// Plans another price for the end of the current period.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the amount is too large.
    pub fn change_later(&mut self, price: &Price<'_>, effective_at: Timestamp) {
        self.pending_change = Some(PendingChange {
            tier: price.terms.tier,
            price_id: price.id(),
            quantity: price.quantity,
            effective_at,
        });
        self.pending_plan_version = Some(price.terms.version);
    }

    /// Removes a planned change of the price.
    pub fn forget_change(&mut self) {
        self.pending_change = None;
        self.pending_plan_version = None;
    }

    /// Returns the version of the plan.
    #[must_use]
    pub const fn plan_version_name(&self) -> PlanVersionName {
        PlanVersionName {
            tier: self.tier,
            version: self.plan_version,
        }
    }

    /// Plans the move to another version of a plan. Returns `false` and changes nothing if the subscription has that version,
    /// or the move is planned already.
    pub fn migrate_later(&mut self, to: PlanVersionName, now: Timestamp) -> bool {
        let planned = self.migration.as_ref().map(PlanMigration::target);
        if planned == Some(to) || self.plan_version_name() == to {
            return false;
        }
        self.migration = Some(PlanMigration::plan(to, now));
        true
    }

    /// Returns the version of the plan to which the subscription moves with a period that begins at an instant.
    #[must_use]
    pub fn due_migration(&self, at: Timestamp) -> Option<PlanVersionName> {
        let migration = self.migration.as_ref()?;
        (migration.not_before <= at).then(|| migration.target())
    }

    /// Begins the period after the current one.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the period ends after the year 9999.
    pub fn begin_next_period(&mut self) -> Result<(), MoneyError> {
        let start = self.current_period_end;
        let anchor = Anchor::new(self.anchor);
        let next = anchor.period_at(self.interval, start);
        let next = next.ok_or(MoneyError::TooLarge)?;
        // With another interval, the end of the old period may lie within a period of the new one.
        if next.start() != start {
            return self.restart_period(start);
        }
        self.current_period_start = next.start();
        self.current_period_end = next.end();
        Ok(())
    }

    /// Begins the first period at an instant, from which all later ones are counted.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the period ends after the year 9999.
    pub fn restart_period(&mut self, at: Timestamp) -> Result<(), MoneyError> {
        let anchor = Anchor::new(at);
        let first = anchor.period_at(self.interval, at);
        let first = first.ok_or(MoneyError::TooLarge)?;
        self.anchor = anchor.at();
        self.current_period_start = first.start();
        self.current_period_end = first.end();
        Ok(())
    }

    /// Removes a planned cancellation.
    pub fn keep(&mut self) {
        self.cancel_at_period_end = false;
        self.cancel_at = None;
        self.canceled_at = None;
        self.cancellation_reason = None;
    }

    /// Plans the end of the subscription for the end of the current period.
    pub fn cancel_later(&mut self, reason: Option<Reason>, now: Timestamp) {
        self.cancel_at_period_end = true;
        self.cancel_at = Some(self.current_period_end);
        self.canceled_at = Some(now);
        self.cancellation_reason = reason;
        self.forget_change();
    }

    /// Records the end of the subscription, without a change of its status.
    pub fn end(&mut self, reason: Option<Reason>, now: Timestamp) {
        self.canceled_at = self.canceled_at.or(Some(now));
        self.cancellation_reason = reason.or(self.cancellation_reason.take());
        self.ended_at = Some(now);
        self.migration = None;
        self.forget_change();
    }
}

/// Queries for subscriptions, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscriptionQuery {
    /// The subscriptions of all customers.
    All,
    /// The subscriptions of a customer.
    Of(CustomerId),
    /// The subscription of a customer with this id.
    One(CustomerId, SubscriptionId),
    /// The subscriptions of a platform.
    OfPlatform(PlatformId),
    /// The subscription of a platform that has not ended.
    LiveOfPlatform(PlatformId),
    /// The subscriptions of all customers with a status.
    WithStatus(SubscriptionStatus),
    /// The paused subscriptions of a customer.
    PausedOf(CustomerId),
    /// The subscriptions that time changes by an instant, the first to change first.
    Due {
        /// The customer; `None` for all.
        of: Option<CustomerId>,
        /// The instant.
        by: Timestamp,
    },
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::{Machine, assert_only_table_moves};

    proptest! {
        #[test]
        fn only_the_moves_of_the_table_happen(
            start: SubscriptionStatus, events: Vec<SubscriptionEvent>,
        ) {
            assert_only_table_moves(start, &events);
        }

        #[test]
        fn an_ended_subscription_stays_ended(
            ended in prop::sample::select(vec![
                SubscriptionStatus::Canceled, SubscriptionStatus::IncompleteExpired,
            ]),
            event: SubscriptionEvent,
        ) {
            prop_assert!(event.next(ended).is_err());
        }
    }
}
