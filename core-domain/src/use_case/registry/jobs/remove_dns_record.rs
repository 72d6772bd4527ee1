//! `dns.remove`: the hostname of a DNS record that was deleted, or has failed, does not lead to its resource any more.

use async_trait::async_trait;

use super::dns_target::{DnsTarget, RoutedRecord, find_record};
use super::hostname_calls::remove_route;
use crate::kernel::{Result, Stored};
use crate::port::{Mode, UnitOfWork};
use crate::registry::{DnsRecord, DnsRecordQuery};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError, Steps,
};
use crate::use_case::registry::dns::record_route_id;

/// The kind.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct RemoveDnsRecord;

impl JobKind for RemoveDnsRecord {
    const NAME: &'static str = "dns.remove";
    const HOOKS: bool = false;
    type Input = DnsTarget;

    fn steps() -> Steps<Self> {
        Steps::new().then(RemoveRoute)
    }
}

/// Takes the hostname away from the resource.
#[derive(Clone, Copy, Debug)]
struct RemoveRoute;

#[async_trait]
impl JobStep<RemoveDnsRecord> for RemoveRoute {
    type Output = ();

    fn name(&self) -> &'static str {
        "route"
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, RemoveDnsRecord>,
    ) -> Result<Observation<()>, StepError> {
        let Some(routed) = to_remove(cx).await? else {
            return Ok(Observation::Present(()));
        };
        let found = cx.infrastructure.route(routed.record.hostname.as_str());
        let found = found.await?;
        let leads_here = found.is_some_and(|route| route.target == routed.target.name);
        Ok(if leads_here {
            Observation::Absent
        } else {
            Observation::Present(())
        })
    }

    async fn apply(&self, cx: &StepContext<'_, RemoveDnsRecord>) -> Result<(), StepError> {
        match to_remove(cx).await? {
            Some(routed) => remove_route(cx, &routed).await,
            None => Ok(()),
        }
    }

    async fn record(
        &self,
        cx: &JobContext<'_, RemoveDnsRecord>,
        uow: &mut dyn UnitOfWork,
        (): &(),
    ) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        let id = &cx.input.dns_record_id;
        let record: Option<Stored<DnsRecord>> = platform.records(uow).find(id).await?;
        if record.is_some_and(|record| is_over(&record)) {
            record_route_id(cx, &platform, uow, id, None).await?;
        }
        Ok(())
    }
}

/// Tells whether the record may not be served: it is over, or its platform has not proved it.
fn is_over(record: &DnsRecord) -> bool {
    !record.is_proved()
}

/// Returns the record, unless another entry of its platform leads the hostname to the same resource.
async fn to_remove(
    cx: &StepContext<'_, RemoveDnsRecord>,
) -> Result<Option<RoutedRecord>, StepError> {
    let mut uow = cx.store.begin(Mode::Read).await?;
    let found = find_record(cx, uow.as_mut()).await?;
    let Some((platform, routed)) = found.filter(|(_, routed)| is_over(&routed.record)) else {
        return Ok(None);
    };
    let again = DnsRecordQuery::Entered(routed.record.hostname.clone());
    let again = platform.records::<DnsRecord>(uow.as_mut()).first(&again);
    let is_wanted = again.await?.is_some_and(|again| {
        let leads_there = again.resource_id == routed.record.resource_id;
        again.id != routed.record.id && leads_there && again.is_proved()
    });
    Ok((!is_wanted).then_some(routed))
}
