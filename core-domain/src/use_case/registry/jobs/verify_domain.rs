//! `domain.verify`: looks the DNS records of a custom domain up until all are there, for seven days from the first look-up
//! that was answered. Between two look-ups it waits, and holds neither a worker nor its lane.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::domain_records::missing_records;
use crate::access::PlatformWriter;
use crate::kernel::{CustomDomainId, PlatformId, PlatformOwned, Result, Stored, Timestamp};
use crate::port::{DnsResolver, Mode, UnitOfWork};
use crate::provisioning::LaneKey;
use crate::registry::{CustomDomain, CustomDomainEvent, MissingRecord, PlatformStatus};
use crate::use_case::provisioning::{
    JobContext, JobInput, JobKind, JobStep, Observation, StepContext, StepError, Steps,
};
use crate::use_case::registry::domain::{find_verified_by, follow_job, record_check};

/// What is to be verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct Verification {
    pub(in crate::use_case::registry) platform_id: PlatformId,
    pub(in crate::use_case::registry) domain_id: CustomDomainId,
}

impl JobInput for Verification {
    type Owner = PlatformOwned;

    fn lane(&self) -> LaneKey {
        LaneKey::platform(&self.platform_id)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.platform_id)
    }
}

/// The kind.
#[derive(Clone, Debug)]
pub(in crate::use_case::registry) struct VerifyDomain {
    /// Where names are looked up.
    pub(in crate::use_case::registry) dns: Arc<dyn DnsResolver>,
}

#[async_trait]
impl JobKind for VerifyDomain {
    const NAME: &'static str = "domain.verify";
    /// The job gives up by itself. What keeps it from that (a platform that is suspended, a DNS that does not answer) is no
    /// reason to.
    const DEADLINE: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    type Input = Verification;

    fn steps() -> Steps<Self> {
        Steps::new().then(LookUpRecords)
    }

    /// Only a job that an operator declared done leaves anything to do.
    async fn completed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        if !cx.job.forced {
            return Ok(());
        }
        let events = [CustomDomainEvent::Restart, CustomDomainEvent::Activate];
        follow(cx, uow, &events).await
    }

    async fn failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        follow(cx, uow, &[CustomDomainEvent::Fail]).await
    }

    async fn resumed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        follow(cx, uow, &[CustomDomainEvent::Restart]).await
    }
}

async fn follow(
    cx: &JobContext<'_, VerifyDomain>,
    uow: &mut dyn UnitOfWork,
    events: &[CustomDomainEvent],
) -> Result<()> {
    let Some(platform) = cx.platform(uow).await? else {
        return Ok(());
    };
    follow_job(cx, &platform, uow, &cx.input.domain_id, &cx.job.id, events).await
}

/// What came of looking the records up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LookUp {
    /// The records that are missing; unset when the domain is not to be verified any more.
    missing_records: Option<Vec<MissingRecord>>,
}

/// Waits until all records are there.
#[derive(Clone, Copy, Debug)]
struct LookUpRecords;

#[async_trait]
impl JobStep<VerifyDomain> for LookUpRecords {
    type Output = LookUp;

    fn name(&self) -> &'static str {
        "records"
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, VerifyDomain>,
    ) -> Result<Observation<LookUp>, StepError> {
        let (domain, now) = current(cx).await?;
        let Some(domain) = domain else {
            return Ok(Observation::Present(LookUp {
                missing_records: None,
            }));
        };
        let Ok(missing) = missing_records(cx.kind.dns.as_ref(), &domain).await else {
            return Err(StepError::Wait {
                until: domain.next_try(now),
                reason: "the DNS, which did not answer".to_owned(),
                found: None,
            });
        };
        let is_complete = missing.is_empty();
        let found = LookUp {
            missing_records: Some(missing),
        };
        if is_complete {
            return Ok(Observation::Present(found));
        }
        if domain.is_given_up(now) {
            let message = format!(
                "DNS records of {} were not created in time",
                domain.hostname
            );
            return Err(StepError::permanent("DNS_RECORDS_MISSING", message));
        }
        let reason = format!("the DNS records of {}", domain.hostname);
        Err(StepError::wait_with(
            domain.next_check(now),
            reason,
            &found,
        )?)
    }

    async fn apply(&self, _cx: &StepContext<'_, VerifyDomain>) -> Result<LookUp, StepError> {
        Err(StepError::permanent(
            "DNS_RECORDS_MISSING",
            "only the holder of the domain can create its DNS records",
        ))
    }

    async fn record(
        &self,
        cx: &JobContext<'_, VerifyDomain>,
        uow: &mut dyn UnitOfWork,
        output: &LookUp,
    ) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        let (domain, job) = (&cx.input.domain_id, &cx.job.id);
        match &output.missing_records {
            Some(missing) => record_check(cx, &platform, uow, domain, job, missing).await,
            // Of a deleted platform: nobody verifies it from here on, whether or not the platform comes back.
            None => follow(cx, uow, &[CustomDomainEvent::Fail]).await,
        }
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, VerifyDomain>,
        uow: &mut dyn UnitOfWork,
        found: &LookUp,
    ) -> Result<()> {
        self.record(cx, uow, found).await
    }

    fn timeout(&self) -> Duration {
        // Four look-ups of 20 s at the most.
        Duration::from_secs(100)
    }
}

/// The domain, if this job still has to verify it, and the instant.
async fn current(
    cx: &StepContext<'_, VerifyDomain>,
) -> Result<(Option<Stored<CustomDomain>>, Timestamp), StepError> {
    let mut uow = cx.store.begin(Mode::Read).await?;
    let now = uow.now().await?;
    let platform = cx.platform(uow.as_mut()).await?;
    let is_there = |p: &PlatformWriter| p.platform().status != PlatformStatus::Deleted;
    let Some(platform) = platform.filter(is_there) else {
        return Ok((None, now));
    };
    let (domain, job) = (&cx.input.domain_id, &cx.job.id);
    let domain = find_verified_by(&platform, uow.as_mut(), domain, job).await?;
    Ok((domain, now))
}
