//! The job kinds of the registry:
//!
//! - provisioning, onboarding, reconciling and deprovisioning platforms
//! - activating and deactivating features and stacks, and creating apps
//! - upgrading auth workers
//! - routing DNS records and serving custom domains
//! - removing the objects of deleted entities

use std::sync::Arc;

mod auth_upgrade;
mod custom_domain;
mod dns_record;
mod feature;
mod hostname;
mod onboard;
mod platform_deprovision;
mod platform_provision;
mod platform_reconcile;
mod reconcile_dns;
mod reconcile_domains;
mod removal;
mod remove_entity;
mod stack;
mod stack_deactivate;
mod sync_hostnames;
mod target;

pub(super) use auth_upgrade::{AuthTarget, UpgradeAuth, auth_ref, is_current};
pub(super) use custom_domain::{AddDomain, DomainTarget, RemoveDomain};
pub(super) use dns_record::{DnsTarget, RemoveDnsRecord, RouteDnsRecord};
pub(super) use feature::{
    Activate, ActivateInput, Deactivate, DeactivateInput, FeatureTarget, is_data_of, owned_by,
};
pub(super) use onboard::{CREATE_PLATFORM, Onboard, OnboardInput};
pub(super) use platform_deprovision::{Deprovision, Removal};
pub use platform_provision::{MadeResource, MakeResource};
pub(super) use platform_provision::{ProvisionPlatform, find_resource, resource_ref};
pub(super) use platform_reconcile::{Reconcile, Reconciliation};
pub(super) use remove_entity::{DeletedEntity, RemoveEntity};
pub(super) use stack::{
    Activation, AppCreate, NewApp, PlannedPart, StackActivate, StackInput, StackTarget,
};
pub(super) use stack_deactivate::{StackDeactivate, StackRemoval};
pub(super) use sync_hostnames::{queue_sync, sync_if_suspended};
pub use target::{HasTarget, Target};

use self::sync_hostnames::SyncHostnames;
use crate::port::DnsResolver;
use crate::use_case::provisioning::{KindError, Kinds};
use custom_domain::VerifyDomain;

/// Registers all of these kinds. Jobs resolve DNS names with `dns`. Auth workers call IAM at `iam_url`.
///
/// # Errors
/// [`KindError`] if a kind with one of their names is already registered.
pub fn register_kinds(
    kinds: Kinds,
    dns: Arc<dyn DnsResolver>,
    iam_url: &str,
) -> Result<Kinds, KindError> {
    let iam_url = iam_url.to_owned();
    kinds
        .with(ProvisionPlatform)?
        .with(Onboard)?
        .with(Deprovision)?
        .with(Activate)?
        .with(Deactivate)?
        .with(StackActivate)?
        .with(StackDeactivate)?
        .with(AppCreate)?
        .with(AddDomain {
            dns: Arc::clone(&dns),
        })?
        .with(VerifyDomain)?
        .with(RemoveDomain)?
        .with(RemoveEntity)?
        .with(RouteDnsRecord { dns })?
        .with(RemoveDnsRecord)?
        .with(SyncHostnames)?
        .with(UpgradeAuth {
            iam_url: iam_url.clone(),
        })?
        .with(Reconcile { iam_url })
}
