//! `dns.remove`: removes the routes of DNS records. Also deletes the DNS records of removed resources, and checks
//! whether there are any.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::custom_domain_removal::delete_on;
use super::hostname::{RoutedRecord, remove_route, target_of_record};
use crate::access::{Batches, Covers, PlatformAccess, PlatformWriter, audited};
use crate::kernel::{
    Code, Context, DnsRecordId, EntityId, Error, Line, Machine, PlatformId, PlatformOwned,
    ResourceId, Result, StackId, Stored,
};
use crate::port::UnitOfWork;
use crate::provisioning::LaneKey;
use crate::registry::{
    DnsRecord, DnsRecordEvent, DnsRecordQuery, Resource, ResourceQuery, WorkspaceStack,
    WorkspaceStackQuery,
};
use crate::use_case::provisioning::{
    JobContext, JobInput, JobKind, JobStep, Observation, StepContext, StepError, Steps, enqueue,
};

/// The input of the jobs: a DNS record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct DnsTarget {
    pub(in crate::use_case::registry) platform_id: PlatformId,
    pub(in crate::use_case::registry) dns_record_id: DnsRecordId,
}

impl JobInput for DnsTarget {
    type Owner = PlatformOwned;

    fn lane(&self) -> LaneKey {
        LaneKey::platform(&self.platform_id)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.platform_id)
    }
}

impl DnsTarget {
    /// Creates the input for a DNS record of a platform.
    pub(in crate::use_case::registry) fn of(
        scope: &PlatformAccess,
        dns_record: &DnsRecordId,
    ) -> Self {
        Self {
            platform_id: scope.id().clone(),
            dns_record_id: dns_record.clone(),
        }
    }
}

/// The job kind `dns.remove`.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct RemoveDnsRecord;

impl JobKind for RemoveDnsRecord {
    const NAME: &'static str = "dns.remove";
    const HAS_HOOKS: bool = false;
    type Input = DnsTarget;

    fn steps() -> Steps<Self> {
        Steps::new().step(RemoveRoute)
    }
}

/// Removes the route from the hostname to the resource.
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
        let found = cx.infrastructure.get_route(routed.record.hostname.as_str());
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
        let id = &cx.input.dns_record_id;
        let record: Option<Stored<DnsRecord>> = cx.scope.records(uow).find(id).await?;
        if record.is_some_and(|record| must_not_be_served(&record)) {
            record_route_id(cx, &cx.scope, uow, id, None).await?;
        }
        Ok(())
    }
}

/// Returns whether the record must not be served: it has ended, or its platform has not proved it.
fn must_not_be_served(record: &DnsRecord) -> bool {
    !record.is_proved()
}

/// Returns the record, unless another DNS record of its platform points the hostname to the same resource.
async fn to_remove(
    cx: &StepContext<'_, RemoveDnsRecord>,
) -> Result<Option<RoutedRecord>, StepError> {
    let (mut uow, found) = find_record(cx).await?;
    let Some((platform, routed)) = found.filter(|(_, routed)| must_not_be_served(&routed.record))
    else {
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

/// Begins a unit of work for reading. Returns it with the record in any status and its platform; `None` if the record,
/// its resource or its platform does not exist.
pub(super) async fn find_record<K: JobKind<Input = DnsTarget>>(
    cx: &StepContext<'_, K>,
) -> Result<(Box<dyn UnitOfWork>, Option<(PlatformWriter, RoutedRecord)>)> {
    let (mut uow, platform) = cx.read().await?;
    let Some(platform) = platform else {
        return Ok((uow, None));
    };
    let records = platform.records::<DnsRecord>(uow.as_mut());
    let Some(record) = records.find(&cx.input.dns_record_id).await? else {
        return Ok((uow, None));
    };
    let target = target_of_record(&platform, uow.as_mut(), &record).await?;
    let routed = target.map(|target| RoutedRecord { record, target });
    Ok((uow, routed.map(|routed| (platform, routed))))
}

/// Records the id of a DNS record's route. Does not depend on the job of the record. `None` means that the provider
/// does not route the hostname.
pub(super) async fn record_route_id(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    record: &DnsRecordId,
    route: Option<&str>,
) -> Result<()> {
    let Some(seen) = scope.records::<DnsRecord>(uow).find(record).await? else {
        return Ok(());
    };
    let next = DnsRecord {
        cf_route_id: route.and_then(|route| Line::parse(route).ok()),
        ..seen.edit()
    };
    audited::replace(cx, scope, uow, &seen, next, "dns_record.updated").await?;
    Ok(())
}

/// Deletes the DNS records of a removed resource and their custom domains.
pub(in crate::use_case::registry) async fn delete_of_resource(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<()> {
    let leading = DnsRecordQuery::LeadingTo(resource.clone());
    let mut records = Batches::<DnsRecord>::of(leading);
    while let Some(batch) = records.next(scope.records(uow)).await? {
        for record in batch {
            delete_on(cx, scope, uow, &record.id).await?;
            soft_delete_record(cx, scope, uow, &record).await?;
            // The removal of the resource's object also removes its routes. The job covers a route that remains.
            if record.cf_route_id.is_some() {
                let target = DnsTarget::of(scope, &record.id);
                enqueue::<RemoveDnsRecord>(cx, scope, uow, &target).await?;
            }
        }
    }
    Ok(())
}

/// Marks a DNS record as deleted.
pub(in crate::use_case::registry) async fn soft_delete_record(
    cx: &Context,
    scope: &impl Covers<PlatformOwned>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<DnsRecord>,
) -> Result<()> {
    let event = DnsRecordEvent::Delete;
    let next = seen.edit().after(event)?;
    audited::replace(cx, scope, uow, seen, next, event.transition().action).await?;
    Ok(())
}

/// Counts the DNS records of a resource that are not deleted.
pub(super) async fn count_leading_to(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<u64> {
    let leading = DnsRecordQuery::LeadingTo(resource.clone());
    scope.records::<DnsRecord>(uow).count(&leading).await
}

/// Returns `CONFLICT` if a DNS record that is not deleted points to the resource.
pub(in crate::use_case::registry) async fn ensure_no_dns_records(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<()> {
    let leading = count_leading_to(scope, uow, resource).await?;
    if leading == 0 {
        return Ok(());
    }
    Err(Error::Refused {
        code: Code::Conflict,
        message: "DNS records point to this resource. Delete them first.".to_owned(),
        details: json!({ "dnsRecords": leading }),
    })
}

/// Returns `CONFLICT` if a DNS record points to one of the entity's resources, or belongs to one of its workspace
/// stacks. Deleted resources and records do not count.
pub(in crate::use_case::registry) async fn ensure_entity_has_no_dns_records(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
) -> Result<()> {
    let of_entity = ResourceQuery::OfEntity {
        entity_id: entity.clone(),
        deleted: false,
    };
    let mut resources = Batches::<Resource>::of(of_entity);
    while let Some(batch) = resources.next(scope.records(uow)).await? {
        for resource in batch {
            ensure_no_dns_records(scope, uow, &resource.id).await?;
        }
    }
    let mut stacks = Batches::<WorkspaceStack>::of(WorkspaceStackQuery::of_tenant(entity));
    while let Some(batch) = stacks.next(scope.records(uow)).await? {
        for stack in batch {
            ensure_none_of(scope, uow, &stack.id).await?;
        }
    }
    Ok(())
}

/// Returns `CONFLICT` if a stack has DNS records that are not deleted.
async fn ensure_none_of(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    stack: &StackId,
) -> Result<()> {
    let of_stack = DnsRecordQuery::OfStack {
        stack_id: stack.clone(),
        deleted: false,
    };
    let records = scope.records::<DnsRecord>(uow).count(&of_stack).await?;
    if records == 0 {
        return Ok(());
    }
    Err(Error::Refused {
        code: Code::Conflict,
        message: "A workspace stack has DNS records. Delete them first.".to_owned(),
        details: json!({ "dnsRecords": records }),
    })
}
