//! Entering custom domains.

use crate::access::{PlatformScope, audited};
use crate::kernel::{
    Code, Context, CustomDomainId, Error, Result, StoreError, Stored, TOKEN_LENGTH, grant,
    secret_token,
};
use crate::port::UnitOfWork;
use crate::registry::{CreateCustomDomain, CustomDomain};
use crate::use_case::provisioning::enqueue;
use crate::use_case::registry::dns;
use crate::use_case::registry::jobs::{Verification, VerifyDomain};

/// Enters a domain and queues the job that verifies it.
///
/// # Errors
/// `NOT_FOUND` for a DNS record that is not one of the platform's; `CONFLICT` when the hostname is taken, by whomever;
/// `VALIDATION_ERROR` for what could never be verified.
pub async fn create(
    cx: &Context,
    scope: &PlatformScope<grant::DomainWrite>,
    uow: &mut dyn UnitOfWork,
    command: CreateCustomDomain,
) -> Result<Stored<CustomDomain>> {
    command.check()?;
    dns::not_deleted(scope, uow, &command.dns_record_id).await?;
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
    stored.map_err(hostname_conflict)
}

fn hostname_conflict(error: Error) -> Error {
    match error {
        Error::Store(StoreError::Conflict {
            index: "hostname", ..
        }) => Error::refused(Code::Conflict, "This hostname is a custom domain already."),
        error => error,
    }
}
