//! The id of a DNS record's route at the provider.

use crate::access::{PlatformWriter, audited};
use crate::kernel::{Context, DnsRecordId, Line, Result};
use crate::port::UnitOfWork;
use crate::registry::DnsRecord;

/// Records the route of a DNS record, for any job. `None` means that the provider does not route the hostname.
pub(in crate::use_case::registry) async fn record_route_id(
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
