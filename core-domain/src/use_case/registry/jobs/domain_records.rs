//! The step that proves whose a custom domain is: looks its DNS records up until all are there, for seven days from the
//! first look-up that was answered. Between two look-ups the job waits, and holds neither a worker nor its lane.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::domain_target::{DomainTarget, find_wanted};
use crate::kernel::Result;
use crate::port::{DnsError, DnsResolver, UnitOfWork};
use crate::registry::{CustomDomain, CustomDomainEvent, MissingRecord};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError,
};
use crate::use_case::registry::domain::{follow_job, record_check, record_proof};

/// The name of the step.
pub(super) const LOOK_UP_RECORDS: &str = "records";

/// The code of the error of a job whose domain was given up.
pub(super) const RECORDS_MISSING: &str = "DNS_RECORDS_MISSING";

/// A kind that proves whose a domain is.
pub(super) trait ProvesDomain: JobKind<Input = DomainTarget> {
    /// Where names are looked up.
    fn dns(&self) -> &dyn DnsResolver;
}

/// What came of looking the records up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LookUp {
    /// The records that are missing; unset when the domain is not to be verified (any more).
    missing_records: Option<Vec<MissingRecord>>,
}

/// Waits until all records are there.
#[derive(Clone, Copy, Debug)]
pub(super) struct LookUpRecords;

#[async_trait]
impl<K: ProvesDomain> JobStep<K> for LookUpRecords {
    type Output = LookUp;

    fn name(&self) -> &'static str {
        LOOK_UP_RECORDS
    }

    async fn observe(&self, cx: &StepContext<'_, K>) -> Result<Observation<LookUp>, StepError> {
        let job = &cx.job.id;
        let (domain, now) = find_wanted(cx, |domain| domain.is_verified_by(job)).await?;
        let Some(domain) = domain else {
            return Ok(Observation::Present(LookUp {
                missing_records: None,
            }));
        };
        let Ok(missing) = missing_records(cx.kind.dns(), &domain).await else {
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
            return Err(StepError::permanent(RECORDS_MISSING, message));
        }
        let reason = format!("the DNS records of {}", domain.hostname);
        Err(StepError::wait_with(
            domain.next_check(now),
            reason,
            &found,
        )?)
    }

    async fn apply(&self, _cx: &StepContext<'_, K>) -> Result<LookUp, StepError> {
        Err(StepError::permanent(
            RECORDS_MISSING,
            "only the holder of the domain can create its DNS records",
        ))
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        output: &LookUp,
    ) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        let (domain, job) = (&cx.input.domain_id, &cx.job.id);
        match &output.missing_records {
            Some(missing) if missing.is_empty() => {
                record_proof(cx, &platform, uow, domain, job).await
            }
            Some(missing) => record_check(cx, &platform, uow, domain, job, missing).await,
            // Of a deleted platform: nobody verifies it from here on, whether or not the platform comes back.
            None => {
                let events = [CustomDomainEvent::Fail];
                follow_job(cx, &platform, uow, (domain, job), &events, None).await
            }
        }
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, K>,
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

/// The records that are missing.
///
/// # Errors
/// [`DnsError`] when that cannot be told now.
async fn missing_records(
    dns: &dyn DnsResolver,
    domain: &CustomDomain,
) -> Result<Vec<MissingRecord>, DnsError> {
    let [route, proof] = domain.required_records();
    let mut missing = Vec::new();
    if !leads_to(dns, &route).await? {
        missing.push(route);
    }
    if !dns.txt(&proof.name).await?.contains(&proof.value) {
        missing.push(proof);
    }
    Ok(missing)
}

/// Whether a name leads to another one: as another name for it or, as the apex of a zone must, by its addresses.
async fn leads_to(dns: &dyn DnsResolver, route: &MissingRecord) -> Result<bool, DnsError> {
    if dns.cname(&route.name).await?.as_ref() == Some(&route.value) {
        return Ok(true);
    }
    let own = dns.addresses(&route.name).await?;
    Ok(!own.is_empty() && own == dns.addresses(&route.value).await?)
}
