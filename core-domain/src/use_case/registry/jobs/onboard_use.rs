//! Use of an onboarded platform by others: their records, jobs and memberships.

use std::collections::BTreeSet;

use crate::access::{Batches, PlatformAccess, SystemScope};
use crate::iam::Member;
use crate::kernel::{JobId, PlatformOwned, Record, Result};
use crate::port::{Persisted, UnitOfWork};
use crate::provisioning::Job;
use crate::registry::{
    CustomDomain, CustomDomainQuery, Deployment, DeploymentQuery, DnsRecord, DnsRecordQuery,
    Entity, EntityFilter, EntityQuery, FeatureActivation, FeatureActivationQuery, PlatformConfig,
    PlatformConfigQuery, Resource, ResourceQuery, WorkspaceStack, WorkspaceStackFilter,
    WorkspaceStackQuery, WorkspaceStackStatus,
};
use crate::use_case::iam::organization;
use crate::use_case::provisioning;

/// Describes the use of an onboarded platform by others. Names one record of each type that neither the onboarding nor a
/// job queued by it created. Returns `None` if the platform is unused.
pub(super) async fn used_by_others(
    system: SystemScope,
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    onboarding: &JobId,
) -> Result<Option<String>> {
    let own = provisioning::with_descendants(system, uow, onboarding).await?;
    let others = Others {
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
struct Others<'a> {
    system: SystemScope,
    platform: &'a PlatformAccess,
    own: &'a BTreeSet<JobId>,
}

impl Others<'_> {
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

    async fn any<R>(&self, uow: &mut dyn UnitOfWork, query: R::Query) -> Result<Option<String>>
    where
        R: Persisted + Record<Owner = PlatformOwned>,
    {
        self.first::<R>(uow, query, |_| true).await
    }

    /// Skips the first tenant, which belongs to the platform itself.
    async fn entity(&self, uow: &mut dyn UnitOfWork) -> Result<Option<String>> {
        let tenants = self.platform.records::<Entity>(uow);
        let own = tenants.first(&EntityQuery::Tenants).await?;
        let listed = EntityQuery::Listed(EntityFilter::default());
        let is_other = |entity: &Entity| own.as_ref().is_none_or(|own| own.id != entity.id);
        self.first(uow, listed, is_other).await
    }

    async fn resource(&self, uow: &mut dyn UnitOfWork) -> Result<Option<String>> {
        let all = ResourceQuery::All { deleted: false };
        let is_other = |entry: &Resource| !self.is_own(entry.provision_job_id.as_ref());
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
