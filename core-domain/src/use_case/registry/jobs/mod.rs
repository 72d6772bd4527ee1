//! The kinds of jobs that touch the registry's rows: provisioning a platform, onboarding, deprovisioning, activating and
//! deactivating features.

mod activate;
mod deactivate;
mod deprovision;
mod feature_target;
mod onboard;
mod provision;
mod resource;
mod target;

pub(super) use activate::Activate;
pub(super) use deactivate::Deactivate;
pub(super) use deprovision::{Deprovision, Removal};
pub(super) use feature_target::{ActivateInput, DeactivateInput, FeatureTarget};
pub(super) use onboard::{CREATE_PLATFORM, Onboard, OnboardInput};
pub(super) use provision::ProvisionPlatform;
pub use resource::{MadeResource, MakeResource};
pub use target::{HasTarget, Target};

use crate::use_case::provisioning::{KindError, Kinds};

/// Adds all of them.
///
/// # Errors
/// [`KindError`] when one of their names is taken.
pub fn register_kinds(kinds: Kinds) -> Result<Kinds, KindError> {
    kinds
        .with(ProvisionPlatform)?
        .with(Onboard)?
        .with(Deprovision)?
        .with(Activate)?
        .with(Deactivate)
}
