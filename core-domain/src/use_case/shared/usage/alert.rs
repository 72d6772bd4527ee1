//! Alerts when usage reaches a part of the included quantity.

use serde_json::json;

use super::terms::price_list;
use crate::access::{AuditEvent, audited, unaudited};
use crate::billing::PlanCatalog;
use crate::billing::usage::{
    UsageAlert, UsagePeriod, UsagePeriodStatus, UsageTotal, crossed_thresholds,
};
use crate::kernel::{Context, Result};
use crate::port::UnitOfWork;

/// The action of the audit event of an alert.
pub(in crate::use_case) const THRESHOLD_CROSSED: &str = "usage.threshold_crossed";

/// Stores the alerts that a change of a period's total triggers, each once, and writes them to the audit log.
pub(super) async fn trigger(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    plans: &PlanCatalog,
    period: &UsagePeriod,
    before: &UsageTotal,
    after: &UsageTotal,
) -> Result<()> {
    if period.status == UsagePeriodStatus::Closed {
        return Ok(());
    }
    let prices = price_list(uow, plans, period).await?;
    let now = uow.now().await?;
    let mut alerts = Vec::new();
    for price in prices.metrics() {
        let known = prices.quantity(price.metric, &before.sums)?;
        let used = prices.quantity(price.metric, &after.sums)?;
        for threshold in crossed_thresholds(price, known, used) {
            let platform = &period.platform_id;
            let start = period.period_start;
            let alert = UsageAlert::new(platform, start, price, threshold, used, Some(now));
            alerts.push(alert);
        }
    }
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
