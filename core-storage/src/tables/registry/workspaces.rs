//! Workspace stacks, DNS records and custom domains.

use core_domain::registry::{
    CustomDomain, CustomDomainQuery, CustomDomainStatus, DnsRecord, DnsRecordQuery,
    DnsRecordStatus, WorkspaceStack, WorkspaceStackQuery,
};

use crate::codec::{Bool, Json, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{IndexPredicate, Tabular, table};

table! {
    WorkspaceStack in "workspace_stacks" {
        id: Text,
        tenant_id: Text,
        platform_id: Text,
        name: Text,
        template_id: Opt<Text>,
        repo_name: Opt<Text>,
        status: Text,
        created_at: Time,
        updated_at: Time,
        is_default: Bool,
    }
    computed {
        default_of: Opt<Text> = |stack| stack.is_default.then(|| stack.tenant_id.to_string()),
    }
    unique {
        name: [tenant_id, name],
        default: [default_of] where [IndexPredicate::NotNull("default_of")],
    }
    index { [platform_id, created_at], [platform_id, tenant_id, created_at] }
    select workspace_stacks
}

fn workspace_stacks(query: &WorkspaceStackQuery) -> Select {
    let stacks = Select::of(WorkspaceStack::TABLE).order_by_desc("created_at");
    match query {
        WorkspaceStackQuery::Listed(filter) => {
            let tenant = filter.tenant_id.as_ref();
            stacks.filter_if(tenant.map(|tenant| Filter::eq("tenant_id", tenant)))
        }
        WorkspaceStackQuery::DefaultOf(tenant) => stacks.filter(Filter::eq("default_of", tenant)),
    }
}

table! {
    DnsRecord in "dns_records" {
        id: Text,
        platform_id: Text,
        stack_id: Text,
        hostname: Text,
        target_type: Text,
        resource_id: Text,
        environment: Text,
        cf_route_id: Opt<Text>,
        status: Text,
        created_at: Time,
        updated_at: Time,
    }
    unique { hostname: [hostname] where [IndexPredicate::Is("status", "active")] }
    index { [platform_id, stack_id, created_at] include [status], [resource_id, created_at] where [IndexPredicate::Is("status", "active")] }
    select dns_records
}

fn dns_records(query: &DnsRecordQuery) -> Select {
    let records = Select::of(DnsRecord::TABLE).order_by_desc("created_at");
    let active = || Filter::eq("status", &DnsRecordStatus::Active);
    match query {
        DnsRecordQuery::OfStack { stack_id, deleted } => records
            .filter(Filter::eq("stack_id", stack_id))
            .filter_if((!deleted).then(active)),
        DnsRecordQuery::LeadingTo(resource) => records
            .filter(Filter::eq("resource_id", resource))
            .filter(active()),
    }
}

const DOMAIN_NOT_DELETED: IndexPredicate =
    IndexPredicate::OneOf("status", &["pending", "verifying", "active", "failed"]);

table! {
    CustomDomain in "custom_domains" {
        id: Text,
        platform_id: Text,
        dns_record_id: Text,
        hostname: Text,
        target_dns: Text,
        cf_hostname_id: Opt<Text>,
        ssl_status: Text,
        status: Text,
        verified_at: Opt<Time>,
        missing_records: Json,
        created_at: Time,
        updated_at: Time,
        proof: Text,
        checked_since: Opt<Time>,
        job_id: Text,
    }
    unique { hostname: [hostname] where [DOMAIN_NOT_DELETED] }
    index {
        [platform_id, created_at],
        [platform_id, created_at] where [DOMAIN_NOT_DELETED],
        [dns_record_id, created_at] where [DOMAIN_NOT_DELETED],
        [created_at] where [IndexPredicate::OneOf("status", &["pending", "verifying"])],
    }
    select custom_domains
}

fn custom_domains(query: &CustomDomainQuery) -> Select {
    let domains = Select::of(CustomDomain::TABLE);
    let not_deleted = || Filter::of_index(DOMAIN_NOT_DELETED);
    match query {
        CustomDomainQuery::All { deleted } => domains
            .filter_if((!deleted).then(not_deleted))
            .order_by_desc("created_at"),
        CustomDomainQuery::OnDnsRecord(record) => domains
            .filter(Filter::eq("dns_record_id", record))
            .filter(not_deleted())
            .order_by_desc("created_at"),
        CustomDomainQuery::Unverified => domains
            .filter(Filter::one_of("status", CustomDomainStatus::UNVERIFIED))
            .order_by("created_at"),
    }
}
