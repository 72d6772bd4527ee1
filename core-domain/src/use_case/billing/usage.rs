//! Reads of metered usage: the current period, the history, days, tenants, alerts and stacks.

use std::collections::BTreeMap;
use std::time::Duration;

use super::subscription::tier_of;
use super::usage_period::usage_with_prices;
use super::{Billing, plan};
use crate::access::{BillingScope, unowned_records};
use crate::billing::usage::{
    AlertLimit, BilledMetric, DailyUsage, DayOfUsage, LimitUse, MeteredUsage, PricedUsage,
    Quantities, StackMetric, StackShare, StackUsage, StackUsageView, THRESHOLDS, TenantUsage,
    UsageAlert, UsageAlertQuery, UsageHistory, UsagePeriod, UsagePeriodQuery, UsagePeriodStatus,
    UsageRollup, UsageRollupQuery, UsageSnapshot, UsageSummary, UsageSums, UsageTenant,
    UsageTenantQuery, split_quantity,
};
use crate::billing::{
    Day, Metric, Money, Subscription, SubscriptionStatus, divide_rounded,
    split_by_largest_remainder,
};
use crate::kernel::{
    Error, Issue, Page, PageQuery, PlatformId, Result, StackId, Timestamp, permission,
};
use crate::port::{Mode, Store, UnitOfWork, transact_in};
use crate::registry::Tier;
use crate::use_case::registry::limited_object;
use crate::use_case::registry::workspace_stack;
use crate::use_case::shared::usage::{self, CurrentPeriod};

/// Maximum number of rollups that one read adds up: those of 366 days, 6 metrics and 400 stacks.
const MAX_ROLLUPS: u32 = 1_000_000;

/// Maximum number of alerts of a platform in a period that are read: one for each limit and threshold. Each value of
/// `spendAlert` that the customer has set is a limit.
const MAX_ALERTS: u32 = 1_000;

/// Maximum number of days of a request.
const MAX_DAYS: i64 = 366;

const DAY_SECONDS: i64 = 24 * 60 * 60;

type Read = BillingScope<permission::BillingRead>;

async fn current_period(
    scope: &Read,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
) -> Result<CurrentPeriod> {
    let now = billing.now(uow).await?;
    usage::current_period(uow, scope.platform_id(), now, billing.currency()).await
}

/// Returns the usage of a platform in its current period with its estimated price. The number of events does not change
/// the number of records that are read.
///
/// # Errors
/// `INTERNAL_ERROR` if the terms of a plan are missing or an amount is too large.
pub async fn current(
    scope: &Read,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
) -> Result<UsageSnapshot> {
    let current = current_period(scope, uow, billing).await?;
    let period = &current.period;
    let prices = usage::price_list(uow, &billing.plans, period).await?;
    let is_billed = period.is_billed();
    let priced = prices.price(&current.total.sums)?;
    let metrics: Vec<_> = priced
        .iter()
        .map(|usage| MeteredUsage::of(usage, is_billed))
        .collect();
    let usage_amount = metrics.iter().map(|metric| metric.estimated_amount).sum();
    let base_amount = base_amount(current.subscription.as_deref(), period);
    let last = period.last_terms();
    let plan = usage::plan_terms(uow, &billing.plans, last.tier, last.plan_version).await?;
    Ok(UsageSnapshot {
        platform_id: scope.platform_id().clone(),
        subscription_id: period.subscription_id.clone(),
        tier: last.tier,
        period_start: period.period_start,
        period_end: period.period_end,
        as_of: billing.now(uow).await?,
        currency: prices.currency(),
        metrics,
        base_amount,
        usage_amount,
        estimated_total: base_amount + usage_amount,
        limits: limited_object::limit_uses(uow, scope.platform_id(), plan.limits).await?,
    })
}

/// Returns the recurring amount that is invoiced for a usage period: that of the subscription if its own period begins
/// with the usage period, else 0. A trial costs nothing.
fn base_amount(subscription: Option<&Subscription>, period: &UsagePeriod) -> i64 {
    let paid = subscription.filter(|subscription| {
        subscription.status.grants_tier() && subscription.status != SubscriptionStatus::Trialing
    });
    let paid = paid.filter(|subscription| subscription.current_period_start == period.period_start);
    paid.map_or(0, |subscription| subscription.amount)
}

/// Returns a page of the stored usage periods of a platform, newest first. A platform has periods since its first
/// subscription or its first event. With `metric`, each period shows this metric alone.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor belongs to another list.
pub async fn history(
    scope: &Read,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    metric: Option<Metric>,
    page: &PageQuery,
) -> Result<Page<UsageHistory>> {
    let of_platform = UsagePeriodQuery::Of(scope.platform_id().clone());
    let found = unowned_records::<UsagePeriod>(uow)
        .page(&of_platform, page)
        .await?;
    let mut items = Vec::with_capacity(found.items.len());
    for period in &found.items {
        items.push(past_period(uow, billing, period, metric).await?);
    }
    Ok(Page {
        items,
        next: found.next,
        total: found.total,
    })
}

async fn past_period(
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    period: &UsagePeriod,
    metric: Option<Metric>,
) -> Result<UsageHistory> {
    let mut metrics = match period.status {
        UsagePeriodStatus::Closed => period.billed.clone(),
        UsagePeriodStatus::Open | UsagePeriodStatus::Collecting => {
            let usage = usage_with_prices(uow, billing, period).await?;
            usage.iter().map(PricedUsage::to_billed).collect()
        }
    };
    if !period.is_billed() {
        metrics.iter_mut().for_each(|metric| metric.amount = 0);
    }
    metrics.retain(|billed: &BilledMetric| metric.is_none_or(|metric| metric == billed.metric));
    Ok(UsageHistory {
        id: period.id.clone(),
        platform_id: period.platform_id.clone(),
        period_start: period.period_start,
        period_end: period.period_end,
        status: period.status,
        invoice_id: period.invoice_id.clone(),
        total_amount: metrics.iter().map(|metric| metric.amount).sum(),
        metrics,
        currency: period.currency,
    })
}

/// Returns a page of the tenants that used a platform in its current period, by id.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor belongs to another list or another period.
pub async fn tenants(
    scope: &Read,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    page: &PageQuery,
) -> Result<Page<TenantUsage>> {
    let current = current_period(scope, uow, billing).await?;
    let start = current.period.period_start;
    let of_period = UsageTenantQuery::Of(scope.platform_id().clone(), start);
    let found = unowned_records::<UsageTenant>(uow)
        .page(&of_period, page)
        .await?;
    Ok(found.map(|tenant| TenantUsage {
        tenant_id: tenant.tenant_id.clone(),
        last_used_at: tenant.last_used_at,
        metrics: metric_quantities(&tenant.quantities),
    }))
}

/// Returns the quantities of the metrics that events report.
fn metric_quantities(quantities: &Quantities) -> Vec<crate::billing::usage::MetricQuantity> {
    let mut metrics = quantities.list();
    metrics.retain(|quantity| quantity.metric.is_reported());
    metrics
}

/// Returns the usage of a platform on each UTC day from `from` to `to`, as `YYYY-MM-DD`.
///
/// # Errors
/// `VALIDATION_ERROR` if a day does not exist, `from` is after `to`, or there are more than 366 days.
pub async fn daily(
    scope: &Read,
    uow: &mut dyn UnitOfWork,
    from: &str,
    to: &str,
) -> Result<DailyUsage> {
    let (first, last) = days(from, to)?;
    let end = last.plus(Duration::from_secs(DAY_SECONDS.unsigned_abs()));
    let between = UsageRollupQuery::Of(scope.platform_id().clone(), first, end);
    let rollups = unowned_records::<UsageRollup>(uow)
        .list(&between, MAX_ROLLUPS)
        .await?;
    let mut by_day = BTreeMap::<i64, Vec<(Metric, i64)>>::new();
    for rollup in &rollups {
        let day = rollup.start.seconds() / DAY_SECONDS;
        by_day.entry(day).or_default().push(summand(rollup));
    }
    let day = |day: i64| {
        let quantities: Quantities = by_day
            .remove(&day)
            .unwrap_or_default()
            .into_iter()
            .collect();
        DayOfUsage {
            date: Day::of(Timestamp::from_seconds(day * DAY_SECONDS)).to_string(),
            metrics: quantities.list(),
        }
    };
    let all = first.seconds() / DAY_SECONDS..=last.seconds() / DAY_SECONDS;
    Ok(DailyUsage {
        platform_id: scope.platform_id().clone(),
        from: from.to_owned(),
        to: to.to_owned(),
        timezone: "UTC",
        data: all.map(day).collect(),
    })
}

fn summand(rollup: &UsageRollup) -> (Metric, i64) {
    (rollup.metric, rollup.quantity)
}

/// Returns the first seconds of the first and the last day.
fn days(from: &str, to: &str) -> Result<(Timestamp, Timestamp)> {
    let parse = |day: &str| Some(day.parse::<Day>().ok()?.start());
    let mut issues = Vec::new();
    for (field, day) in [("from", from), ("to", to)] {
        if parse(day).is_none() {
            issues.push(Issue::field(
                field,
                "invalid",
                "There is no such day since 1970.",
            ));
        }
    }
    let (Some(first), Some(last)) = (parse(from), parse(to)) else {
        return Err(Error::Invalid(issues));
    };
    if first > last {
        let message = "The first day is after the last one.";
        return Err(Error::invalid("from", "invalid", message));
    }
    if (last.seconds() - first.seconds()) / DAY_SECONDS >= MAX_DAYS {
        return Err(Error::invalid(
            "to",
            "too_large",
            "A request has at most 366 days.",
        ));
    }
    Ok((first, last))
}

/// Returns the alerts of a platform in its current period: one for each metric of the plan with an included quantity and
/// each threshold, and those of the customer's `spendAlert` if usage is charged.
///
/// # Errors
/// `INTERNAL_ERROR` if the terms of a plan are missing.
pub async fn alerts(
    scope: &Read,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
) -> Result<Vec<UsageAlert>> {
    let current = current_period(scope, uow, billing).await?;
    let start = current.period.period_start;
    let of_period = UsageAlertQuery::Of(scope.platform_id().clone(), start);
    let triggered = unowned_records::<UsageAlert>(uow)
        .list(&of_period, MAX_ALERTS)
        .await?;
    let mut triggered: BTreeMap<String, UsageAlert> = triggered
        .into_iter()
        .map(|alert| (alert.id.clone(), alert.into_inner()))
        .collect();
    let prices = usage::price_list(uow, &billing.plans, &current.period).await?;
    let sums = &current.total.sums;
    let mut limits: Vec<_> = prices
        .price(sums)?
        .iter()
        .map(|usage| (AlertLimit::of_metric(&usage.price), usage.quantity))
        .collect();
    let spend_alert = scope.customer().and_then(|customer| customer.spend_alert);
    if let Some(limit) = spend_alert.filter(|_| current.period.is_billed()) {
        limits.push((AlertLimit::of_spend(limit), prices.spend(sums)?));
    }
    let mut alerts = Vec::new();
    for (limit, quantity) in limits.iter().filter(|(limit, _)| limit.limit > 0) {
        for threshold in THRESHOLDS {
            let platform = scope.platform_id();
            let armed = UsageAlert::new(platform, start, limit, threshold, *quantity, None);
            let known = triggered.remove(&armed.id);
            alerts.push(known.unwrap_or(armed));
        }
    }
    Ok(alerts)
}

/// The rollups of a period, added up by stack.
struct ByStack {
    /// The stacks with usage, by id. Usage of no stack is last.
    stacks: Vec<(Option<StackId>, Quantities)>,
}

impl ByStack {
    async fn read(
        uow: &mut dyn UnitOfWork,
        platform: &PlatformId,
        period: &UsagePeriod,
    ) -> Result<Self> {
        let (start, end) = (period.period_start, period.period_end);
        let of_period = UsageRollupQuery::Of(platform.clone(), start, end);
        let rollups = unowned_records::<UsageRollup>(uow)
            .list(&of_period, MAX_ROLLUPS)
            .await?;
        let mut stacks = BTreeMap::<Option<StackId>, Vec<(Metric, i64)>>::new();
        for rollup in &rollups {
            let stack = stacks.entry(rollup.stack_id.clone()).or_default();
            stack.push(summand(rollup));
        }
        let unattributed = stacks.remove(&None).unwrap_or_default();
        let all = stacks.into_iter().chain([(None, unattributed)]);
        let sums = |(stack, sums): (Option<StackId>, Vec<_>)| (stack, sums.into_iter().collect());
        Ok(Self {
            stacks: all.map(sums).collect(),
        })
    }

    fn ids(&self) -> impl Iterator<Item = &StackId> {
        self.stacks.iter().filter_map(|(stack, _)| stack.as_ref())
    }

    /// Returns the part of each stack of the usage of a metric, in quantity and price.
    fn shares(&self, usage: &PricedUsage, is_billed: bool) -> Result<Vec<StackShare>> {
        let metric = usage.price.metric;
        let weights: Vec<u64> = self
            .stacks
            .iter()
            .map(|(_, sums)| sums.get(metric))
            .collect();
        let quantities = split_quantity(usage.quantity, &weights);
        let amount = match is_billed {
            true => usage.amount,
            false => Money::zero(usage.amount.currency()),
        };
        let amounts = split_by_largest_remainder(amount, &quantities)?;
        let share = |(quantity, amount): (u64, Money)| StackShare {
            metric,
            unit: metric.unit(),
            quantity,
            estimated_amount: amount.minor(),
        };
        Ok(quantities.into_iter().zip(amounts).map(share).collect())
    }
}

/// Returns the usage of a platform in its current period, by stack.
///
/// # Errors
/// `INTERNAL_ERROR` if the terms of a plan are missing or an amount is too large.
pub async fn summary(
    scope: &Read,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
) -> Result<UsageSummary> {
    let current = current_period(scope, uow, billing).await?;
    let period = &current.period;
    let prices = usage::price_list(uow, &billing.plans, period).await?;
    let by_stack = ByStack::read(uow, scope.platform_id(), period).await?;
    let is_billed = period.is_billed();
    let mut parts = vec![UsageSums::default(); by_stack.stacks.len()];
    let mut totals = UsageSums::default();
    for usage in prices.price(&current.total.sums)? {
        for (part, share) in parts.iter_mut().zip(by_stack.shares(&usage, is_billed)?) {
            part.push(share);
        }
        totals.push(StackShare {
            metric: usage.price.metric,
            unit: usage.price.metric.unit(),
            quantity: usage.quantity,
            estimated_amount: if is_billed { usage.amount.minor() } else { 0 },
        });
    }
    let unattributed = parts.pop().unwrap_or_default();
    let ids: Vec<&str> = by_stack.ids().map(StackId::as_str).collect();
    let names = workspace_stack::names(uow, scope.platform_id(), &ids).await?;
    let stacks = by_stack.stacks.into_iter().filter_map(|(stack, _)| stack);
    let stacks = stacks.zip(parts).map(|(stack_id, sums)| StackUsage {
        stack_name: names.get(&stack_id).cloned(),
        stack_id,
        sums,
    });
    Ok(UsageSummary {
        platform_id: scope.platform_id().clone(),
        period_start: period.period_start,
        period_end: period.period_end,
        as_of: billing.now(uow).await?,
        currency: prices.currency(),
        stacks: stacks.collect(),
        unattributed,
        totals,
    })
}

/// Returns the usage of one stack of a platform in its current period.
///
/// # Errors
/// `INTERNAL_ERROR` if the terms of a plan are missing or an amount is too large.
pub async fn of_stack(
    scope: &Read,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    stack: &StackId,
) -> Result<StackUsageView> {
    let current = current_period(scope, uow, billing).await?;
    let period = &current.period;
    let prices = usage::price_list(uow, &billing.plans, period).await?;
    let by_stack = ByStack::read(uow, scope.platform_id(), period).await?;
    let at = by_stack
        .stacks
        .iter()
        .position(|(id, _)| id.as_ref() == Some(stack));
    let mut metrics = Vec::new();
    for usage in prices.price(&current.total.sums)? {
        let shares = by_stack.shares(&usage, false)?;
        let quantity = at
            .and_then(|at| shares.get(at))
            .map_or(0, |share| share.quantity);
        metrics.push(StackMetric {
            metric: usage.price.metric,
            unit: usage.price.metric.unit(),
            quantity,
            share_basis_points: basis_points(quantity, usage.quantity)?,
        });
    }
    Ok(StackUsageView {
        platform_id: scope.platform_id().clone(),
        stack_id: stack.clone(),
        period_start: period.period_start,
        period_end: period.period_end,
        as_of: billing.now(uow).await?,
        metrics,
    })
}

/// Returns a part in hundredths of a percent, rounded; 0 of nothing.
fn basis_points(part: u64, total: u64) -> Result<u64> {
    if total == 0 {
        return Ok(0);
    }
    let points = divide_rounded(i128::from(part) * 10_000, total.into())?;
    Ok(u64::try_from(points).unwrap_or_default())
}

/// Returns the numbers of objects of a platform that are above the limits of the newest plan of a tier.
///
/// # Errors
/// `NOT_FOUND` if there is no such plan.
pub async fn exceeded_by_tier(
    scope: &Read,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    tier: Tier,
) -> Result<Vec<LimitUse>> {
    let terms = plan::newest(billing, tier_of(tier))?;
    limited_object::exceeded_limits(uow, scope.platform_id(), terms.limits).await
}

/// Returns the numbers of objects of a platform that are above the limits of its subscription, or of the plan that the
/// subscription will have. None for a subscription of no platform.
///
/// # Errors
/// `INTERNAL_ERROR` if the terms of a plan are missing.
pub async fn exceeded_by_subscription(
    store: &dyn Store,
    billing: &Billing,
    subscription: &Subscription,
) -> Result<Vec<LimitUse>> {
    let Some(platform) = &subscription.platform_id else {
        return Ok(Vec::new());
    };
    let pending = subscription.pending_change.as_ref();
    let (tier, version) = match pending {
        Some(pending) => (pending.tier, 0),
        None => (subscription.tier, subscription.plan_version),
    };
    transact_in(Mode::Read, store, |uow, _| {
        Box::pin(async move {
            let terms = usage::plan_terms(uow, &billing.plans, tier, version).await?;
            limited_object::exceeded_limits(uow, platform, terms.limits).await
        })
    })
    .await
}
