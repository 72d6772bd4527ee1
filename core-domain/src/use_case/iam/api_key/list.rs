//! The keys of an owner.

use crate::access::{MembershipScope, PersonScope, unowned};
use crate::iam::{ApiKey, ApiKeyQuery, MAX_API_KEYS};
use crate::kernel::{Result, Stored, grant};
use crate::port::UnitOfWork;

/// The person's keys, newest first, whatever organizations they act for; there are never more than [`MAX_API_KEYS`].
///
/// # Errors
/// When the store failed.
pub async fn own(scope: &PersonScope, uow: &mut dyn UnitOfWork) -> Result<Vec<Stored<ApiKey>>> {
    let own = ApiKeyQuery::OfUser(scope.user_id().clone());
    unowned::<ApiKey>(uow).list(&own, MAX_API_KEYS).await
}

/// The organization's own keys, newest first; there are never more than [`MAX_API_KEYS`].
///
/// # Errors
/// When the store failed.
pub async fn of_organization(
    scope: &MembershipScope<grant::ApiKeyRead>,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<ApiKey>>> {
    let of_organization = ApiKeyQuery::OfOrganization(scope.organization().id.clone());
    unowned::<ApiKey>(uow)
        .list(&of_organization, MAX_API_KEYS)
        .await
}
