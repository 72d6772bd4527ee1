//! Changing custom domains.

use super::delete::queue_removal;
use super::rules::{not_deleted, replace};
use crate::access::{PlatformScope, authorize_operator};
use crate::kernel::{
    Context, CustomDomainId, IllegalMove, Machine, Result, Stored, UnixSeconds, grant,
};
use crate::port::UnitOfWork;
use crate::registry::{CustomDomain, CustomDomainEvent, CustomDomainStatus, UpdateCustomDomain};
use crate::use_case::provisioning::enqueue;
use crate::use_case::registry::jobs::{AddDomain, DomainTarget};

/// Changes a domain. A new job verifies a domain that goes back to `pending`, and serves one that becomes `active`. A domain
/// that becomes `failed` or `deleted` is not served any more. Only a domain that is active after the change takes
/// `verifiedAt`. Only operators may set it, set the status `active`, or say of the certificate what follows a proof.
///
/// # Errors
/// `NOT_FOUND`; `FORBIDDEN` when anybody but operators calls it verified, or says of its certificate what follows that;
/// `INVALID_STATE` for a move that is not in the table, and for an instant of verification of a domain that is not active;
/// `CONFLICT` when it is to be active and its hostname is another platform's; `VERSION_CONFLICT`.
pub async fn update(
    cx: &Context,
    scope: &PlatformScope<grant::DomainWrite>,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
    command: UpdateCustomDomain,
) -> Result<Stored<CustomDomain>> {
    let seen = not_deleted(scope, uow, domain).await?;
    let (mut next, mut action) = (seen.edit(), "domain.updated");
    if let Some(status) = command.status
        && let Some(event) = CustomDomainEvent::between(seen.status, status)?
    {
        next = next.after(event, uow.now().await?)?;
        action = event.of_event().action;
        if next.status == CustomDomainStatus::Active {
            authorize_operator(cx)?;
            next.is_vouched = true;
        }
        if event == CustomDomainEvent::Restart || next.status == CustomDomainStatus::Active {
            let target = DomainTarget::of(scope, domain);
            let job = enqueue::<AddDomain>(cx, scope, uow, &target).await?;
            next.job_id = job.id.clone();
        }
    }
    if let Some(UnixSeconds(verified_at)) = command.verified_at {
        authorize_operator(cx)?;
        if next.status != CustomDomainStatus::Active {
            return Err(IllegalMove::new(next.status, [CustomDomainStatus::Active]).into());
        }
        next.verified_at = Some(verified_at);
    }
    if let Some(ssl_status) = command.ssl_status
        && ssl_status.follows_proof()
        && ssl_status != next.ssl_status
    {
        authorize_operator(cx)?;
    }
    command.apply_to(&mut next);
    let stored = replace(cx, scope.writer(), uow, &seen, next, action).await?;
    let is_over = matches!(
        stored.status,
        CustomDomainStatus::Deleted | CustomDomainStatus::Failed
    );
    if is_over && stored.status != seen.status {
        queue_removal(cx, scope.writer(), uow, &seen).await?;
    }
    Ok(stored)
}
