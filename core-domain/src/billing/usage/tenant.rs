//! The usage of one tenant of a platform in one usage period (contract: "Usage").

use super::rollup::Quantities;
use crate::kernel::{EntityId, PlatformId, StackId, Timestamp, record};

/// The usage of one tenant in one usage period.
///
/// A tenant counts once a period for `active_entities`: on the day and in the stack of its first event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct UsageTenant {
    /// The platform, the start of the period in seconds and the tenant, separated by `/`.
    #[cfg_attr(any(test, feature = "proptest"), proptest(regex = "[a-z]{1,12}"))]
    pub id: String,
    /// The platform that the tenant belongs to.
    pub platform_id: PlatformId,
    /// When the period begins.
    pub period_start: Timestamp,
    /// The id of the tenant, as the events name it.
    pub tenant_id: EntityId,
    /// The time of the tenant's first event in the period. `None` before the first one was added.
    pub first_at: Option<Timestamp>,
    /// The stack of that event. `None` if it names none. Of several first events, the smallest one counts.
    pub first_stack_id: Option<StackId>,
    /// The time of the tenant's last event in the period.
    pub last_used_at: Timestamp,
    /// The quantities by metric: sums, but for `storage_bytes` the greatest quantity of the period.
    pub quantities: Quantities,
}

record! {
    UsageTenant as "usage of a tenant" by id, asked UsageTenantQuery;
}

impl UsageTenant {
    /// Creates the record of a tenant without usage.
    #[must_use]
    pub fn new(platform: &PlatformId, period_start: Timestamp, tenant: &EntityId) -> Self {
        Self {
            id: format!("{platform}/{:011}/{tenant}", period_start.seconds()),
            platform_id: platform.clone(),
            period_start,
            tenant_id: tenant.clone(),
            first_at: None,
            first_stack_id: None,
            last_used_at: period_start,
            quantities: Quantities::default(),
        }
    }
}

/// Queries for the usage of tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsageTenantQuery {
    /// The tenants of a platform in the period that begins at an instant, by tenant.
    Of(PlatformId, Timestamp),
}
