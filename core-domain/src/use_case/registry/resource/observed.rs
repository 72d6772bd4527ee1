//! Entering what a job found or made at the provider.

use super::rules::name_conflict;
use crate::access::{PlatformWriter, audited};
use crate::kernel::{Context, ResourceId, Result, Stored};
use crate::port::UnitOfWork;
use crate::registry::{Resource, ResourceQuery};

/// Enters a resource that is there, or brings its entry up to date. `observed` is the entry it would have if it were new;
/// the id, the entity and the settings of an entry that exists stay.
pub(in crate::use_case::registry) async fn upsert_observed(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    observed: Resource,
) -> Result<Stored<Resource>> {
    let now = uow.now().await?;
    let exactly = ResourceQuery::Exactly {
        resource_type: observed.resource_type,
        environment: observed.environment,
        cf_name: observed.cf_name.clone(),
    };
    let Some(seen) = scope.records::<Resource>(uow).first(&exactly).await? else {
        let mut resource = observed.observed(now)?;
        resource.id = ResourceId::generate(now, cx.entropy.as_ref());
        let stored = audited::insert(cx, scope, uow, resource, "resource.created").await;
        return stored.map_err(name_conflict);
    };
    let mut next = seen.edit().observed(now)?;
    next.cf_id = observed.cf_id;
    next.cf_url = observed.cf_url;
    next.provision_job_id = observed.provision_job_id;
    audited::replace(cx, scope, uow, &seen, next, "resource.updated").await
}
