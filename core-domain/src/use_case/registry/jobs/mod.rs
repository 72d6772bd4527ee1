//! The kinds of jobs that touch the registry's rows: provisioning a platform, onboarding, reconciling, deprovisioning,
//! activating and deactivating features and stacks, creating apps, DNS records, custom domains, auth workers, removing the
//! objects of deleted entities.

use std::sync::Arc;

mod activate;
mod add_domain;
mod app_create;
mod auth_worker;
mod cancel_jobs;
mod child_feature;
mod deactivate;
mod deprovision;
mod deprovision_input;
mod dns_target;
mod domain_records;
mod domain_target;
mod evict_hostname;
mod feature_target;
mod hostname_calls;
mod known;
mod onboard;
mod onboard_use;
mod provision;
mod reconcile;
mod reconcile_dns;
mod reconcile_domains;
mod reconcile_input;
mod reconcile_report;
mod reconcile_resources;
mod removal;
mod remove_dns_record;
mod remove_domain;
mod remove_entity;
mod remove_hostnames;
mod remove_resources;
mod resource;
mod route_dns_record;
mod serve_domain;
mod stack_activate;
mod stack_deactivate;
mod stack_parts;
mod stack_target;
mod sync_hostnames;
mod target;
mod upgrade_auth;
mod verify_domain;

pub(super) use activate::Activate;
pub(super) use add_domain::AddDomain;
pub(super) use app_create::{AppCreate, NewApp};
pub(super) use auth_worker::{auth_ref, is_current};
pub(super) use deactivate::{Deactivate, is_data_of, owned_by};
pub(super) use deprovision::Deprovision;
pub(super) use deprovision_input::Removal;
pub(super) use dns_target::DnsTarget;
pub(super) use domain_target::DomainTarget;
pub(super) use feature_target::{ActivateInput, DeactivateInput, FeatureTarget};
pub(super) use onboard::{CREATE_PLATFORM, Onboard, OnboardInput};
pub(super) use provision::ProvisionPlatform;
pub(super) use reconcile::Reconcile;
pub(super) use reconcile_input::Reconciliation;
pub(super) use remove_dns_record::RemoveDnsRecord;
pub(super) use remove_domain::RemoveDomain;
pub(super) use remove_entity::{DeletedEntity, RemoveEntity};
pub use resource::{MadeResource, MakeResource};
pub(super) use resource::{entry_of, resource_ref};
pub(super) use route_dns_record::RouteDnsRecord;
pub(super) use stack_activate::{Activation, StackActivate};
pub(super) use stack_deactivate::{StackDeactivate, StackRemoval};
pub(super) use stack_target::{PlannedPart, StackInput, StackTarget};
pub(super) use sync_hostnames::{queue_sync, sync_if_suspended};
pub use target::{HasTarget, Target};
pub(super) use upgrade_auth::{AuthTarget, UpgradeAuth};

use self::sync_hostnames::SyncHostnames;
use self::verify_domain::VerifyDomain;
use crate::port::DnsResolver;
use crate::use_case::provisioning::{KindError, Kinds};

/// Adds all of them; names are looked up by `dns`, and auth workers reach IAM at `iam_url`.
///
/// # Errors
/// [`KindError`] when one of their names is taken.
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
