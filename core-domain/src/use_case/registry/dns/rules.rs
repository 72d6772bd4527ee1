//! What every use case of DNS records asks, and what others ask of them.

use serde_json::json;

use super::stack::ensure_stack;
use crate::access::{Batches, PlatformAccess};
use crate::kernel::{
    Code, DnsRecordId, EntityId, Error, Record, ResourceId, Result, StackId, Stored,
};
use crate::port::UnitOfWork;
use crate::registry::{
    DnsRecord, DnsRecordQuery, DnsRecordStatus, Resource, ResourceQuery, WorkspaceStack,
    WorkspaceStackQuery,
};

/// A DNS record of the platform that is not deleted.
pub(in crate::use_case::registry) async fn not_deleted(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    dns_record: &DnsRecordId,
) -> Result<Stored<DnsRecord>> {
    let found = scope.records::<DnsRecord>(uow).get(dns_record).await?;
    if found.status == DnsRecordStatus::Deleted {
        return Err(Error::NotFound(DnsRecord::KIND));
    }
    Ok(found)
}

/// As [`not_deleted`], of a stack of the platform.
pub(super) async fn of_stack(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    stack: &StackId,
    dns_record: &DnsRecordId,
) -> Result<Stored<DnsRecord>> {
    ensure_stack(scope, uow, stack).await?;
    let found = not_deleted(scope, uow, dns_record).await?;
    if found.stack_id != *stack {
        return Err(Error::NotFound(DnsRecord::KIND));
    }
    Ok(found)
}

/// Refuses while a DNS record that is not deleted leads to the resource.
pub(in crate::use_case::registry) async fn ensure_none_leads_to(
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
        message: "DNS records lead to this resource.".to_owned(),
        details: json!({ "dnsRecords": leading }),
    })
}

/// Counts the active DNS records of a resource.
pub(in crate::use_case::registry) async fn count_leading_to(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<u64> {
    let leading = DnsRecordQuery::LeadingTo(resource.clone());
    scope.records::<DnsRecord>(uow).count(&leading).await
}

/// As [`ensure_none_leads_to`], for every resource of an entity that is not deleted; and refuses DNS records of the entity's
/// workspace stacks.
pub(in crate::use_case::registry) async fn ensure_none_leads_into(
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
            ensure_none_leads_to(scope, uow, &resource.id).await?;
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
        message: "A workspace stack has DNS records.".to_owned(),
        details: json!({ "dnsRecords": records }),
    })
}
