//! Usage as the interface shows it (contract: "Usage").

use schemars::JsonSchema;
use serde::Serialize;

use super::period::{BilledMetric, UsagePeriodStatus};
use super::price::PricedUsage;
use super::rollup::MetricQuantity;
use crate::billing::{Currency, Metric, PlanTier, UnitPrice};
use crate::kernel::{
    EntityId, InvoiceId, Name, PlatformId, StackId, SubscriptionId, Timestamp, UsagePeriodId,
    text_enum,
};

text_enum! {
    /// A kind of object whose number a plan limits.
    pub enum LimitedObject {
        /// The workspace stacks of a platform.
        Stacks = "stacks",
        /// The custom domains of a platform that are not deleted.
        CustomDomains = "customDomains",
        /// The entities of a platform that are not deleted.
        Entities = "entities",
    }
}

/// The number of objects of one kind, and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitUse {
    /// The kind of object.
    pub limit: LimitedObject,
    /// The number of objects.
    pub used: u64,
    /// The largest number of objects that the plan allows.
    pub max: u32,
}

/// The usage of one metric in the current period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MeteredUsage {
    /// The metered quantity.
    pub metric: Metric,
    /// The name of one unit.
    pub unit: &'static str,
    /// The quantity so far.
    pub quantity: u64,
    /// The quantity that the plan includes in this period.
    pub included: u64,
    /// The quantity above the included one.
    pub overage: u64,
    /// The quantity in percent of the included one, rounded down. `null` if nothing is included.
    pub percent_used: Option<u64>,
    /// The price of each further unit, in minor units of the currency.
    pub unit_amount_decimal: UnitPrice,
    /// The price of the quantity above the included one, in minor units. 0 in a trial and for the tier `free`, where usage
    /// is not charged.
    pub estimated_amount: i64,
}

impl MeteredUsage {
    /// Shows the usage of a metric.
    #[must_use]
    pub fn of(usage: &PricedUsage, is_billed: bool) -> Self {
        let (price, quantity) = (usage.price, usage.quantity);
        Self {
            metric: price.metric,
            unit: price.metric.unit(),
            quantity,
            included: price.included,
            overage: price.overage(quantity),
            percent_used: price.percent_used(quantity),
            unit_amount_decimal: price.unit_price,
            estimated_amount: if is_billed { usage.amount.minor() } else { 0 },
        }
    }
}

/// The usage of a platform in its current period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageSnapshot {
    /// The platform whose usage is shown.
    pub platform_id: PlatformId,
    /// The subscription. `null` if there is none.
    pub subscription_id: Option<SubscriptionId>,
    /// The tier whose quantities are included and whose limits apply.
    pub tier: PlanTier,
    /// The first instant of the period.
    pub period_start: Timestamp,
    /// The first instant after the period.
    pub period_end: Timestamp,
    /// When the quantities were read.
    pub as_of: Timestamp,
    /// The currency of all amounts.
    pub currency: Currency,
    /// The usage of each metric of the plan.
    pub metrics: Vec<MeteredUsage>,
    /// The recurring price for this period, in minor units.
    pub base_amount: i64,
    /// The sum of the estimated amounts of all metrics, in minor units.
    pub usage_amount: i64,
    /// The sum of `baseAmount` and `usageAmount`, in minor units.
    pub estimated_total: i64,
    /// The numbers of objects that the plan limits.
    pub limits: Vec<LimitUse>,
}

/// A usage period of a platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageHistory {
    /// The id of the period.
    pub id: UsagePeriodId,
    /// The platform whose usage is shown.
    pub platform_id: PlatformId,
    /// The first instant of the period.
    pub period_start: Timestamp,
    /// The first instant after the period.
    pub period_end: Timestamp,
    /// The status: `open`, `collecting` or `closed`.
    pub status: UsagePeriodStatus,
    /// The id of the invoice with the usage. `null` if there is none.
    pub invoice_id: Option<InvoiceId>,
    /// The usage of each metric. That of a closed period is invoiced, and that of others can still grow.
    pub metrics: Vec<BilledMetric>,
    /// The sum of the amounts, in minor units.
    pub total_amount: i64,
    /// The currency of the amounts.
    pub currency: Currency,
}

/// The usage of one tenant in the current period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantUsage {
    /// The id of the tenant, as the events name it.
    pub tenant_id: EntityId,
    /// The time of the tenant's last event.
    pub last_used_at: Timestamp,
    /// The quantities of the tenant. That of `storage_bytes` is the greatest one of the period.
    pub metrics: Vec<MetricQuantity>,
}

/// The usage of a platform on one UTC day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DayOfUsage {
    /// The day, as `YYYY-MM-DD`.
    pub date: String,
    /// The quantities of the day. `active_entities` counts each tenant once a period, on the day of its first event.
    pub metrics: Vec<MetricQuantity>,
}

/// The usage of a platform by day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DailyUsage {
    /// The platform whose usage is shown.
    pub platform_id: PlatformId,
    /// The first day of the list, in UTC.
    pub from: String,
    /// The last day of the list, in UTC.
    pub to: String,
    /// The time zone of the days: `UTC`.
    pub timezone: &'static str,
    /// All days, in order.
    pub data: Vec<DayOfUsage>,
}

/// The usage of one metric with its part of the price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StackShare {
    /// The metered quantity.
    pub metric: Metric,
    /// The name of one unit.
    pub unit: &'static str,
    /// The number of units.
    pub quantity: u64,
    /// The part of the platform's price for this metric, in minor units.
    pub estimated_amount: i64,
}

/// Usage with its price.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageSums {
    /// The usage of each metric of the plan.
    pub metrics: Vec<StackShare>,
    /// The sum of the amounts, in minor units.
    pub estimated_amount: i64,
}

impl UsageSums {
    /// Adds a metric.
    pub fn push(&mut self, share: StackShare) {
        self.estimated_amount = self.estimated_amount.saturating_add(share.estimated_amount);
        self.metrics.push(share);
    }
}

/// The usage of one stack with its price.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StackUsage {
    /// The id of the stack, as the events name it.
    pub stack_id: StackId,
    /// The name of the stack. `null` if it does not exist any more.
    pub stack_name: Option<Name>,
    #[serde(flatten)]
    /// The usage of the stack.
    pub sums: UsageSums,
}

/// The usage of a platform in its current period, by stack. Stacks and unattributed usage add up to the totals, in
/// quantity and price.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageSummary {
    /// The platform whose usage is shown.
    pub platform_id: PlatformId,
    /// The first instant of the period.
    pub period_start: Timestamp,
    /// The first instant after the period.
    pub period_end: Timestamp,
    /// When the quantities were read.
    pub as_of: Timestamp,
    /// The currency of all amounts.
    pub currency: Currency,
    /// The stacks with usage, by id.
    pub stacks: Vec<StackUsage>,
    /// Usage that names no stack.
    pub unattributed: UsageSums,
    /// The usage of the platform.
    pub totals: UsageSums,
}

/// The usage of one metric of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StackMetric {
    /// The metered quantity.
    pub metric: Metric,
    /// The name of one unit.
    pub unit: &'static str,
    /// The number of units.
    pub quantity: u64,
    /// The part of the platform's quantity, in hundredths of a percent.
    pub share_basis_points: u64,
}

/// The usage of one stack in the current period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StackUsageView {
    /// The platform whose usage is shown.
    pub platform_id: PlatformId,
    /// The id of the stack, as the events name it.
    pub stack_id: StackId,
    /// The first instant of the period.
    pub period_start: Timestamp,
    /// The first instant after the period.
    pub period_end: Timestamp,
    /// When the quantities were read.
    pub as_of: Timestamp,
    /// The usage of each metric of the plan. All quantities of an unknown stack are 0.
    pub metrics: Vec<StackMetric>,
}
