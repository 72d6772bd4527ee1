//! The table of custom domains.

use core_domain::registry::{CustomDomain, CustomDomainQuery, CustomDomainStatus};

use crate::codec::{Bool, Json, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{IndexPredicate, Tabular, table};

const NOT_DELETED: IndexPredicate =
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
        is_vouched: Bool,
        proof_missing_since: Opt<Time>,
    }
    unique {
        entered: [platform_id, hostname] where [NOT_DELETED],
        hostname: [hostname] where [IndexPredicate::Is("status", "active")],
    }
    index {
        [platform_id, created_at],
        [platform_id, created_at] where [NOT_DELETED],
        [dns_record_id, created_at] where [NOT_DELETED],
        [created_at] where [IndexPredicate::OneOf("status", &["pending", "verifying"])],
        [hostname, created_at],
        [created_at] where [IndexPredicate::Is("status", "active")],
    }
    select custom_domains
}

fn custom_domains(query: &CustomDomainQuery) -> Select {
    let domains = Select::of(CustomDomain::TABLE);
    let not_deleted = || Filter::of_index(NOT_DELETED);
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
        CustomDomainQuery::Active(hostname) => domains
            .filter(Filter::eq("hostname", hostname))
            .filter(Filter::eq("status", &CustomDomainStatus::Active)),
        CustomDomainQuery::Entered(hostname) => domains
            .filter(Filter::eq("hostname", hostname))
            .filter(not_deleted()),
        CustomDomainQuery::Named(hostname) => domains
            .filter(Filter::eq("hostname", hostname))
            .order_by_desc("created_at"),
        CustomDomainQuery::ActiveOldestFirst => domains
            .filter(Filter::eq("status", &CustomDomainStatus::Active))
            .order_by("created_at"),
    }
}
