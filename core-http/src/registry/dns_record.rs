//! Endpoints for the DNS records of workspace stacks.

use core_domain::access::PlatformScope;
use core_domain::kernel::{Code, DnsRecordId, PlatformId, Result, StackId, Stored, permission};
use core_domain::port::UnitOfWork;
use core_domain::registry::DnsRecord;
use core_domain::use_case::registry::dns_record;
use http::StatusCode;

use crate::kernel::{
    Cx, Endpoint, Input, ListP5, Output, call_with_id, call_with_id_and_body,
    call_with_id_and_query, delete, get, post,
};

const ALL: &str = "/api/v1/platforms/{platformId}/stacks/{stackId}/dns";
const ONE: &str = "/api/v1/platforms/{platformId}/stacks/{stackId}/dns/{dnsId}";
const ONE_OF_PLATFORM: &str = "/api/v1/platforms/{platformId}/dns/{dnsId}";

type Reads = PlatformScope<permission::DnsRead>;
type Writes = PlatformScope<permission::DnsWrite>;
type One = (PlatformId, StackId, DnsRecordId);

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get(ALL, "listDnsRecords")
            .summary("Lists the DNS records of a workspace stack, newest first.")
            .description(
                "Deleted records are left out; operators can include them with \
                 `includeDeleted=true`.",
            )
            .reads(
                call_with_id_and_query(dns_record::list)
                    .map(|page| Output::new(ListP5::from(page.map(Stored::into_inner)))),
            ),
        post(ALL, "createDnsRecord")
            .summary("Routes a hostname to a resource of the platform.")
            .description(
                "Creates a DNS record and queues a job that creates the route. The job first \
                 waits up to seven days for the proof that the hostname belongs to the platform; \
                 the record lists the DNS entries that are missing. No proof is needed for \
                 hostnames that an operator enters, and for names below the slug of the platform \
                 in a zone of the operator. If the same request created a record that has failed, \
                 a new job is queued for that record.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::Conflict, Code::HostnameReserved, Code::LimitReached])
            .writes(call_with_id_and_body(dns_record::create)),
        get(ONE, "getStackDnsRecord")
            .summary("Returns a DNS record of a workspace stack.")
            .description("Deleted records are not found.")
            .reads(show_of_stack),
        delete(ONE, "deleteDnsRecord")
            .summary("Deletes a DNS record of a workspace stack.")
            .description(
                "Marks the record as deleted and queues a job that removes the route. Custom \
                 domains that use the record must be deleted first. A repeated call gets 404.",
            )
            .success(&[StatusCode::NO_CONTENT])
            .if_match()
            .refuses(&[Code::Conflict, Code::LimitReached])
            .writes(remove),
        get(ONE_OF_PLATFORM, "getDnsRecord")
            .summary("Returns a DNS record of a platform.")
            .description(
                "The same record as below its workspace stack, found without the id of the stack. \
                 Deleted records are not found.",
            )
            .reads(call_with_id(dns_record::get)),
    ]
}

async fn show_of_stack(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<One>,
) -> Result<Stored<DnsRecord>> {
    dns_record::get_of_stack(&scope, uow, &input.path.1, &input.path.2).await
}

async fn remove(cx: &Cx, scope: Writes, uow: &mut dyn UnitOfWork, input: Input<One>) -> Result<()> {
    dns_record::delete(cx, &scope, uow, &input.path.1, &input.path.2).await
}
