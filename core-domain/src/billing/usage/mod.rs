//! Metered usage: events, their sums, usage periods, prices and alerts (contract: "Usage").
//!
//! Events are immutable. A unit of work that stores events adds them to three kinds of sums: [`UsageRollup`] for days
//! and stacks, [`UsageTenant`] for tenants, and [`UsageTotal`] for whole usage periods. Every addition is commutative, so
//! the sums do not depend on the order or the batches in which events arrive.

mod alert;
mod calendar;
mod event;
mod fold;
mod period;
mod price;
mod rollup;
mod tenant;
mod view;

pub use alert::{
    AlertLimit, AlertSeverity, AlertStatus, AlertSubject, THRESHOLDS, Threshold, UsageAlert,
    UsageAlertQuery,
};
pub use calendar::{RenewingTerm, UsageCalendar, start_of_day};
pub use event::{
    EventOutcome, EventStatus, IngestUsage, IngestedUsage, MAX_EVENTS, MAX_QUANTITY, NewUsageEvent,
    UsageEvent, UsageEventQuery, UsageKey, UsageRefusal,
};
pub use fold::{FirstUse, TenantChange, UsageFold, UsageOverflow};
pub use period::{
    BilledMetric, UsagePeriod, UsagePeriodEvent, UsagePeriodQuery, UsagePeriodStatus, UsageTerms,
};
pub use price::{IncludedTerms, MetricPrice, PriceList, PricedUsage, split_quantity};
pub use rollup::{
    MetricQuantity, Quantities, UsageRollup, UsageRollupQuery, UsageTotal, UsageTotalQuery,
};
pub use tenant::{UsageTenant, UsageTenantQuery};
pub use view::{
    DailyUsage, DayOfUsage, LimitUse, LimitedObject, MeteredUsage, StackMetric, StackShare,
    StackUsage, StackUsageView, TenantUsage, UsageHistory, UsageSnapshot, UsageSummary, UsageSums,
};
