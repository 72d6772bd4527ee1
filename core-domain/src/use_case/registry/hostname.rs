//! Whose a hostname is. Every platform may enter every hostname; who proves that it is theirs is served, and takes it from
//! the platform that was. No proof is needed for what an operator enters, and for hostnames in the operator's own zones,
//! which tenants enter only below the slug of their platform.
//!
//! A platform may have a DNS record and a custom domain of a hostname. No index covers both tables. The checks hold because
//! writing units are serializable ([`Mode::Write`](crate::port::Mode::Write)).

use crate::access::{PlatformAccess, SystemScope};
use crate::kernel::{Code, Context, Error, PlatformId, Result, Slug, Stored};
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

/// The basis on which a platform is served under a hostname.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The platform proved that it is its own.
    Proved,
    /// No proof is needed: an operator entered the hostname, or it is reserved for the platform.
    Vouched,
}

/// Returns how the platform claims a hostname that a caller enters as a DNS record.
///
/// # Errors
/// `HOSTNAME_RESERVED` for a hostname in a zone of the operator's that is not reserved for the platform, unless an operator
/// enters it.
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
    Err(reserved())
}

/// Refuses a custom domain in a zone of the operator's, unless an operator enters it.
///
/// # Errors
/// `HOSTNAME_RESERVED`.
pub(super) fn ensure_not_reserved(cx: &Context, hostname: &Hostname) -> Result<()> {
    if cx.caller.is_operator() || operator_zone(cx, hostname).is_none() {
        return Ok(());
    }
    Err(reserved())
}

fn operator_zone<'a>(cx: &'a Context, hostname: &Hostname) -> Option<&'a str> {
    let mut zones = cx.limits.operator_zones.iter().map(String::as_str);
    zones.find(|zone| hostname.is_in(zone))
}

fn reserved_name(slug: &Slug, zone: &str) -> String {
    format!("{slug}.{zone}")
}

fn reserved() -> Error {
    let message = "This hostname is in a zone of the operator's. Use a name below your platform's slug, or one of your own.";
    Error::refused(Code::HostnameReserved, message)
}

/// Refuses a hostname that another platform is served under.
///
/// # Errors
/// `CONFLICT`.
pub(super) async fn ensure_not_foreign(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    hostname: &Hostname,
) -> Result<()> {
    if active_domain(uow, scope.id(), hostname).await?.is_some() {
        return Err(is_custom_domain());
    }
    match active_record(uow, scope.id(), hostname).await? {
        Some(_) => Err(has_dns_record()),
        None => Ok(()),
    }
}

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
