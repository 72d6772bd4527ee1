//! Entering custom domains.

use crate::access::{PlatformScope, PlatformWriter, audited, ensure_room_unless_operator};
use crate::kernel::{
    Context, CustomDomainId, Error, JobId, Result, StoreError, Stored, TOKEN_LENGTH, grant,
    secret_token,
};
use crate::port::UnitOfWork;
use crate::registry::{CreateCustomDomain, CustomDomain, CustomDomainQuery};
use crate::use_case::provisioning::enqueue;
use crate::use_case::registry::dns;
use crate::use_case::registry::hostname::{ensure_not_reserved, is_custom_domain};
use crate::use_case::registry::jobs::{AddDomain, DomainTarget};

/// Enters a domain and queues the job that proves whose it is and has it served. That somebody else has entered the
/// hostname, or is served under it, is no reason not to: the records prove each platform by a text of its own, and who is
/// proved right last has it.
///
/// # Errors
/// `NOT_FOUND` for a DNS record that is not one of the platform's; `CONFLICT` when the platform has entered the hostname;
/// `HOSTNAME_RESERVED` for a hostname of the operator's; `VALIDATION_ERROR` for what could never be verified;
/// `LIMIT_REACHED`.
pub async fn create(
    cx: &Context,
    scope: &PlatformScope<grant::DomainWrite>,
    uow: &mut dyn UnitOfWork,
    command: CreateCustomDomain,
) -> Result<Stored<CustomDomain>> {
    command.check(["hostname", "targetDns"])?;
    dns::not_deleted(scope, uow, &command.dns_record_id).await?;
    let id = CustomDomainId::generate(uow.now().await?, cx.entropy.as_ref());
    let target = DomainTarget::of(scope, &id);
    let job = enqueue::<AddDomain>(cx, scope, uow, &target).await?;
    insert(cx, scope.writer(), uow, (id, job.id.clone()), command).await
}

/// Enters a domain under this id, which this job works on.
pub(super) async fn insert(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    (id, job): (CustomDomainId, JobId),
    command: CreateCustomDomain,
) -> Result<Stored<CustomDomain>> {
    ensure_not_reserved(cx, &command.hostname)?;
    let existing = CustomDomainQuery::All { deleted: false };
    let domains = scope.records::<CustomDomain>(uow);
    let limit = cx.limits.domains_per_platform;
    let message = "The platform has as many custom domains as it may have. Delete one first.";
    ensure_room_unless_operator(cx, domains, &existing, limit, message).await?;
    let random = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let now = uow.now().await?;
    let domain = CustomDomain::create(id, scope.id(), command, &random, job, now);
    let stored = audited::insert(cx, scope, uow, domain, "domain.created").await;
    stored.map_err(|error| match error {
        Error::Store(StoreError::Conflict {
            index: "entered", ..
        }) => is_custom_domain(),
        error => error,
    })
}
