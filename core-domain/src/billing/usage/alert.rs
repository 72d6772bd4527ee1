//! Alerts: usage that reaches a part of its limit, which is the included quantity or the customer's `spendAlert`
//! (contract: "Usage").

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::price::{MetricPrice, percent_of};
use crate::billing::Metric;
use crate::kernel::{PlatformId, TextValue, Timestamp, record, text_enum};

text_enum! {
    /// The urgency of an alert.
    pub enum AlertSeverity {
        /// Half of the limit is used.
        Info = "info",
        /// Most of the limit is used.
        Warning = "warning",
        /// The limit is used up.
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

/// The subject of an alert: a metered quantity, or the price of all usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub enum AlertSubject {
    /// The quantity of a metric. Its limit is the included quantity.
    Metric(Metric),
    /// The price of the usage above the included quantities. Its limit is the customer's `spendAlert`.
    Spend,
}

impl AlertSubject {
    const SPEND: &'static str = "spend";

    /// Returns the word that the interface uses: that of the metric, or `spend`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Metric(metric) => metric.as_str(),
            Self::Spend => Self::SPEND,
        }
    }
}

impl TextValue for AlertSubject {
    fn as_text(&self) -> &str {
        self.as_str()
    }

    fn from_text(text: &str) -> Option<Self> {
        match text {
            Self::SPEND => Some(Self::Spend),
            metric => Metric::from_text(metric).map(Self::Metric),
        }
    }
}

impl Serialize for AlertSubject {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl JsonSchema for AlertSubject {
    fn schema_name() -> Cow<'static, str> {
        "AlertSubject".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let metrics = Metric::ALL.iter().map(|metric| metric.as_str());
        let words: Vec<_> = metrics.chain([Self::SPEND]).collect();
        json_schema!({
            "type": "string",
            "enum": words,
            "description": "A metric, or `spend`: the price of the usage above the included quantities.",
        })
    }
}

/// The limit of a subject, of which alerts are parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlertLimit {
    /// The subject.
    pub subject: AlertSubject,
    /// The limit in units of the metric or in minor units of the currency. Without one (0), no alert is triggered.
    pub limit: u64,
}

impl AlertLimit {
    /// Returns the limit of a metric: the included quantity.
    #[must_use]
    pub const fn of_metric(price: &MetricPrice) -> Self {
        Self {
            subject: AlertSubject::Metric(price.metric),
            limit: price.included,
        }
    }

    /// Returns the limit of the price of all usage, in minor units.
    #[must_use]
    pub fn of_spend(spend_alert: i64) -> Self {
        Self {
            subject: AlertSubject::Spend,
            limit: u64::try_from(spend_alert).unwrap_or_default(),
        }
    }

    /// Returns the thresholds that a change from one quantity to another reaches, lowest first.
    #[must_use]
    pub fn crossed_thresholds(&self, before: u64, after: u64) -> Vec<Threshold> {
        let percent = |quantity| percent_of(self.limit, quantity).unwrap_or_default();
        let (before, after) = (percent(before), percent(after));
        let is_crossed = |threshold: &Threshold| {
            let limit = u64::from(threshold.percent);
            before < limit && limit <= after
        };
        THRESHOLDS.into_iter().filter(is_crossed).collect()
    }

    /// Returns the part of an alert's id that names the limit. A changed `spendAlert` has alerts of its own.
    fn key(&self) -> String {
        match self.subject {
            AlertSubject::Metric(metric) => metric.to_string(),
            AlertSubject::Spend => format!("{}-{}", AlertSubject::SPEND, self.limit),
        }
    }
}

/// A part of a limit at which an alert is triggered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// The part in percent.
    pub percent: u32,
    /// The urgency of the alert.
    pub severity: AlertSeverity,
}

/// The thresholds of every limit, lowest first.
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

/// An alert of a usage period. A platform has at most one for each limit, threshold and period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct UsageAlert {
    /// The id of the alert, which is the same before and after it is triggered.
    #[cfg_attr(any(test, feature = "proptest"), proptest(regex = "[a-z]{1,12}"))]
    pub id: String,
    /// The platform that the alert is about.
    pub platform_id: PlatformId,
    /// The subject of the alert: a metric or `spend`.
    pub metric: AlertSubject,
    /// The part of the limit that triggers the alert, in percent.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "0_u32..=100"))]
    pub threshold: u32,
    /// The quantity in units of the metric, or in minor units for `spend`: when the alert was triggered, or now.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "0_u64..9_999"))]
    pub quantity: u64,
    /// The limit at that time: the included quantity, or the customer's `spendAlert` for `spend`.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "0_u64..9_999"))]
    pub limit: u64,
    /// The quantity in percent of the limit, rounded down. `null` if the limit is 0.
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
        limit: &AlertLimit,
        threshold: Threshold,
        quantity: u64,
        triggered_at: Option<Timestamp>,
    ) -> Self {
        let (key, percent) = (limit.key(), threshold.percent);
        let start = period_start.seconds();
        Self {
            id: format!("{platform_id}:{start:011}:{key}:{percent}"),
            platform_id: platform_id.clone(),
            metric: limit.subject,
            threshold: percent,
            quantity,
            limit: limit.limit,
            percent_used: percent_of(limit.limit, quantity),
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
        let limit = AlertLimit::of_metric(&price(included));
        let crossed = limit.crossed_thresholds(before, after);
        crossed.iter().map(|threshold| threshold.percent).collect()
    }

    #[test]
    fn every_subject_of_an_alert_is_read_back_from_its_word() {
        let metrics = Metric::ALL.iter().copied().map(AlertSubject::Metric);
        for subject in metrics.chain([AlertSubject::Spend]) {
            assert_eq!(AlertSubject::from_text(subject.as_str()), Some(subject));
        }
        assert_eq!(AlertSubject::from_text("spending"), None);
    }

    #[test]
    fn a_changed_spend_alert_has_alerts_of_its_own() {
        let platform = PlatformId::parse("plt_1").unwrap();
        let alert = |limit| {
            let limit = AlertLimit::of_spend(limit);
            UsageAlert::new(&platform, Timestamp::EPOCH, &limit, THRESHOLDS[0], 60, None)
        };
        assert_ne!(alert(100).id, alert(200).id);
        assert_eq!(alert(100).percent_used, Some(60));
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
