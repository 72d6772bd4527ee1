//! `domain.add`: proves whose a custom domain is, has the provider serve it, and waits for its certificate. The domain is
//! active when both are there.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::domain_records::{LOOK_UP_RECORDS, LookUpRecords, ProvesDomain};
use super::domain_target::DomainTarget;
use super::remove_domain::RemoveDomain;
use super::serve_domain::{AskProvider, AwaitCertificate, GIVEN_UP, HOSTNAME_FAILED};
use crate::kernel::Result;
use crate::port::{DnsResolver, UnitOfWork};
use crate::provisioning::{ADD_DOMAIN, FailureKind, Job};
use crate::registry::{CustomDomainEvent, SslStatus};
use crate::use_case::provisioning::{JobContext, JobKind, Steps, enqueue};
use crate::use_case::registry::domain::{follow_job, record_earlier_proof};

/// The kind.
#[derive(Clone, Debug)]
pub(in crate::use_case::registry) struct AddDomain {
    /// Where names are looked up.
    pub(in crate::use_case::registry) dns: Arc<dyn DnsResolver>,
}

impl ProvesDomain for AddDomain {
    fn dns(&self) -> &dyn DnsResolver {
        self.dns.as_ref()
    }
}

#[async_trait]
impl JobKind for AddDomain {
    const NAME: &'static str = ADD_DOMAIN;
    /// Each of its steps gives up by itself. What keeps it from that (a suspended platform, a DNS that does not answer) is no
    /// reason to.
    const DEADLINE: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    type Input = DomainTarget;

    fn steps() -> Steps<Self> {
        let proved = Steps::new().then(LookUpRecords);
        proved.then(AskProvider).then(AwaitCertificate)
    }

    /// Only a job that an operator declared done leaves anything to do.
    async fn completed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        if !cx.job.forced {
            return Ok(());
        }
        let events = [CustomDomainEvent::Restart, CustomDomainEvent::Activate];
        follow(cx, uow, &events, None).await
    }

    /// Fails the domain if the error is about the domain. An outage leaves the domain as it is.
    async fn failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        if !is_verdict(cx.job) {
            return Ok(());
        }
        let refused = has_error(cx.job, HOSTNAME_FAILED);
        let certificate = refused.then_some(SslStatus::Failed);
        follow(cx, uow, &[CustomDomainEvent::Fail], certificate).await?;
        // The job calls the provider only after the proof. A cancelled job is undone.
        let is_asked = cx.job.output_of(LOOK_UP_RECORDS).is_some();
        if !is_asked || cx.job.failure_kind == Some(FailureKind::Cancelled) {
            return Ok(());
        }
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        enqueue::<RemoveDomain>(cx, &platform, uow, cx.input).await?;
        Ok(())
    }

    async fn resumed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        follow(cx, uow, &[CustomDomainEvent::Restart], None).await?;
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        if cx.job.output_of(LOOK_UP_RECORDS).is_none() {
            return Ok(());
        }
        // That step is not done again.
        let (domain, job) = (&cx.input.domain_id, &cx.job.id);
        record_earlier_proof(cx, &platform, uow, domain, job).await
    }
}

/// Whether the end of the job says of the domain that it is not to be served.
fn is_verdict(job: &Job) -> bool {
    match job.failure_kind {
        Some(FailureKind::Cancelled) => true,
        Some(FailureKind::PermanentError) => {
            !has_error(job, GIVEN_UP) && !has_error(job, "PROVIDER_DAMAGED")
        }
        _ => false,
    }
}

fn has_error(job: &Job, code: &str) -> bool {
    job.error.as_ref().is_some_and(|error| error.code == code)
}

async fn follow(
    cx: &JobContext<'_, AddDomain>,
    uow: &mut dyn UnitOfWork,
    events: &[CustomDomainEvent],
    certificate: Option<SslStatus>,
) -> Result<()> {
    let Some(platform) = cx.platform(uow).await? else {
        return Ok(());
    };
    let own = (&cx.input.domain_id, &cx.job.id);
    follow_job(cx, &platform, uow, own, events, certificate).await
}
