//! The table of DNS records.

use core_domain::registry::{DnsRecord, DnsRecordQuery, DnsRecordStatus};

use crate::codec::{Bool, Json, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{IndexPredicate, Tabular, table};

const NOT_DELETED: IndexPredicate =
    IndexPredicate::OneOf("status", &["pending", "active", "failed"]);
const ACTIVE: IndexPredicate = IndexPredicate::Is("status", "active");

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
        missing_records: Json,
        created_at: Time,
        updated_at: Time,
        proof: Text,
        is_vouched: Bool,
        checked_since: Opt<Time>,
        proof_missing_since: Opt<Time>,
        job_id: Opt<Text>,
    }
    unique {
        entered: [platform_id, hostname] where [NOT_DELETED],
        hostname: [hostname] where [ACTIVE],
    }
    index {
        [platform_id, created_at],
        [platform_id, stack_id, created_at],
        [platform_id, stack_id, created_at] where [NOT_DELETED],
        [resource_id, created_at] where [NOT_DELETED],
        [hostname, created_at],
        [created_at] where [ACTIVE],
    }
    select dns_records
}

fn dns_records(query: &DnsRecordQuery) -> Select {
    let records = Select::of(DnsRecord::TABLE);
    let not_deleted = || Filter::of_index(NOT_DELETED);
    let active = || Filter::eq("status", &DnsRecordStatus::Active);
    match query {
        DnsRecordQuery::All { deleted } => records
            .filter_if((!deleted).then(not_deleted))
            .order_by_desc("created_at"),
        DnsRecordQuery::OfStack { stack_id, deleted } => records
            .filter(Filter::eq("stack_id", stack_id))
            .filter_if((!deleted).then(not_deleted))
            .order_by_desc("created_at"),
        DnsRecordQuery::LeadingTo(resource) => records
            .filter(Filter::eq("resource_id", resource))
            .filter(not_deleted())
            .order_by_desc("created_at"),
        DnsRecordQuery::Active(hostname) => records
            .filter(Filter::eq("hostname", hostname))
            .filter(active()),
        DnsRecordQuery::Entered(hostname) => records
            .filter(Filter::eq("hostname", hostname))
            .filter(not_deleted()),
        DnsRecordQuery::Named(hostname) => records
            .filter(Filter::eq("hostname", hostname))
            .order_by_desc("created_at"),
        DnsRecordQuery::Served => records.filter(active()).order_by("created_at"),
    }
}
