//! Entering what a job found or made at the provider.

use serde_json::{Map, Value};

use super::names::insert_for_job;
use crate::access::{PlatformWriter, audited};
use crate::kernel::{Context, JobId, JsonText, Machine, ResourceId, Result, Stored};
use crate::port::UnitOfWork;
use crate::registry::{Resource, ResourceEvent, ResourceQuery, ResourceStatus};

/// Which job an object is from now on, for who undoes one.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) enum Maker<'a> {
    /// The job has made it, or put it there once more.
    Job(&'a JobId),
    /// It was there before the job, which needs it: no job that is undone takes it back any more.
    Before,
    /// The job only tells of it.
    Unchanged,
}

impl Maker<'_> {
    /// The job of an entry, by the one it has and by whether it tells of the same object.
    fn job(self, known: Option<JobId>, is_same: bool) -> Option<JobId> {
        match self {
            Self::Unchanged => known,
            Self::Before => None,
            // What another job has made is needed by both.
            Self::Job(job) if is_same => known.filter(|known| known == job),
            Self::Job(job) => Some(job.clone()),
        }
    }
}

/// Enters a resource that is there, or brings its entry up to date. `observed` is the entry it would have if it were new;
/// the id, the entity and the settings of an entry that exists stay. What an entry made by hand says of the environment, the
/// stack and the feature does not: the job knows them.
pub(in crate::use_case::registry) async fn upsert_observed(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    observed: Resource,
    maker: Maker<'_>,
) -> Result<Stored<Resource>> {
    let now = uow.now().await?;
    let exactly = ResourceQuery::Exactly {
        resource_type: observed.resource_type,
        cf_name: observed.cf_name.clone(),
    };
    let Some(seen) = scope.records::<Resource>(uow).first(&exactly).await? else {
        let mut resource = observed.observed(now)?;
        resource.id = ResourceId::generate(now, cx.entropy.as_ref());
        resource.provision_job_id = maker.job(None, false);
        return insert_for_job(cx, scope, uow, resource).await;
    };
    let mut next = seen.edit().observed(now)?;
    let is_same = seen.status == ResourceStatus::Active && seen.cf_id == observed.cf_id;
    next.provision_job_id = maker.job(next.provision_job_id, is_same);
    if !matches!(maker, Maker::Unchanged) {
        next.environment = observed.environment;
        next.stack_id = observed.stack_id;
        next.feature_activation_id = observed.feature_activation_id;
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

/// Records that a job has removed the object of an entry that was deleted with its entity.
pub(in crate::use_case::registry) async fn record_removal(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
    job: &JobId,
) -> Result<()> {
    let found = scope.records::<Resource>(uow).find(resource).await?;
    let Some(seen) = found.filter(|seen| seen.removal_job_id.as_ref() == Some(job)) else {
        return Ok(());
    };
    let mut next = seen.edit();
    next.removal_job_id = None;
    audited::replace(cx, scope, uow, &seen, next, "resource.object_removed").await?;
    Ok(())
}
