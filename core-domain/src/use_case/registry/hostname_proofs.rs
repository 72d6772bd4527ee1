//! Checks the proofs of all served hostnames again. A hostname is no longer served if its proof is missing.

use std::collections::BTreeSet;
use std::time::Duration;

use super::jobs::{fail_domain, fail_record};
use crate::access::{Batches, PlatformAccess, SystemScope, audited};
use crate::kernel::{Context, CustomDomainId, DnsRecordId, Result};
use crate::port::{DnsResolver, Mode, Store, UnitOfWork, transact};
use crate::registry::{
    CustomDomain, CustomDomainQuery, CustomDomainStatus, DnsRecord, DnsRecordQuery,
    DnsRecordStatus, Hostname, MissingRecord,
};

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
                    record_domain(cx, uow, id, &wanted.hostname, texts, patience).await
                }
                ServedRecord::Record(id) => {
                    record_dns_record(cx, uow, id, &wanted.hostname, texts, patience).await
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
    id: &CustomDomainId,
    hostname: &Hostname,
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
    id: &DnsRecordId,
    hostname: &Hostname,
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
    let next = seen.edit().after_proof_look_up(is_there, now);
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
