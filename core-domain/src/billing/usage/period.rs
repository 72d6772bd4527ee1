//! Usage periods: what a platform is charged for its usage at once (contract: "Usage").

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::billing::{
    Currency, Metric, MoneyError, Period, PlanTier, Subscription, SubscriptionStatus, TaxRate,
};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{count, few};
use crate::kernel::{
    CustomerId, InvoiceId, Machine, PlatformId, Result, SubscriptionId, Timestamp, UsagePeriodId,
    record, state_machine, text_enum,
};

text_enum! {
    /// The status of a usage period.
    pub enum UsagePeriodStatus {
        /// The period has not ended.
        Open = "open",
        /// The period has ended, and events for it still arrive.
        Collecting = "collecting",
        /// The period has a price. Events that arrive later are charged as adjustments.
        Closed = "closed",
    }
}

state_machine! {
    /// The events of a usage period, which is created `open`.
    pub enum UsagePeriodEvent moves UsagePeriodStatus {
        /// The period has ended.
        End = "end": [Open] => Collecting, "usage_period.ended";
        /// The usage of the period was priced.
        Close = "close": [Collecting] => Closed, "usage_period.closed";
    }
}

/// The plan that applies from an instant of a usage period on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct UsageTerms {
    /// When the plan begins to apply.
    pub from: Timestamp,
    /// The tier of the plan.
    pub tier: PlanTier,
    /// The version of the plan. 0 for the newest version, which applies without a subscription.
    pub plan_version: u32,
    /// `true` if usage above the included quantity is charged.
    pub is_billed: bool,
}

impl UsageTerms {
    /// Returns the terms of a subscription in its present status, from an instant on.
    #[must_use]
    pub fn of(subscription: &Subscription, from: Timestamp) -> Self {
        if !subscription.status.grants_tier() {
            return Self::free(from);
        }
        Self {
            from,
            tier: subscription.tier,
            plan_version: subscription.plan_version,
            is_billed: subscription.status != SubscriptionStatus::Trialing,
        }
    }

    /// Returns the terms of a platform without a subscription, from an instant on.
    #[must_use]
    pub const fn free(from: Timestamp) -> Self {
        Self {
            from,
            tier: PlanTier::Free,
            plan_version: 0,
            is_billed: false,
        }
    }

    /// Returns whether both have the same plan and the same price.
    fn is_same_plan(&self, other: &Self) -> bool {
        (self.tier, self.plan_version, self.is_billed)
            == (other.tier, other.plan_version, other.is_billed)
    }
}

/// The invoiced usage of one metric in a closed period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct BilledMetric {
    /// The metered quantity that was priced.
    pub metric: Metric,
    /// The quantity in units of the metric.
    pub quantity: u64,
    /// The quantity that the plan includes.
    pub included: u64,
    /// The quantity above the included one.
    pub overage: u64,
    /// The price in minor units.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub amount: i64,
}

/// A usage period of a platform. It outlives the platform.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct UsagePeriod {
    /// The id of the period.
    pub id: UsagePeriodId,
    /// The platform whose usage the period collects.
    pub platform_id: PlatformId,
    /// The subscription that pays for the usage. `None` if there is none.
    pub subscription_id: Option<SubscriptionId>,
    /// The customer of that subscription.
    pub customer_id: Option<CustomerId>,
    /// The first second of the period.
    pub period_start: Timestamp,
    /// The first second after the period.
    pub period_end: Timestamp,
    /// The status; it changes from `open` to `collecting` and `closed`.
    pub status: UsagePeriodStatus,
    /// When the period is closed: 24 hours after its end.
    pub closes_at: Timestamp,
    /// When time changes the status next: at the end of the period, or when it is closed. `None` if it is closed.
    pub due_at: Option<Timestamp>,
    /// The invoice with the usage. `None` if there is none.
    pub invoice_id: Option<InvoiceId>,
    /// The currency of the amounts.
    pub currency: Currency,
    /// The plans that apply in the period, oldest first. Empty for the tier `free`.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub terms: Vec<UsageTerms>,
    /// The invoiced usage of each metric, adjustments included. Empty until the period is closed.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub billed: Vec<BilledMetric>,
    /// The rate at which the usage is taxed, also that of late events. `None` until it is invoiced.
    pub tax: Option<TaxRate>,
    /// `true` if the period is closed and its amounts are on no invoice yet.
    pub is_invoice_due: bool,
    /// `true` if the period is closed, and events arrived after that which are not invoiced.
    pub has_late_usage: bool,
}

record! {
    UsagePeriod as "usage period" by id, asked UsagePeriodQuery;
}

/// How long events are collected after the end of a period.
const COLLECTION: Duration = Duration::from_secs(24 * 60 * 60);

impl UsagePeriod {
    /// Creates an open period of a platform without a subscription.
    #[must_use]
    pub fn new(
        id: UsagePeriodId,
        platform_id: PlatformId,
        period: Period,
        currency: Currency,
    ) -> Self {
        Self {
            id,
            platform_id,
            subscription_id: None,
            customer_id: None,
            period_start: period.start(),
            period_end: period.end(),
            status: UsagePeriodStatus::Open,
            closes_at: period.end().plus(COLLECTION),
            due_at: Some(period.end()),
            invoice_id: None,
            currency,
            terms: Vec::new(),
            billed: Vec::new(),
            tax: None,
            is_invoice_due: false,
            has_late_usage: false,
        }
    }

    /// Returns the span of time of the period.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the stored period is empty, which never happens.
    pub fn period(&self) -> std::result::Result<Period, MoneyError> {
        Period::new(self.period_start, self.period_end).ok_or(MoneyError::TooLarge)
    }

    /// Moves the end of the period.
    pub fn end_at(&mut self, end: Timestamp) {
        self.period_end = end;
        self.closes_at = end.plus(COLLECTION);
        self.due_at = self.next_due();
    }

    /// Applies an event of time.
    ///
    /// # Errors
    /// `INVALID_STATE` if the status does not permit it.
    pub fn apply(&mut self, event: UsagePeriodEvent) -> Result<()> {
        self.status = event.next(self.status)?;
        self.due_at = self.next_due();
        Ok(())
    }

    const fn next_due(&self) -> Option<Timestamp> {
        match self.status {
            UsagePeriodStatus::Open => Some(self.period_end),
            UsagePeriodStatus::Collecting => Some(self.closes_at),
            UsagePeriodStatus::Closed => None,
        }
    }

    /// Makes a subscription pay for the usage. Without one, no one does.
    pub fn set_subscription(&mut self, subscription: Option<&Subscription>) {
        self.subscription_id = subscription.map(|subscription| subscription.id.clone());
        self.customer_id = subscription.map(|subscription| subscription.customer_id.clone());
    }

    /// Adds the terms that apply from an instant on. A payment is for a whole period, so paid terms replace the unpaid
    /// terms before them.
    pub fn apply_terms(&mut self, mut next: UsageTerms) {
        if next.is_billed {
            while let Some(last) = self.terms.pop_if(|last| last.tier == PlanTier::Free) {
                next.from = last.from;
            }
        }
        let Some(last) = self.terms.last_mut() else {
            next.from = self.period_start;
            self.terms.push(next);
            return;
        };
        if last.is_same_plan(&next) {
            return;
        }
        next.from = next.from.clamp(last.from, self.period_end);
        if next.from == last.from {
            *last = next;
        } else {
            self.terms.push(next);
        }
    }

    /// Replaces the invoiced usage of a metric.
    pub fn set_billed(&mut self, next: BilledMetric) {
        match self
            .billed
            .iter_mut()
            .find(|known| known.metric == next.metric)
        {
            Some(known) => *known = next,
            None => self.billed.push(next),
        }
    }

    /// Returns the terms that apply at the end of the period.
    #[must_use]
    pub fn last_terms(&self) -> UsageTerms {
        let last = self.terms.last().copied();
        last.unwrap_or(UsageTerms::free(self.period_start))
    }

    /// Returns whether usage above the included quantity is charged.
    #[must_use]
    pub fn is_billed(&self) -> bool {
        self.subscription_id.is_some() && self.terms.iter().any(|terms| terms.is_billed)
    }
}

/// Queries for usage periods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsagePeriodQuery {
    /// The periods of a platform, newest first.
    Of(PlatformId),
    /// The periods of a platform that end after an instant, newest first.
    EndingAfter(PlatformId, Timestamp),
    /// The periods whose status time changes by an instant, the first to change first.
    Due {
        /// The customer; `None` for all periods, also those of no customer.
        of: Option<CustomerId>,
        /// The instant.
        by: Timestamp,
    },
    /// The closed periods of a subscription whose amounts are on no invoice yet, oldest first.
    InvoiceDueOf(SubscriptionId),
    /// The closed periods of a subscription with usage that is not invoiced, oldest first.
    LateOf(SubscriptionId),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::assert_only_table_moves;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_seconds(1_800_000_000 + second)
    }

    fn new_period() -> UsagePeriod {
        let id = UsagePeriodId::parse("u1").unwrap();
        let platform = PlatformId::parse("p1").unwrap();
        let period = Period::new(at(0), at(1_000)).unwrap();
        UsagePeriod::new(id, platform, period, Currency::USD)
    }

    fn terms(from: i64, tier: PlanTier, is_billed: bool) -> UsageTerms {
        let plan_version = u32::from(tier != PlanTier::Free);
        let from = at(from);
        UsageTerms {
            from,
            tier,
            plan_version,
            is_billed,
        }
    }

    #[test]
    fn the_first_terms_begin_with_the_period_and_equal_ones_are_not_repeated() {
        let mut period = new_period();
        period.apply_terms(terms(300, PlanTier::Starter, true));
        period.apply_terms(terms(400, PlanTier::Starter, true));
        period.apply_terms(terms(500, PlanTier::Growth, true));
        let expected = [
            terms(0, PlanTier::Starter, true),
            terms(500, PlanTier::Growth, true),
        ];
        assert_eq!(period.terms, expected);
    }

    #[test]
    fn a_later_payment_covers_the_time_without_one() {
        let mut period = new_period();
        period.apply_terms(terms(0, PlanTier::Free, false));
        period.apply_terms(terms(400, PlanTier::Starter, true));
        assert_eq!(period.terms, [terms(0, PlanTier::Starter, true)]);
        period.apply_terms(terms(500, PlanTier::Free, false));
        period.apply_terms(terms(600, PlanTier::Starter, true));
        let kept: Vec<_> = period
            .terms
            .iter()
            .map(|terms| (terms.from, terms.tier))
            .collect();
        assert_eq!(kept, [(at(0), PlanTier::Starter)]);
    }

    #[test]
    fn an_undone_change_leaves_no_terms_at_one_instant() {
        let mut period = new_period();
        period.apply_terms(terms(0, PlanTier::Starter, true));
        period.apply_terms(terms(500, PlanTier::Growth, true));
        period.apply_terms(terms(500, PlanTier::Scale, true));
        let last = period.last_terms();
        assert_eq!((period.terms.len(), last.tier), (2, PlanTier::Scale));
    }

    proptest! {
        #[test]
        fn only_the_moves_of_the_table_happen(
            start: UsagePeriodStatus, events: Vec<UsagePeriodEvent>,
        ) {
            assert_only_table_moves(start, &events);
        }

        #[test]
        fn terms_are_in_order_and_in_the_period(
            changes in prop::collection::vec((0_i64..2_000, 0_usize..4, any::<bool>()), 0..12),
        ) {
            let mut period = new_period();
            for (from, tier, is_billed) in changes {
                let tier = PlanTier::ALL[tier];
                period.apply_terms(terms(from, tier, is_billed && tier != PlanTier::Free));
            }
            let from: Vec<_> = period.terms.iter().map(|terms| terms.from).collect();
            prop_assert!(from.is_sorted() && from.first().is_none_or(|first| *first == at(0)));
            prop_assert!(from.iter().all(|from| *from <= at(1_000)));
        }
    }
}
