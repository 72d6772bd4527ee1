//! The keys of an owner.

use crate::access::{MembershipScope, PersonScope, all_unowned};
use crate::iam::{ApiKey, ApiKeyQuery};
use crate::kernel::{Result, Stored, grant};
use crate::port::UnitOfWork;

/// The person's keys, newest first, whatever organizations they act for; a limit keeps them few.
///
/// # Errors
/// When the store failed.
pub async fn own(scope: &PersonScope, uow: &mut dyn UnitOfWork) -> Result<Vec<Stored<ApiKey>>> {
    let own = ApiKeyQuery::OfUser(scope.user_id().clone());
    all_unowned::<ApiKey>(uow, own).await
}

/// The organization's own keys, newest first; a limit keeps them few.
///
/// # Errors
/// When the store failed.
pub async fn of_organization(
    scope: &MembershipScope<grant::ApiKeyRead>,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<ApiKey>>> {
    let of_organization = ApiKeyQuery::OfOrganization(scope.organization().id.clone());
    all_unowned::<ApiKey>(uow, of_organization).await
}
