//! What ends a deprovisioning: deployments are called off, features and stacks end, and a platform that was deleted for good goes.

use super::suspension;
use crate::access::{
    AuditEvent, PlatformWriter, SystemScope, audited, remove_records, unaudited, unowned,
};
use crate::kernel::{Context, Environment, Result};
use crate::port::UnitOfWork;
use crate::registry::{Platform, PlatformQuery};
use crate::use_case::iam::organization;
use crate::use_case::registry::feature::{self, Ending};
use crate::use_case::registry::{deployment, stack_instance};
use crate::use_case::shared::webhook;

/// What a deprovisioning covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::use_case::registry) struct Covered {
    /// This environment alone; all when there is none.
    pub(in crate::use_case::registry) environment: Option<Environment>,
    /// Everything the platform had was removed, in every environment, by the job itself.
    pub(in crate::use_case::registry) everything: bool,
}

/// Ends the deprovisioning of a platform.
pub(in crate::use_case::registry) async fn finish_deprovision(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    covered: Covered,
) -> Result<()> {
    // Sites are in no other environment.
    if covered.environment.is_none_or(|e| e == Environment::Prod) {
        deployment::cancel_all(cx, scope, uow, "The platform was deprovisioned.").await?;
    }
    let purges = scope.platform().purging && covered.everything;
    if purges {
        remove_records(scope, uow).await?;
        webhook::remove_of_platform(uow, scope.id()).await?;
        unaudited::remove(uow, scope.platform()).await?;
        suspension::follow(cx, scope, uow, false, None).await?;
        release_organization(cx, scope, uow).await?;
    } else {
        let ending = Ending::Environment(covered.environment);
        feature::end_all(cx, scope, uow, ending).await?;
        stack_instance::end_all(cx, scope, uow, covered.environment).await?;
    }
    let event = AuditEvent {
        platform_id: Some(scope.id().clone()),
        action: if purges {
            "platform.purged"
        } else {
            "platform.deprovisioned"
        },
        entity_id: scope.id().to_string(),
        details: None,
    };
    audited::event(cx, uow, event).await
}

async fn release_organization(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
) -> Result<()> {
    let organization = scope.platform().organization_id.as_ref();
    let others = match organization {
        None => 0,
        Some(organization) => {
            let belonging = PlatformQuery::BelongingTo(organization.clone());
            unowned::<Platform>(uow).count(&belonging).await?
        }
    };
    let system = SystemScope::new();
    organization::release_platform(cx, system, uow, scope.id(), organization, others > 0).await
}
