//! Entering what a job found or made at the provider.

use serde_json::{Map, Value};

use super::rules::name_conflict;
use crate::access::{PlatformWriter, audited};
use crate::kernel::{Context, JsonText, Machine, ResourceId, Result, Stored};
use crate::port::UnitOfWork;
use crate::registry::{Resource, ResourceEvent, ResourceQuery, ResourceStatus};

/// Enters a resource that is there, or brings its entry up to date. `observed` is the entry it would have if it were new;
/// the id, the entity and the settings of an entry that exists stay, and so does the job that made the very object it tells of.
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
    if seen.status != ResourceStatus::Active || seen.cf_id != observed.cf_id {
        next.provision_job_id = observed.provision_job_id.or(next.provision_job_id);
    }
    next.cf_id = observed.cf_id;
    next.cf_url = observed.cf_url;
    audited::replace(cx, scope, uow, &seen, next, "resource.updated").await
}

/// Keeps a setting of a resource beside those it has.
pub(in crate::use_case::registry) async fn record_setting(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Resource>,
    (name, value): (&str, Value),
) -> Result<Stored<Resource>> {
    let mut settings = match seen.config.value() {
        Value::Object(settings) => settings,
        _ => Map::new(),
    };
    settings.insert(name.to_owned(), value);
    let next = Resource {
        config: JsonText::of(&settings),
        ..seen.edit()
    };
    audited::replace(cx, scope, uow, seen, next, "resource.updated").await
}

/// Keeps that the object of an active entry is not there any more.
pub(in crate::use_case::registry) async fn record_loss(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<()> {
    let event = ResourceEvent::Lose;
    let found = scope.records::<Resource>(uow).find(resource).await?;
    let Some(seen) = found.filter(|seen| event.next(seen.status).is_ok()) else {
        return Ok(());
    };
    let next = seen.edit().after(event, uow.now().await?)?;
    audited::replace(cx, scope, uow, &seen, next, event.of_event().action).await?;
    Ok(())
}
