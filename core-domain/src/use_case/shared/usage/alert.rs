//! Alerts when usage reaches a part of an included quantity or of the customer's `spendAlert`.

use serde_json::json;

use super::terms::price_list;
use crate::access::{AuditEvent, audited, unaudited, unowned_records};
use crate::billing::usage::{
    AlertLimit, PriceList, Threshold, UsageAlert, UsagePeriod, UsagePeriodStatus, UsageTotal,
};
use crate::billing::{Customer, CustomerQuery, PlanCatalog};
use crate::kernel::{Context, Result, Timestamp};
use crate::port::UnitOfWork;

/// The action of the audit event of an alert.
pub(in crate::use_case) const THRESHOLD_CROSSED: &str = "usage.threshold_crossed";

/// A change of the total of a period.
pub(super) struct Growth<'a> {
    pub(super) period: &'a UsagePeriod,
    pub(super) before: &'a UsageTotal,
    pub(super) after: &'a UsageTotal,
}

/// Stores the alerts that a change of a period's total triggers, each once, and writes them to the audit log.
pub(super) async fn trigger(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    plans: &PlanCatalog,
    growth: Growth<'_>,
    now: Timestamp,
) -> Result<()> {
    if growth.period.status == UsagePeriodStatus::Closed {
        return Ok(());
    }
    let prices = price_list(uow, plans, growth.period).await?;
    let mut alerts = growth.reached_quantities(&prices, now)?;
    alerts.extend(growth.reached_spend(uow, &prices, now).await?);
    if alerts.is_empty() {
        return Ok(());
    }
    alerts.sort_by(|one, other| one.id.cmp(&other.id));
    let new = unaudited::insert_new(uow, alerts.clone()).await?;
    for alert in alerts.iter().filter(|alert| new.contains(&alert.id)) {
        audited::record_event(cx, uow, event_of(alert)).await?;
    }
    Ok(())
}

impl Growth<'_> {
    /// Returns the alerts of the metrics whose quantity has reached a threshold.
    fn reached_quantities(&self, prices: &PriceList, now: Timestamp) -> Result<Vec<UsageAlert>> {
        let mut alerts = Vec::new();
        for price in prices.metrics() {
            let known = prices.quantity(price.metric, &self.before.sums)?;
            let used = prices.quantity(price.metric, &self.after.sums)?;
            let limit = AlertLimit::of_metric(price);
            for threshold in limit.crossed_thresholds(known, used) {
                alerts.push(self.alert(&limit, threshold, used, now));
            }
        }
        Ok(alerts)
    }

    /// Returns the alerts of the customer's `spendAlert` that the price of all usage has reached. Those that were triggered
    /// before are among them, because the customer may have set the limit after the usage.
    async fn reached_spend(
        &self,
        uow: &mut dyn UnitOfWork,
        prices: &PriceList,
        now: Timestamp,
    ) -> Result<Vec<UsageAlert>> {
        let spend = prices.spend(&self.after.sums)?;
        if !self.period.is_billed() || spend <= prices.spend(&self.before.sums)? {
            return Ok(Vec::new());
        }
        let of_platform = CustomerQuery::OfPlatform(self.period.platform_id.clone());
        let customer = unowned_records::<Customer>(uow).first(&of_platform).await?;
        let Some(limit) = customer.and_then(|customer| customer.spend_alert) else {
            return Ok(Vec::new());
        };
        let limit = AlertLimit::of_spend(limit);
        let reached = limit.crossed_thresholds(0, spend).into_iter();
        let alert = |threshold| self.alert(&limit, threshold, spend, now);
        Ok(reached.map(alert).collect())
    }

    fn alert(
        &self,
        limit: &AlertLimit,
        threshold: Threshold,
        quantity: u64,
        now: Timestamp,
    ) -> UsageAlert {
        let (platform, start) = (&self.period.platform_id, self.period.period_start);
        UsageAlert::new(platform, start, limit, threshold, quantity, Some(now))
    }
}

/// Returns the audit event of an alert.
fn event_of(alert: &UsageAlert) -> AuditEvent {
    AuditEvent {
        platform_id: Some(alert.platform_id.clone()),
        action: THRESHOLD_CROSSED,
        entity_id: alert.id.clone(),
        details: Some(json!({
            "metric": alert.metric.as_str(),
            "threshold": alert.threshold,
            "severity": alert.severity.as_str(),
            "quantity": alert.quantity,
            "limit": alert.limit,
            "periodStart": alert.period_start,
        })),
    }
}
