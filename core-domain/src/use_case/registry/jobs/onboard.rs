//! `onboard`: creates an organization, its platform and the default tenant, and waits for jobs in the platform's own
//! lane.
//!
//! One of those jobs creates the infrastructure. If a stack template was given, another one activates its newest
//! version.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::platform_deprovision::{Deprovision, Removal};
use super::platform_provision::ProvisionPlatform;
use super::stack::StackActivate;
use super::target::Target;
use crate::access::{
    Batches, PlatformAccess, PlatformWriter, SystemScope, audited, unowned_records,
};
use crate::iam::Member;
use crate::kernel::{
    Context, Environment, Error, JobId, Line, Machine, OnboardingId, PlatformId, PlatformOwned,
    Record, Result, StoreError, TemplateId, TextError, Unowned,
};
use crate::port::{Mode, Persisted, UnitOfWork};
use crate::provisioning::{Job, JobStatus, LaneKey};
use crate::registry::{
    CustomDomain, CustomDomainQuery, Deployment, DeploymentQuery, DnsRecord, DnsRecordQuery,
    Entity, EntityFilter, EntityQuery, FeatureActivation, FeatureActivationQuery, Onboarding,
    OnboardingEvent, PlatformConfig, PlatformConfigQuery, PlatformStatus, Resource, ResourceQuery,
    WorkspaceStack, WorkspaceStackFilter, WorkspaceStackQuery, WorkspaceStackStatus,
};
use crate::stacks::SemVer;
use crate::use_case::iam::organization;
use crate::use_case::provisioning;
use crate::use_case::provisioning::{
    JobContext, JobInput, JobKind, JobStep, Observation, StepContext, StepError, Steps, Undone,
    enqueue, enqueue_child,
};
use crate::use_case::registry::slug::slug_taken;
use crate::use_case::registry::tenant::{Tenant, TenantSetup, create_tenant};
use crate::use_case::registry::{entity_tree, platform, workspace_stack};
use crate::use_case::stacks::template;

/// The name of the step that creates the platform.
pub(in crate::use_case::registry) const CREATE_PLATFORM: &str = "platform";

/// The name of the step that waits for the infrastructure.
const INFRASTRUCTURE: &str = "infrastructure";

/// The name of the step that waits for the stack.
const STACK: &str = "stack";

/// The interval at which the platform's jobs are polled.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// The input of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct OnboardInput {
    pub(in crate::use_case::registry) onboarding_id: OnboardingId,
    /// The stack template that is activated on the new platform; `None` for none.
    #[serde(default)]
    pub(in crate::use_case::registry) stack_template_id: Option<TemplateId>,
    #[serde(flatten)]
    pub(in crate::use_case::registry) target: Target,
}

impl JobInput for OnboardInput {
    type Owner = Unowned;

    fn lane(&self) -> LaneKey {
        LaneKey::onboarding(&self.onboarding_id)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        None
    }

    fn environment(&self) -> Option<Environment> {
        Some(self.target.environment)
    }

    fn idempotency_key(&self) -> Option<String> {
        Some(format!("onboarding:{}", self.onboarding_id))
    }
}

/// The job kind `onboard`.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct Onboard;

#[async_trait]
impl JobKind for Onboard {
    const NAME: &'static str = "onboard";
    type Input = OnboardInput;

    fn steps() -> Steps<Self> {
        let platform = Steps::new().step(CreatePlatform);
        platform.step(AwaitInfrastructure).step(ActivateStack)
    }

    fn plan(input: &OnboardInput) -> Vec<String> {
        let mut names = vec![CREATE_PLATFORM, INFRASTRUCTURE];
        names.extend(input.stack_template_id.as_ref().map(|_| STACK));
        names.into_iter().map(str::to_owned).collect()
    }

    async fn on_completed(
        &self,
        cx: &JobContext<'_, Self>,
        uow: &mut dyn UnitOfWork,
    ) -> Result<()> {
        let system = SystemScope::new();
        let platform = system.platform(uow, &cx.input.target.platform_id).await?;
        // An operator may force the job to complete before the platform exists.
        let event = if platform.is_some() {
            OnboardingEvent::Complete
        } else {
            OnboardingEvent::Fail
        };
        record_event(cx, system, uow, &cx.input.onboarding_id, event).await
    }

    async fn on_failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let (system, event) = (SystemScope::new(), OnboardingEvent::Fail);
        record_event(cx, system, uow, &cx.input.onboarding_id, event).await
    }

    async fn on_resumed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let (system, event) = (SystemScope::new(), OnboardingEvent::Resume);
        record_event(cx, system, uow, &cx.input.onboarding_id, event).await
    }
}

/// The output of the first step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreatedPlatform {
    platform_id: PlatformId,
}

/// Creates the organization, the platform and the default tenant, and queues the job that creates the platform's
/// resources. All of this is written in the unit of work that ends the step.
#[derive(Clone, Copy, Debug)]
struct CreatePlatform;

#[async_trait]
impl JobStep<Onboard> for CreatePlatform {
    const CAN_UNDO: bool = true;
    type Output = CreatedPlatform;

    fn name(&self) -> &'static str {
        CREATE_PLATFORM
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, Onboard>,
    ) -> Result<Observation<CreatedPlatform>, StepError> {
        let mut uow = cx.store.begin(Mode::Read).await?;
        match find_platform(uow.as_mut(), cx.input).await? {
            Some(platform) if platform.platform().status == PlatformStatus::Deleted => {
                let undone =
                    "the platform was deleted when its onboarding was cancelled: restore it";
                Err(StepError::Precondition(undone.to_owned()))
            }
            // An operator restored the platform after an undo.
            Some(_) => Ok(Observation::Outdated),
            None => Ok(Observation::Absent),
        }
    }

    async fn apply(&self, cx: &StepContext<'_, Onboard>) -> Result<CreatedPlatform, StepError> {
        Ok(CreatedPlatform {
            platform_id: cx.input.target.platform_id.clone(),
        })
    }

    async fn record(
        &self,
        cx: &JobContext<'_, Onboard>,
        uow: &mut dyn UnitOfWork,
        _output: &CreatedPlatform,
    ) -> Result<()> {
        let (platform, entity_id) = match find_platform(uow, cx.input).await? {
            Some(platform) => {
                let tenant = entity_tree::default_tenant(cx, &platform, uow).await?;
                (platform, tenant.id.clone())
            }
            None => {
                let (system, onboarding) = (SystemScope::new(), &cx.input.onboarding_id);
                let tenant = create_onboarded(cx, system, uow, onboarding).await?;
                (tenant.platform, tenant.entity_id)
            }
        };
        let target = Target {
            entity_id: Some(entity_id),
            ..cx.input.target.clone()
        };
        let parent = Some(&cx.job.id);
        enqueue_child::<ProvisionPlatform>(cx, &platform, uow, &target, parent).await?;
        Ok(())
    }

    /// Keeps a platform that others use, with everything on it.
    async fn undo(&self, cx: &StepContext<'_, Onboard>) -> Result<Undone, StepError> {
        let mut uow = cx.store.begin(Mode::Read).await?;
        let Some(platform) = find_platform(uow.as_mut(), cx.input).await? else {
            return Ok(Undone::Removed);
        };
        let used = used_by_others(SystemScope::new(), &platform, uow.as_mut(), &cx.job.id).await?;
        Ok(used.map_or(Undone::Removed, Undone::Kept))
    }

    /// Deletes the platform, which can be restored, and queues the removal of its infrastructure. The provisioning job
    /// then fails because its platform is deleted. Keeps the organization.
    async fn record_undo(
        &self,
        cx: &JobContext<'_, Onboard>,
        uow: &mut dyn UnitOfWork,
        undone: &Undone,
    ) -> Result<()> {
        if !undone.is_removed() {
            return Ok(());
        }
        let Some(platform) = find_platform(uow, cx.input).await? else {
            return Ok(());
        };
        if let Some(used) = used_by_others(SystemScope::new(), &platform, uow, &cx.job.id).await? {
            // Others have used the platform since `undo` checked. The retry keeps it.
            return Err(Error::Unavailable(used));
        }
        if !platform::delete_for_undo(cx, &platform, uow).await? {
            return Ok(());
        }
        let removal = Removal::of(&platform, Some(cx.input.target.environment));
        enqueue::<Deprovision>(cx, &platform, uow, &removal).await?;
        Ok(())
    }
}

/// Returns the platform of an onboarding; `None` until it is created.
async fn find_platform(
    uow: &mut dyn UnitOfWork,
    input: &OnboardInput,
) -> Result<Option<PlatformWriter>> {
    let system = SystemScope::new();
    system.platform(uow, &input.target.platform_id).await
}

/// The output of a step that waits for another job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AwaitedJob {
    /// The id of the awaited job; `None` if no job was needed.
    job_id: Option<JobId>,
}

/// Returns the outcome of the newest job of a kind that this job queued. Waits while that job is unfinished.
async fn await_child(
    cx: &StepContext<'_, Onboard>,
    kind: &str,
    what: &str,
    code: &str,
) -> Result<Observation<AwaitedJob>, StepError> {
    let mut uow = cx.store.begin(Mode::Read).await?;
    let system = SystemScope::new();
    let platform = &cx.input.target.platform_id;
    let child = provisioning::find_child(system, uow.as_mut(), &cx.job.id, platform, kind);
    let Some(child) = child.await? else {
        return Ok(Observation::Absent);
    };
    match child.status {
        JobStatus::Completed => Ok(Observation::Present(AwaitedJob {
            job_id: Some(child.id.clone()),
        })),
        JobStatus::Failed => {
            let message = format!("the job {} of {what} has failed", child.id);
            Err(StepError::permanent(code, message))
        }
        _ => Err(StepError::Wait {
            until: uow.now().await?.plus(POLL_INTERVAL),
            reason: what.to_owned(),
            output: None,
        }),
    }
}

/// Waits until the job in the platform's lane has created the platform's resources.
#[derive(Clone, Copy, Debug)]
struct AwaitInfrastructure;

#[async_trait]
impl JobStep<Onboard> for AwaitInfrastructure {
    const HAS_RECORD: bool = false;
    type Output = AwaitedJob;

    fn name(&self) -> &'static str {
        INFRASTRUCTURE
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, Onboard>,
    ) -> Result<Observation<AwaitedJob>, StepError> {
        let what = "the platform's infrastructure";
        await_child(cx, ProvisionPlatform::NAME, what, "PLATFORM_JOB_FAILED").await
    }

    async fn apply(&self, _cx: &StepContext<'_, Onboard>) -> Result<AwaitedJob, StepError> {
        Err(StepError::permanent(
            "PLATFORM_JOB_MISSING",
            "the job of the platform no longer exists",
        ))
    }
}

/// Queues the job that activates the stack, and waits for it.
#[derive(Clone, Copy, Debug)]
struct ActivateStack;

#[async_trait]
impl JobStep<Onboard> for ActivateStack {
    type Output = AwaitedJob;

    fn name(&self) -> &'static str {
        STACK
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, Onboard>,
    ) -> Result<Observation<AwaitedJob>, StepError> {
        let what = "the platform's stack";
        await_child(cx, StackActivate::NAME, what, "STACK_JOB_FAILED").await
    }

    /// Does nothing for a template without a version.
    async fn apply(&self, cx: &StepContext<'_, Onboard>) -> Result<AwaitedJob, StepError> {
        let none = AwaitedJob { job_id: None };
        let mut uow = cx.store.begin(Mode::Read).await?;
        if newest_version(uow.as_mut(), cx.input).await?.is_none() {
            return Ok(none);
        }
        let until = uow.now().await?.plus(POLL_INTERVAL);
        Err(StepError::wait_with(until, "the platform's stack", &none)?)
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, Onboard>,
        uow: &mut dyn UnitOfWork,
        _found: &AwaitedJob,
    ) -> Result<()> {
        let wanted = newest_version(uow, cx.input).await?;
        let platform = find_platform(uow, cx.input).await?;
        let (Some(wanted), Some(platform)) = (wanted, platform) else {
            return Ok(());
        };
        let parent = Some(&cx.job.id);
        workspace_stack::activate_for(cx, &platform, uow, wanted, parent).await?;
        Ok(())
    }
}

/// Returns the activation of the template's newest version for the platform's default tenant; `None` if there is no
/// template or no version.
async fn newest_version(
    uow: &mut dyn UnitOfWork,
    input: &OnboardInput,
) -> Result<Option<workspace_stack::ActivateStack>> {
    let Some(template) = &input.stack_template_id else {
        return Ok(None);
    };
    let template = template::resolve(uow, template.as_str()).await?;
    let unreadable = |error: TextError| Error::Internal(format!("invalid stack template: {error}"));
    let Some(version) = &template.latest_version else {
        return Ok(None);
    };
    Ok(Some(workspace_stack::ActivateStack {
        platform_id: input.target.platform_id.clone(),
        stack_id: Line::parse(template.id.as_str()).map_err(unreadable)?,
        stack_version: SemVer::parse(version).map_err(unreadable)?,
        entity_id: None,
        environment: input.target.environment,
    }))
}

/// Describes the use of an onboarded platform by others. Names one record of each type that neither the onboarding nor
/// a job queued by it created. Returns `None` if the platform is unused.
pub(super) async fn used_by_others(
    system: SystemScope,
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    onboarding: &JobId,
) -> Result<Option<String>> {
    let own = provisioning::with_descendants(system, uow, onboarding, platform.id()).await?;
    let others = OtherRecords {
        system,
        platform,
        own: &own,
    };
    let found = [
        others.entity(uow).await?,
        others.resource(uow).await?,
        others.stack(uow).await?,
        others.feature(uow).await?,
        others.dns_record(uow).await?,
        others.domain(uow).await?,
        others.deployment(uow).await?,
        others
            .any::<PlatformConfig>(uow, PlatformConfigQuery::All)
            .await?,
        others.job(uow).await?,
        others.member(uow).await?,
    ];
    let found: Vec<String> = found.into_iter().flatten().collect();
    if found.is_empty() {
        return Ok(None);
    }
    let platform = platform.id();
    let found = found.join(", ");
    Ok(Some(format!("the platform {platform} is in use: {found}")))
}

/// Finds records of a platform that a set of jobs did not create.
struct OtherRecords<'a> {
    system: SystemScope,
    platform: &'a PlatformAccess,
    own: &'a BTreeSet<JobId>,
}

impl OtherRecords<'_> {
    /// Returns whether a job is one of the set.
    fn is_own(&self, job: Option<&JobId>) -> bool {
        job.is_some_and(|job| self.own.contains(job))
    }

    /// Describes the first record of the query for which `is_other` returns `true`.
    async fn first<R>(
        &self,
        uow: &mut dyn UnitOfWork,
        query: R::Query,
        is_other: impl Fn(&R) -> bool + Send,
    ) -> Result<Option<String>>
    where
        R: Persisted + Record<Owner = PlatformOwned>,
    {
        let mut batches = Batches::<R>::of(query);
        while let Some(batch) = batches.next(self.platform.records(uow)).await? {
            if let Some(other) = batch.iter().find(|record| is_other(record)) {
                return Ok(Some(format!("{} {}", R::KIND, other.key())));
            }
        }
        Ok(None)
    }

    /// Describes the first record of the query.
    async fn any<R>(&self, uow: &mut dyn UnitOfWork, query: R::Query) -> Result<Option<String>>
    where
        R: Persisted + Record<Owner = PlatformOwned>,
    {
        self.first::<R>(uow, query, |_| true).await
    }

    /// Skips the platform's default tenant.
    async fn entity(&self, uow: &mut dyn UnitOfWork) -> Result<Option<String>> {
        let tenants = self.platform.records::<Entity>(uow);
        let own = tenants.first(&EntityQuery::Tenants).await?;
        let listed = EntityQuery::Listed(EntityFilter::default());
        let is_other = |entity: &Entity| own.as_ref().is_none_or(|own| own.id != entity.id);
        self.first(uow, listed, is_other).await
    }

    async fn resource(&self, uow: &mut dyn UnitOfWork) -> Result<Option<String>> {
        let all = ResourceQuery::All { deleted: false };
        let is_other = |resource: &Resource| !self.is_own(resource.provision_job_id.as_ref());
        self.first(uow, all, is_other).await
    }

    async fn stack(&self, uow: &mut dyn UnitOfWork) -> Result<Option<String>> {
        let listed = WorkspaceStackQuery::Listed(WorkspaceStackFilter::default());
        let is_other = |stack: &WorkspaceStack| {
            let is_own = self.is_own(stack.provision_job_id.as_ref());
            stack.status != WorkspaceStackStatus::Inactive && !is_own
        };
        self.first(uow, listed, is_other).await
    }

    async fn feature(&self, uow: &mut dyn UnitOfWork) -> Result<Option<String>> {
        let of_platform = FeatureActivationQuery::OfPlatform {
            environment: None,
            inactive: false,
        };
        let is_other =
            |feature: &FeatureActivation| !self.is_own(feature.provision_job_id.as_ref());
        self.first(uow, of_platform, is_other).await
    }

    async fn dns_record(&self, uow: &mut dyn UnitOfWork) -> Result<Option<String>> {
        let all = DnsRecordQuery::All { deleted: false };
        self.any::<DnsRecord>(uow, all).await
    }

    async fn domain(&self, uow: &mut dyn UnitOfWork) -> Result<Option<String>> {
        let all = CustomDomainQuery::All { deleted: false };
        self.any::<CustomDomain>(uow, all).await
    }

    async fn deployment(&self, uow: &mut dyn UnitOfWork) -> Result<Option<String>> {
        let all = DeploymentQuery::All { in_flight: false };
        self.any::<Deployment>(uow, all).await
    }

    async fn job(&self, uow: &mut dyn UnitOfWork) -> Result<Option<String>> {
        let other = provisioning::find_unfinished(self.platform, uow, self.own).await?;
        Ok(other.map(|job| format!("{} {job}", Job::KIND)))
    }

    /// Describes a member of the platform's organization other than its owner.
    async fn member(&self, uow: &mut dyn UnitOfWork) -> Result<Option<String>> {
        let platform = self.platform.platform();
        let Some(organization) = &platform.organization_id else {
            return Ok(None);
        };
        let owner = platform.owner_user_id.as_ref();
        let other = organization::find_other_member(self.system, uow, organization, owner).await?;
        Ok(other.map(|user| format!("{} {user}", Member::KIND)))
    }
}

/// Creates the organization, platform and default tenant of an onboarding. The session that requested it acts for the
/// organization from then on, unless it already acts for another one.
async fn create_onboarded(
    cx: &Context,
    scope: SystemScope,
    uow: &mut dyn UnitOfWork,
    onboarding: &OnboardingId,
) -> Result<Tenant> {
    let onboarding = unowned_records::<Onboarding>(uow).get(onboarding).await?;
    let setup = TenantSetup {
        platform_id: onboarding.platform_id.clone(),
        name: onboarding.platform_name.clone(),
        slug: onboarding.slug.clone(),
        tier: onboarding.platform_tier,
        owner: onboarding.user_id.clone(),
    };
    let tenant = create_tenant(cx, &scope, uow, setup).await?;
    if let Some(session) = &onboarding.session_id {
        let organization = &tenant.organization_id;
        organization::set_active_if_none(cx, &scope, uow, session, organization).await?;
    }
    Ok(tenant)
}

/// Applies an event to an onboarding. Does nothing if the event is not possible in the current status.
async fn record_event(
    cx: &Context,
    scope: SystemScope,
    uow: &mut dyn UnitOfWork,
    onboarding: &OnboardingId,
    event: OnboardingEvent,
) -> Result<()> {
    let seen = unowned_records::<Onboarding>(uow).get(onboarding).await?;
    let Ok(status) = event.next(seen.status) else {
        return Ok(());
    };
    let mut next = seen.edit();
    next.status = status;
    let action = event.transition().action;
    match audited::replace(cx, &scope, uow, &seen, next, action).await {
        Err(Error::Store(StoreError::Conflict { .. })) => Err(slug_taken()),
        outcome => outcome.map(drop),
    }
}
