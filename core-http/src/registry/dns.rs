//! DNS records of workspace stacks.

use core_domain::access::PlatformScope;
use core_domain::kernel::{
    Code, DeletedFilter, DnsRecordId, ListQuery, PlatformId, Result, StackId, Stored, grant,
};
use core_domain::port::UnitOfWork;
use core_domain::registry::{CreateDnsRecord, DnsRecord};
use core_domain::use_case::registry::dns;
use http::StatusCode;

use crate::kernel::{Cx, Endpoint, Input, ListP5, Output, delete, get, post};

const ALL: &str = "/api/v1/platforms/{platformId}/stacks/{stackId}/dns";
const ONE: &str = "/api/v1/platforms/{platformId}/stacks/{stackId}/dns/{dnsId}";
const ONE_OF_PLATFORM: &str = "/api/v1/platforms/{platformId}/dns/{dnsId}";

type Reads = PlatformScope<grant::DnsRead>;
type Writes = PlatformScope<grant::DnsWrite>;
type OfStack = (PlatformId, StackId);
type One = (PlatformId, StackId, DnsRecordId);

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get(ALL, "listDnsRecords")
            .summary("Lists a stack's DNS records, newest first.")
            .reads(list),
        post(ALL, "createDnsRecord")
            .summary("Lets a hostname lead to a resource.")
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::Conflict, Code::HostnameReserved, Code::LimitReached])
            .writes(create),
        get(ONE, "getStackDnsRecord")
            .summary("Shows a DNS record of a stack.")
            .reads(show_of_stack),
        delete(ONE, "deleteDnsRecord")
            .summary("Deletes a DNS record that no custom domain leads to.")
            .success(&[StatusCode::NO_CONTENT])
            .if_match()
            .refuses(&[Code::Conflict, Code::LimitReached])
            .writes(remove),
        get(ONE_OF_PLATFORM, "getDnsRecord")
            .summary("Shows a DNS record.")
            .reads(show),
    ]
}

async fn list(
    cx: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<OfStack, ListQuery<DeletedFilter>>,
) -> Result<Output<ListP5<DnsRecord>>> {
    let page = dns::list(cx, &scope, uow, &input.path.1, &input.query).await?;
    Ok(Output::new(page.map(Stored::into_inner).into()))
}

async fn create(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<OfStack, (), CreateDnsRecord>,
) -> Result<Stored<DnsRecord>> {
    dns::create(cx, &scope, uow, &input.path.1, input.body).await
}

async fn show_of_stack(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<One>,
) -> Result<Stored<DnsRecord>> {
    dns::get_of_stack(&scope, uow, &input.path.1, &input.path.2).await
}

async fn remove(cx: &Cx, scope: Writes, uow: &mut dyn UnitOfWork, input: Input<One>) -> Result<()> {
    dns::delete(cx, &scope, uow, &input.path.1, &input.path.2).await
}

async fn show(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId, DnsRecordId)>,
) -> Result<Stored<DnsRecord>> {
    dns::get(&scope, uow, &input.path.1).await
}
