//! The metered quantities (contract: "Plans" and "Usage").

use crate::kernel::text_enum;

text_enum! {
    /// A metered quantity of a platform.
    pub enum Metric {
        /// Requests to the platform and its sites.
        Requests = "requests",
        /// Processor time of the platform's workers.
        CpuMs = "cpu_ms",
        /// Bytes that were sent to clients.
        EgressBytes = "egress_bytes",
        /// Builds and deployments that have ended.
        Builds = "builds",
        /// Bytes that the platform stores.
        StorageBytes = "storage_bytes",
        /// Tenants that used the platform.
        ActiveEntities = "active_entities",
    }
}

text_enum! {
    /// How the events of a period become one quantity.
    pub enum Aggregation {
        /// The sum of the quantities.
        Sum = "sum",
        /// The sum of the quantities, which are whole things.
        Count = "count",
        /// The greatest quantity of each UTC day and stack, summed over the stacks, averaged over the days of the period.
        DailyAverage = "daily_average",
        /// The number of different tenants.
        Distinct = "distinct",
    }
}

impl Metric {
    /// Returns the name for people, with the unit.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Requests => "Requests",
            Self::CpuMs => "Processor time in milliseconds",
            Self::EgressBytes => "Sent data in bytes",
            Self::Builds => "Builds",
            Self::StorageBytes => "Stored data in bytes",
            Self::ActiveEntities => "Active entities",
        }
    }

    /// Returns how the events of a period become one quantity.
    #[must_use]
    pub const fn aggregation(self) -> Aggregation {
        match self {
            Self::Requests | Self::CpuMs | Self::EgressBytes => Aggregation::Sum,
            Self::Builds => Aggregation::Count,
            Self::StorageBytes => Aggregation::DailyAverage,
            Self::ActiveEntities => Aggregation::Distinct,
        }
    }

    /// Returns the name of one unit.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Requests => "request",
            Self::CpuMs => "millisecond",
            Self::EgressBytes | Self::StorageBytes => "byte",
            Self::Builds => "build",
            Self::ActiveEntities => "entity",
        }
    }

    /// Returns whether events report the metric. The others are derived from the events of those that do.
    #[must_use]
    pub const fn is_reported(self) -> bool {
        !matches!(self, Self::ActiveEntities)
    }

    /// Returns whether the quantities of events are added up, so that a difference can correct one.
    #[must_use]
    pub const fn is_sum(self) -> bool {
        matches!(self.aggregation(), Aggregation::Sum | Aggregation::Count)
    }
}
