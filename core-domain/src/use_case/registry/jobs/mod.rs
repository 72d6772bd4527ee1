//! The kinds of jobs that touch the registry's rows: provisioning a platform, onboarding, deprovisioning, activating and
//! deactivating features and stacks, creating apps, verifying custom domains.

use std::sync::Arc;

mod activate;
mod app_create;
mod child_feature;
mod deactivate;
mod deprovision;
mod domain_records;
mod feature_target;
mod onboard;
mod provision;
mod removal;
mod resource;
mod stack_activate;
mod stack_deactivate;
mod stack_parts;
mod stack_target;
mod target;
mod verify_domain;

pub(super) use activate::Activate;
pub(super) use app_create::{AppCreate, NewApp};
pub(super) use deactivate::{Deactivate, stores_of};
pub(super) use deprovision::{Deprovision, Removal};
pub(super) use feature_target::{ActivateInput, DeactivateInput, FeatureTarget};
pub(super) use onboard::{CREATE_PLATFORM, Onboard, OnboardInput};
pub(super) use provision::ProvisionPlatform;
pub(super) use resource::resource_ref;
pub use resource::{MadeResource, MakeResource};
pub(super) use stack_activate::{Activation, StackActivate};
pub(super) use stack_deactivate::{StackDeactivate, StackRemoval};
pub(super) use stack_target::{PlannedPart, StackInput, StackTarget};
pub use target::{HasTarget, Target};
pub(super) use verify_domain::{Verification, VerifyDomain};

use crate::port::DnsResolver;
use crate::use_case::provisioning::{KindError, Kinds};

/// Adds all of them; names are looked up by `dns`.
///
/// # Errors
/// [`KindError`] when one of their names is taken.
pub fn register_kinds(kinds: Kinds, dns: Arc<dyn DnsResolver>) -> Result<Kinds, KindError> {
    kinds
        .with(ProvisionPlatform)?
        .with(Onboard)?
        .with(Deprovision)?
        .with(Activate)?
        .with(Deactivate)?
        .with(StackActivate)?
        .with(StackDeactivate)?
        .with(AppCreate)?
        .with(VerifyDomain { dns })
}
