//! `domain.verify`: proves whose a custom domain is. It is active with that; nothing is asked of the provider.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::domain_records::{LookUpRecords, ProvesDomain};
use super::domain_target::DomainTarget;
use crate::kernel::Result;
use crate::port::{DnsResolver, UnitOfWork};
use crate::registry::CustomDomainEvent;
use crate::use_case::provisioning::{JobContext, JobKind, Steps};
use crate::use_case::registry::domain::follow_job;

/// The kind.
#[derive(Clone, Debug)]
pub(in crate::use_case::registry) struct VerifyDomain {
    /// Where names are looked up.
    pub(in crate::use_case::registry) dns: Arc<dyn DnsResolver>,
}

impl ProvesDomain for VerifyDomain {
    const PROOF_ACTIVATES: bool = true;

    fn dns(&self) -> &dyn DnsResolver {
        self.dns.as_ref()
    }
}

#[async_trait]
impl JobKind for VerifyDomain {
    const NAME: &'static str = "domain.verify";
    /// The job gives up by itself. What keeps it from that (a platform that is suspended, a DNS that does not answer) is no
    /// reason to.
    const DEADLINE: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    type Input = DomainTarget;

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
    let own = (&cx.input.domain_id, &cx.job.id);
    follow_job(cx, &platform, uow, own, events, None).await
}
