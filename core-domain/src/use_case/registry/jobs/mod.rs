//! The kinds of jobs that touch the registry's rows: provisioning a platform, onboarding, deprovisioning, verifying custom
//! domains.

use std::sync::Arc;

mod deprovision;
mod domain_records;
mod onboard;
mod provision;
mod resource;
mod target;
mod verify_domain;

pub(super) use deprovision::{Deprovision, Removal};
pub(super) use onboard::{CREATE_PLATFORM, Onboard, OnboardInput};
pub(super) use provision::ProvisionPlatform;
pub use resource::{MadeResource, MakeResource};
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
        .with(VerifyDomain { dns })
}
