//! Ownership of hostnames.
//!
//! Every platform may create a record for every hostname. A platform is served under a hostname after it has proved
//! that it owns it. The hostname is then taken from the platform that had it before.
//!
//! No proof is needed for records that an operator creates. No proof is needed either for names in the operator's own
//! zones. Tenants may use such a name if it is below the slug of their platform.
//!
//! A platform may have both a DNS record and a custom domain for one hostname. No index covers both tables. The checks
//! are correct because writing units of work are serializable ([`Mode::Write`]).

use std::collections::BTreeSet;
use std::time::Duration;

use super::jobs::{DnsTarget, DomainTarget, RemoveDnsRecord, RemoveDomain};
use crate::access::{Batches, PlatformAccess, PlatformWriter, SystemScope, audited};
use crate::kernel::{
    Code, Context, CustomDomainId, DnsRecordId, Error, Machine, PlatformId, Result, Slug, Stored,
    TOKEN_LENGTH, secret_token,
};
use crate::port::{DnsResolver, Mode, Store, UnitOfWork, transact};
use crate::registry::{
    CustomDomain, CustomDomainEvent, CustomDomainQuery, CustomDomainStatus, DnsRecord,
    DnsRecordEvent, DnsRecordQuery, DnsRecordStatus, Hostname, MissingRecord, PlatformStatus,
};
use crate::use_case::provisioning::enqueue;

/// Returns the error for a hostname that already has a DNS record. It does not reveal which platform has it.
pub(super) fn has_dns_record() -> Error {
    Error::refused(Code::Conflict, "This hostname already has a DNS record.")
}

/// Returns the error for a hostname that already is a custom domain. It does not reveal which platform has it.
pub(super) fn is_custom_domain() -> Error {
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
    Err(reserved())
}

/// Returns an error for a custom domain in one of the operator's zones, unless the caller is an operator.
///
/// # Errors
/// `HOSTNAME_RESERVED` if the hostname is in one of the operator's zones.
pub(super) fn ensure_not_reserved(cx: &Context, hostname: &Hostname) -> Result<()> {
    if cx.caller.is_operator() || operator_zone(cx, hostname).is_none() {
        return Ok(());
    }
    Err(reserved())
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
fn reserved() -> Error {
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
        return Err(is_custom_domain());
    }
    match active_record(uow, scope.id(), hostname).await? {
        Some(_) => Err(has_dns_record()),
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

/// The result of a check of all proofs, as numbers of hostnames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckedProofs {
    /// Hostnames with a valid proof.
    pub proved: usize,
    /// Hostnames without a proof that are still served.
    pub missing: usize,
    /// Hostnames that are no longer served because of this check.
    pub ended: usize,
    /// Hostnames whose DNS lookup failed. Their records do not change.
    pub unknown: usize,
}

/// The record by which a hostname is served.
#[derive(Clone, Debug)]
enum ServedRecord {
    Domain(CustomDomainId),
    Record(DnsRecordId),
}

/// A hostname that is served, with the DNS record that proves it.
#[derive(Clone, Debug)]
struct ServedProof {
    served: ServedRecord,
    hostname: Hostname,
    proof: MissingRecord,
}

/// Looks up the proofs of all served hostnames, except those that need no proof.
///
/// A record fails if its proof has been missing for `patience`, or if another platform has proved the hostname. A job
/// then stops serving it.
///
/// # Errors
/// Only those of the store. Records that were checked before the error keep their result.
pub async fn check_proofs(
    cx: &Context,
    store: &dyn Store,
    dns: &dyn DnsResolver,
    patience: Duration,
) -> Result<CheckedProofs> {
    let mut checked = CheckedProofs::default();
    let mut domains = Batches::<CustomDomain>::of(CustomDomainQuery::ActiveOldestFirst);
    loop {
        let mut uow = store.begin(Mode::Read).await?;
        let all = SystemScope::new().records(uow.as_mut());
        let Some(batch) = domains.next(all).await? else {
            break;
        };
        drop(uow);
        for domain in batch.iter().filter(|domain| !domain.is_vouched) {
            let [_, proof] = domain.required_records();
            let found = ServedProof {
                served: ServedRecord::Domain(domain.id.clone()),
                hostname: domain.hostname.clone(),
                proof,
            };
            check(cx, store, dns, &found, patience, &mut checked).await?;
        }
    }
    let mut records = Batches::<DnsRecord>::of(DnsRecordQuery::Served);
    loop {
        let mut uow = store.begin(Mode::Read).await?;
        let all = SystemScope::new().records(uow.as_mut());
        let Some(batch) = records.next(all).await? else {
            break;
        };
        drop(uow);
        for record in batch.iter().filter(|record| !record.is_vouched) {
            let found = ServedProof {
                served: ServedRecord::Record(record.id.clone()),
                hostname: record.hostname.clone(),
                proof: record.proof_record(),
            };
            check(cx, store, dns, &found, patience, &mut checked).await?;
        }
    }
    Ok(checked)
}

/// Looks up one proof, updates the record of the hostname and counts the result.
async fn check(
    cx: &Context,
    store: &dyn Store,
    dns: &dyn DnsResolver,
    wanted: &ServedProof,
    patience: Duration,
    checked: &mut CheckedProofs,
) -> Result<()> {
    let Ok(texts) = dns.txt(&wanted.proof.name).await else {
        checked.unknown += 1;
        return Ok(());
    };
    let texts: &BTreeSet<String> = &texts.into_iter().collect();
    let outcome = transact(store, |uow, _| {
        Box::pin(async move {
            match &wanted.served {
                ServedRecord::Domain(id) => {
                    record_domain(cx, uow, (id, &wanted.hostname), texts, patience).await
                }
                ServedRecord::Record(id) => {
                    record_dns_record(cx, uow, (id, &wanted.hostname), texts, patience).await
                }
            }
        })
    });
    match outcome.await? {
        Outcome::Proved => checked.proved += 1,
        Outcome::Missing => checked.missing += 1,
        Outcome::Ended => checked.ended += 1,
    }
    Ok(())
}

/// The effect of a lookup on a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Proved,
    Missing,
    Ended,
}

/// Applies the result of a lookup to a custom domain.
async fn record_domain(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    (id, hostname): (&CustomDomainId, &Hostname),
    texts: &BTreeSet<String>,
    patience: Duration,
) -> Result<Outcome> {
    let system = SystemScope::new();
    let found = system.records::<CustomDomain>(uow).find(id).await?;
    let Some(seen) = found.filter(|domain| domain.status == CustomDomainStatus::Active) else {
        return Ok(Outcome::Proved);
    };
    let Some(platform) = system.platform(uow, &seen.platform_id).await? else {
        return Ok(Outcome::Proved);
    };
    let now = uow.now().await?;
    let is_there = texts.contains(&seen.proof);
    let next = seen.edit().after_proof_look_up(is_there, now);
    let missing_for = next.proof_missing_since.map(|since| now.since(since));
    let is_lost = is_proved_by_another(uow, &platform, hostname, texts).await?;
    if is_lost || missing_for.is_some_and(|time| time >= patience) {
        fail_domain(cx, &platform, uow, &seen).await?;
        return Ok(Outcome::Ended);
    }
    audited::replace(cx, &platform, uow, &seen, next, "domain.proof_checked").await?;
    Ok(outcome_of(is_there))
}

/// Applies the result of a lookup to a DNS record.
async fn record_dns_record(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    (id, hostname): (&DnsRecordId, &Hostname),
    texts: &BTreeSet<String>,
    patience: Duration,
) -> Result<Outcome> {
    let system = SystemScope::new();
    let found = system.records::<DnsRecord>(uow).find(id).await?;
    let Some(seen) = found.filter(|record| record.status == DnsRecordStatus::Active) else {
        return Ok(Outcome::Proved);
    };
    let Some(platform) = system.platform(uow, &seen.platform_id).await? else {
        return Ok(Outcome::Proved);
    };
    let now = uow.now().await?;
    // The platform's active custom domain with this hostname has its own proof, which counts for the DNS record too.
    let domain = CustomDomainQuery::Active(hostname.clone());
    let domain = platform.records::<CustomDomain>(uow).first(&domain).await?;
    let is_there = texts.contains(&seen.proof) || domain.is_some();
    let next = seen.edit().proof_looked_up(is_there, now);
    let missing_for = next.proof_missing_since.map(|since| now.since(since));
    let is_lost = is_proved_by_another(uow, &platform, hostname, texts).await?;
    if is_lost || missing_for.is_some_and(|time| time >= patience) {
        fail_record(cx, &platform, uow, &seen).await?;
        return Ok(Outcome::Ended);
    }
    audited::replace(cx, &platform, uow, &seen, next, "dns_record.proof_checked").await?;
    Ok(outcome_of(is_there))
}

/// Returns the outcome for a record that is still served.
const fn outcome_of(is_there: bool) -> Outcome {
    if is_there {
        Outcome::Proved
    } else {
        Outcome::Missing
    }
}

/// Returns whether the DNS contains the proof of another platform's record that is not deleted.
async fn is_proved_by_another(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformAccess,
    hostname: &Hostname,
    texts: &BTreeSet<String>,
) -> Result<bool> {
    let system = SystemScope::new();
    let mut domains = Batches::<CustomDomain>::of(CustomDomainQuery::Named(hostname.clone()));
    while let Some(batch) = domains.next(system.records(uow)).await? {
        let proves = |domain: &CustomDomain| {
            let is_entered = domain.status != CustomDomainStatus::Deleted;
            is_entered && domain.platform_id != *platform.id() && texts.contains(&domain.proof)
        };
        if batch.iter().any(|domain| proves(domain)) {
            return Ok(true);
        }
    }
    let mut records = Batches::<DnsRecord>::of(DnsRecordQuery::Named(hostname.clone()));
    while let Some(batch) = records.next(system.records(uow)).await? {
        let proves = |record: &DnsRecord| {
            let is_entered = record.status != DnsRecordStatus::Deleted;
            is_entered && record.platform_id != *platform.id() && texts.contains(&record.proof)
        };
        if batch.iter().any(|record| proves(record)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Assigns a hostname to a platform. Other platforms lose it if their records are active. If this platform proved the
/// hostname, other platforms that proved it before lose it too.
///
/// # Errors
/// `CONFLICT` if the claim has no proof and another platform that is not deleted is served under the hostname.
pub(super) async fn assign(
    cx: &Context,
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    hostname: &Hostname,
    claim: Claim,
) -> Result<()> {
    let system = SystemScope::new();
    let mut domains = Batches::<CustomDomain>::of(CustomDomainQuery::Named(hostname.clone()));
    while let Some(batch) = domains.next(system.records(uow)).await? {
        for domain in batch {
            let is_active = domain.status == CustomDomainStatus::Active;
            if domain.platform_id != *scope.id()
                && ends_other_record(claim, is_active, domain.is_proved())
                && let Some(loser) =
                    loser(uow, &domain.platform_id, claim, is_custom_domain).await?
            {
                fail_domain(cx, &loser, uow, &domain).await?;
            }
        }
    }
    let mut records = Batches::<DnsRecord>::of(DnsRecordQuery::Named(hostname.clone()));
    while let Some(batch) = records.next(system.records(uow)).await? {
        for record in batch {
            let is_active = record.status == DnsRecordStatus::Active;
            if record.platform_id != *scope.id()
                && ends_other_record(claim, is_active, record.is_proved())
                && let Some(loser) = loser(uow, &record.platform_id, claim, has_dns_record).await?
            {
                fail_record(cx, &loser, uow, &record).await?;
            }
        }
    }
    Ok(())
}

/// Returns whether a claim ends a record of another platform. A claim without proof ends only active records. A proved
/// record that is not active conflicts with the claim later, when it becomes active.
fn ends_other_record(claim: Claim, is_active: bool, is_proved: bool) -> bool {
    is_active || claim == Claim::Proved && is_proved
}

/// Returns the platform that loses a hostname; `None` if it no longer exists. Returns the error `refusal` for a claim
/// without proof if the platform is not deleted.
async fn loser(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    claim: Claim,
    refusal: fn() -> Error,
) -> Result<Option<PlatformWriter>> {
    let Some(loser) = SystemScope::new().platform(uow, platform).await? else {
        return Ok(None);
    };
    if claim == Claim::Vouched && loser.platform().status != PlatformStatus::Deleted {
        return Err(refusal());
    }
    Ok(Some(loser))
}

/// Fails a custom domain and queues the job that removes its hostname at the provider.
pub(super) async fn fail_domain(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<CustomDomain>,
) -> Result<()> {
    let random = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let next = seen.edit().after_loss(&random, uow.now().await?)?;
    let action = CustomDomainEvent::Fail.transition().action;
    audited::replace(&cx.without_conditions(), scope, uow, seen, next, action).await?;
    let target = DomainTarget::of(scope, &seen.id);
    enqueue::<RemoveDomain>(cx, scope, uow, &target).await?;
    Ok(())
}

/// Fails a DNS record and queues the job that removes its route at the provider.
pub(super) async fn fail_record(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<DnsRecord>,
) -> Result<()> {
    let random = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let next = seen.edit().lost(&random)?;
    let action = DnsRecordEvent::Fail.transition().action;
    audited::replace(&cx.without_conditions(), scope, uow, seen, next, action).await?;
    let target = DnsTarget::of(scope, &seen.id);
    enqueue::<RemoveDnsRecord>(cx, scope, uow, &target).await?;
    Ok(())
}
