//! Finding custom domains.

use super::rules::not_deleted;
use crate::access::{OperatorScope, PlatformScope};
use crate::kernel::{
    Context, CustomDomainId, DeletedFilter, ListQuery, Page, Result, Stored, grant,
};
use crate::port::UnitOfWork;
use crate::registry::{CustomDomain, CustomDomainQuery};

/// How many unverified domains are listed at the most.
const MAX_UNVERIFIED: u32 = 1000;

/// The domains of a platform, newest first.
///
/// # Errors
/// `INVALID_CURSOR`.
pub async fn list(
    cx: &Context,
    scope: &PlatformScope<grant::DomainRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<DeletedFilter>,
) -> Result<Page<Stored<CustomDomain>>> {
    let all = CustomDomainQuery::All {
        deleted: query.filter.include_deleted && cx.caller.is_operator(),
    };
    let domains = scope.records::<CustomDomain>(uow);
    domains.page(&all, &query.page()).await
}

/// A domain that is not deleted.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn get(
    scope: &PlatformScope<grant::DomainRead>,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
) -> Result<Stored<CustomDomain>> {
    not_deleted(scope, uow, domain).await
}

/// The domains of all platforms that are neither verified nor given up, oldest first; the first thousand.
///
/// # Errors
/// When the store failed.
pub async fn list_unverified(
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<CustomDomain>>> {
    let unverified = CustomDomainQuery::Unverified;
    let domains = scope.records::<CustomDomain>(uow);
    domains.list(&unverified, MAX_UNVERIFIED).await
}
