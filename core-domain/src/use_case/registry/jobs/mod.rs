//! The kinds of jobs that touch the registry's rows: provisioning a platform, onboarding, deprovisioning.

pub(super) mod deprovision;
mod make;
pub(super) mod onboard;
pub(super) mod platform_kind;
mod purge;
mod target;

use std::sync::Arc;

pub(super) use deprovision::STEPS as DEPROVISION_STEPS;
pub use make::MakeResource;
pub use target::Target;
pub(in crate::use_case) use target::{as_asked_by, read_input, to_input};

use crate::provisioning::JobKind;

/// All of them.
#[must_use]
pub fn kinds() -> Vec<Arc<dyn JobKind>> {
    vec![
        Arc::new(platform_kind::ProvisionPlatform::new()),
        Arc::new(onboard::Onboard::new()),
        Arc::new(deprovision::Deprovision::new()),
    ]
}
