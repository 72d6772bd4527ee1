//! Ownership of hostnames.
//!
//! Every platform may create a record for every hostname. A platform is served under a hostname after it has proved
//! that it owns it. The hostname is then taken from the platform that had it before.
//!
//! No proof is needed for records that an operator creates. No proof is needed either for names in the operator's own
//! zones. Tenants may use such a name if it is below the slug of their platform.
//!
//! A platform may have both a DNS record and a custom domain for one hostname. No index covers both tables. The checks
//! are correct because writing units of work are serializable ([`Mode::Write`](crate::port::Mode::Write)).

use crate::access::{PlatformAccess, SystemScope};
use crate::kernel::{Code, Context, Error, PlatformId, Result, Slug, Stored};
use crate::port::UnitOfWork;
use crate::registry::{CustomDomain, CustomDomainQuery, DnsRecord, DnsRecordQuery, Hostname};

/// Returns the error for a hostname that already has a DNS record. It does not reveal which platform has it.
pub(super) fn dns_record_exists_error() -> Error {
    Error::refused(Code::Conflict, "This hostname already has a DNS record.")
}

/// Returns the error for a hostname that already is a custom domain. It does not reveal which platform has it.
pub(super) fn custom_domain_exists_error() -> Error {
    Error::refused(Code::Conflict, "This hostname is a custom domain already.")
}

/// The basis on which a platform is served under a hostname.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The platform proved that it owns the hostname.
    Proved,
    /// No proof is needed: an operator created the record, or the hostname is reserved for the platform.
    Vouched,
}

/// Returns the basis on which a platform claims the hostname of a new DNS record.
///
/// # Errors
/// `HOSTNAME_RESERVED` if the hostname is in one of the operator's zones and not reserved for the platform. Operators
/// may use it.
pub(super) fn claim_of_record(
    cx: &Context,
    scope: &PlatformAccess,
    hostname: &Hostname,
) -> Result<Claim> {
    if cx.caller.is_operator() {
        return Ok(Claim::Vouched);
    }
    let Some(zone) = operator_zone(cx, hostname) else {
        return Ok(Claim::Proved);
    };
    if hostname.is_in(&reserved_name(&scope.platform().slug, zone)) {
        return Ok(Claim::Vouched);
    }
    Err(hostname_reserved_error())
}

/// Returns an error for a custom domain in one of the operator's zones, unless the caller is an operator.
///
/// # Errors
/// `HOSTNAME_RESERVED` if the hostname is in one of the operator's zones.
pub(super) fn ensure_not_reserved(cx: &Context, hostname: &Hostname) -> Result<()> {
    if cx.caller.is_operator() || operator_zone(cx, hostname).is_none() {
        return Ok(());
    }
    Err(hostname_reserved_error())
}

/// Returns the zone of the operator that contains the hostname.
fn operator_zone<'a>(cx: &'a Context, hostname: &Hostname) -> Option<&'a str> {
    let mut zones = cx.limits.operator_zones.iter().map(String::as_str);
    zones.find(|zone| hostname.is_in(zone))
}

/// Returns the name in an operator's zone below which a platform may use hostnames: `{slug}.{zone}`.
fn reserved_name(slug: &Slug, zone: &str) -> String {
    format!("{slug}.{zone}")
}

/// Returns the `HOSTNAME_RESERVED` error.
fn hostname_reserved_error() -> Error {
    let message = "This hostname is in a zone of the operator. Use a name below your platform's \
                   slug, or a hostname in your own zone.";
    Error::refused(Code::HostnameReserved, message)
}

/// Returns an error if another platform is served under the hostname.
///
/// # Errors
/// `CONFLICT` if another platform has an active custom domain or DNS record with this hostname.
pub(super) async fn ensure_not_served_elsewhere(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    hostname: &Hostname,
) -> Result<()> {
    if active_domain(uow, scope.id(), hostname).await?.is_some() {
        return Err(custom_domain_exists_error());
    }
    match active_record(uow, scope.id(), hostname).await? {
        Some(_) => Err(dns_record_exists_error()),
        None => Ok(()),
    }
}

/// Returns another platform's active custom domain with this hostname.
async fn active_domain(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    hostname: &Hostname,
) -> Result<Option<Stored<CustomDomain>>> {
    let active = CustomDomainQuery::Active(hostname.clone());
    let domains = SystemScope::new().records::<CustomDomain>(uow);
    let found = domains.first(&active).await?;
    Ok(found.filter(|domain| domain.platform_id != *platform))
}

/// Returns another platform's active DNS record with this hostname.
async fn active_record(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    hostname: &Hostname,
) -> Result<Option<Stored<DnsRecord>>> {
    let active = DnsRecordQuery::Active(hostname.clone());
    let records = SystemScope::new().records::<DnsRecord>(uow);
    let found = records.first(&active).await?;
    Ok(found.filter(|record| record.platform_id != *platform))
}
