//! Alerts: usage that reaches a part of the included quantity (contract: "Usage").

use schemars::JsonSchema;
use serde::Serialize;

use super::price::MetricPrice;
use crate::billing::Metric;
use crate::kernel::{PlatformId, Timestamp, record, text_enum};

text_enum! {
    /// The urgency of an alert.
    pub enum AlertSeverity {
        /// Half of the included quantity is used.
        Info = "info",
        /// Most of the included quantity is used.
        Warning = "warning",
        /// The included quantity is used up.
        Critical = "critical",
    }
}

text_enum! {
    /// Whether a threshold was reached.
    pub enum AlertStatus {
        /// The threshold was not reached in the current period.
        Armed = "armed",
        /// The threshold was reached in the current period.
        Triggered = "triggered",
    }
}

/// A part of the included quantity at which an alert is triggered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// The part in percent.
    pub percent: u32,
    /// The urgency of the alert.
    pub severity: AlertSeverity,
}

/// The thresholds of every metric, lowest first.
pub const THRESHOLDS: [Threshold; 3] = [
    Threshold {
        percent: 50,
        severity: AlertSeverity::Info,
    },
    Threshold {
        percent: 80,
        severity: AlertSeverity::Warning,
    },
    Threshold {
        percent: 100,
        severity: AlertSeverity::Critical,
    },
];

/// Returns the thresholds that a change from one quantity to another reaches, lowest first.
#[must_use]
pub fn crossed_thresholds(price: &MetricPrice, before: u64, after: u64) -> Vec<Threshold> {
    let percent = |quantity| price.percent_used(quantity).unwrap_or_default();
    let (before, after) = (percent(before), percent(after));
    let is_crossed = |threshold: &Threshold| {
        let limit = u64::from(threshold.percent);
        before < limit && limit <= after
    };
    THRESHOLDS.into_iter().filter(is_crossed).collect()
}

/// An alert of a metric in a usage period. A platform has at most one for each metric, threshold and period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct UsageAlert {
    /// The id of the alert, which is the same before and after it is triggered.
    #[cfg_attr(any(test, feature = "proptest"), proptest(regex = "[a-z]{1,12}"))]
    pub id: String,
    /// The platform that the alert is about.
    pub platform_id: PlatformId,
    /// The metered quantity that the alert is about.
    pub metric: Metric,
    /// The part of the included quantity that triggers the alert, in percent.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "0_u32..=100"))]
    pub threshold: u32,
    /// The quantity in units of the metric: when the alert was triggered, or now.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "0_u64..9_999"))]
    pub quantity: u64,
    /// The included quantity at that time.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "0_u64..9_999"))]
    pub limit: u64,
    /// The quantity in percent of the included one, rounded down. `null` if nothing is included.
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(strategy = "proptest::option::of(0_u64..999)")
    )]
    pub percent_used: Option<u64>,
    /// `triggered` if the threshold was reached, otherwise `armed`.
    pub status: AlertStatus,
    /// The urgency of the alert.
    pub severity: AlertSeverity,
    /// When the usage period begins.
    pub period_start: Timestamp,
    /// When the threshold was reached. `null` if it was not.
    pub triggered_at: Option<Timestamp>,
    /// Whether the customer has been told, if the alert is more than information.
    #[serde(skip)]
    pub is_told: bool,
}

record! {
    UsageAlert as "usage alert" by id, asked UsageAlertQuery;
}

impl UsageAlert {
    /// Creates an alert that is triggered at an instant, or armed without one.
    #[must_use]
    pub fn new(
        platform_id: &PlatformId,
        period_start: Timestamp,
        price: &MetricPrice,
        threshold: Threshold,
        quantity: u64,
        triggered_at: Option<Timestamp>,
    ) -> Self {
        let (metric, percent) = (price.metric, threshold.percent);
        let start = period_start.seconds();
        Self {
            id: format!("{platform_id}:{start:011}:{metric}:{percent}"),
            platform_id: platform_id.clone(),
            metric,
            threshold: percent,
            quantity,
            limit: price.included,
            percent_used: price.percent_used(quantity),
            status: match triggered_at {
                Some(_) => AlertStatus::Triggered,
                None => AlertStatus::Armed,
            },
            severity: threshold.severity,
            period_start,
            triggered_at,
            is_told: false,
        }
    }
}

/// Queries for alerts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsageAlertQuery {
    /// The alerts that a platform has triggered in the period that begins at an instant.
    Of(PlatformId, Timestamp),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::billing::UnitPrice;

    fn price(included: u64) -> MetricPrice {
        MetricPrice {
            metric: Metric::Requests,
            included,
            unit_price: UnitPrice::from_minor(1),
        }
    }

    fn percents(included: u64, before: u64, after: u64) -> Vec<u32> {
        let crossed = crossed_thresholds(&price(included), before, after);
        crossed.iter().map(|threshold| threshold.percent).collect()
    }

    #[test]
    fn a_threshold_is_crossed_when_it_is_reached() {
        assert_eq!(percents(1_000, 0, 499), [] as [u32; 0]);
        assert_eq!(percents(1_000, 499, 500), [50]);
        assert_eq!(percents(1_000, 500, 799), [] as [u32; 0]);
        assert_eq!(percents(1_000, 0, 1_000), [50, 80, 100]);
        assert_eq!(percents(1_000, 1_000, 9_000), [] as [u32; 0]);
        assert_eq!(percents(0, 0, 9_000), [] as [u32; 0]);
    }

    proptest! {
        #[test]
        fn each_threshold_is_crossed_once_on_the_way_up(
            steps in prop::collection::vec(0_u64..400, 1..12),
        ) {
            let (mut used, mut crossed) = (0, Vec::new());
            for step in steps {
                crossed.extend(percents(1_000, used, used + step));
                used += step;
            }
            let reached = [50, 80, 100].into_iter().filter(|percent| used >= u64::from(percent * 10));
            prop_assert_eq!(crossed, reached.collect::<Vec<_>>());
        }
    }
}
