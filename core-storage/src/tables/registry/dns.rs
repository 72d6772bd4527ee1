//! DNS records.

use core_domain::registry::{DnsRecord, DnsRecordQuery, DnsRecordStatus};

use crate::codec::{Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{IndexPredicate, Tabular, table};

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
        DnsRecordQuery::Active => records.filter(active()),
        DnsRecordQuery::OfStack { stack_id, deleted } => records
            .filter(Filter::eq("stack_id", stack_id))
            .filter_if((!deleted).then(active)),
        DnsRecordQuery::LeadingTo(resource) => records
            .filter(Filter::eq("resource_id", resource))
            .filter(active()),
        DnsRecordQuery::Named(hostname) => records
            .filter(Filter::eq("hostname", hostname))
            .filter(active()),
    }
}
