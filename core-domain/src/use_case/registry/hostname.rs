//! Whose a hostname is: of the platform that has a DNS record or an active custom domain of it, and may have both. A custom
//! domain that is not active only says what somebody wants, and keeps nobody else from it.
//!
//! No index covers two tables. What is asked here holds because units that write behave as if they ran one after the other
//! ([`Mode::Write`](crate::port::Mode::Write)); `dns::create` and whatever makes a domain active ask about each other.

use crate::access::{PlatformAccess, SystemScope};
use crate::kernel::{Code, Error, Result};
use crate::port::UnitOfWork;
use crate::registry::{CustomDomain, CustomDomainQuery, DnsRecord, DnsRecordQuery, Hostname};

/// The refusal of a hostname that has a DNS record. It does not tell whose.
pub(super) fn has_dns_record() -> Error {
    Error::refused(Code::Conflict, "This hostname has a DNS record already.")
}

/// The refusal of a hostname that is a custom domain. It does not tell whose.
pub(super) fn is_custom_domain() -> Error {
    Error::refused(Code::Conflict, "This hostname is a custom domain already.")
}

/// Refuses a hostname that has a DNS record of another platform.
pub(super) async fn ensure_no_foreign_dns_record(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    hostname: &Hostname,
) -> Result<()> {
    let records = SystemScope::new().records::<DnsRecord>(uow);
    let named = DnsRecordQuery::Named(hostname.clone());
    match records.first(&named).await? {
        Some(record) if record.platform_id != *scope.id() => Err(has_dns_record()),
        _ => Ok(()),
    }
}

/// Refuses a hostname that is an active custom domain of another platform.
pub(super) async fn ensure_no_foreign_domain(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    hostname: &Hostname,
) -> Result<()> {
    let domains = SystemScope::new().records::<CustomDomain>(uow);
    let active = CustomDomainQuery::Active(hostname.clone());
    match domains.first(&active).await? {
        Some(domain) if domain.platform_id != *scope.id() => Err(is_custom_domain()),
        _ => Ok(()),
    }
}
