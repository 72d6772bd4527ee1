//! Entering custom domains.

use super::rules::ensure_not_foreign;
use crate::access::{PlatformScope, audited};
use crate::kernel::{
    Context, CustomDomainId, Error, Result, StoreError, Stored, TOKEN_LENGTH, grant, secret_token,
};
use crate::port::UnitOfWork;
use crate::registry::{CreateCustomDomain, CustomDomain};
use crate::use_case::provisioning::enqueue;
use crate::use_case::registry::dns;
use crate::use_case::registry::hostname::is_custom_domain;
use crate::use_case::registry::jobs::{Verification, VerifyDomain};

/// Enters a domain and queues the job that verifies it. That somebody else has entered the hostname is no reason not to:
/// its records prove each by a text of its own, and the first who is proved right has it.
///
/// # Errors
/// `NOT_FOUND` for a DNS record that is not one of the platform's; `CONFLICT` when the platform has entered the hostname,
/// and when another has a DNS record or an active domain of it; `VALIDATION_ERROR` for what could never be verified.
pub async fn create(
    cx: &Context,
    scope: &PlatformScope<grant::DomainWrite>,
    uow: &mut dyn UnitOfWork,
    command: CreateCustomDomain,
) -> Result<Stored<CustomDomain>> {
    command.check()?;
    dns::not_deleted(scope, uow, &command.dns_record_id).await?;
    ensure_not_foreign(scope, uow, &command.hostname).await?;
    let now = uow.now().await?;
    let id = CustomDomainId::generate(now, cx.entropy.as_ref());
    let verification = Verification {
        platform_id: scope.id().clone(),
        domain_id: id.clone(),
    };
    let job = enqueue::<VerifyDomain>(cx, scope, uow, &verification).await?;
    let random = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let domain = CustomDomain::create(id, scope.id(), command, &random, job.id.clone(), now);
    let stored = audited::insert(cx, scope, uow, domain, "domain.created").await;
    stored.map_err(|error| match error {
        Error::Store(StoreError::Conflict {
            index: "entered", ..
        }) => is_custom_domain(),
        error => error,
    })
}
