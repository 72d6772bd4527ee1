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
mod custom_domain_outcome;
mod custom_domain_removal;
mod dns_record;
mod dns_record_removal;
mod feature;
mod hostname;
mod hostname_assignment;
mod object;
mod onboard;
mod platform_deprovision;
mod platform_object;
mod platform_provision;
mod platform_reconcile;
mod reconcile_hostnames;
mod reconcile_report;
mod reconcile_secrets;
mod removal;
mod remove_entity;
mod stack;
mod stack_deactivate;
mod stack_records;
mod sync_hostnames;
mod target;

pub(super) use auth_upgrade::{AuthTarget, UpgradeAuth};
pub(super) use custom_domain::{AddDomain, requeue};
pub(super) use custom_domain_outcome::replace_domain;
pub(super) use custom_domain_removal::{
    DomainTarget, RemoveDomain, queue_domain_removal, soft_delete_domain,
};
pub(super) use dns_record::RouteDnsRecord;
pub(super) use dns_record_removal::{
    DnsTarget, RemoveDnsRecord, delete_of_resource, ensure_entity_has_no_dns_records,
    ensure_no_dns_records, soft_delete_record,
};
pub(super) use feature::{
    Activate, ActivateInput, Deactivate, DeactivateInput, FeatureTarget, is_data_of, owned_by,
};
pub(super) use hostname_assignment::{fail_domain, fail_record};
pub(super) use object::find_resource;
pub(in crate::use_case) use object::{CreateObject, CreatesObject, ObjectProperties};
pub(super) use onboard::{CREATE_PLATFORM, Onboard, OnboardInput};
pub(super) use platform_deprovision::{Deprovision, Removal};
pub(super) use platform_object::{PlatformObject, is_current_auth};
pub(in crate::use_case) use platform_provision::DefaultResource;
pub(super) use platform_provision::ProvisionPlatform;
pub(super) use platform_reconcile::Reconcile;
pub(super) use reconcile_report::Reconciliation;
pub(super) use remove_entity::{DeletedEntity, RemoveEntity};
pub(super) use stack::{Activation, AppCreate, NewApp, StackActivate, StackInput};
pub(super) use stack_deactivate::{StackDeactivate, StackRemoval};
pub(super) use stack_records::{insert_planned_parts, is_part, of_stack};
pub(super) use sync_hostnames::queue_sync;
pub use target::{HasTarget, Target};
pub(super) use target::{PlannedPart, StackTarget};

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
