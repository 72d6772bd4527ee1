//! Finding platforms.

use crate::access::{OrganizationScope, PlatformScope, Reach, unowned};
use crate::kernel::{Context, DeletedFilter, ListQuery, NoFilter, Page, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::registry::{LifecycleQuery, LifecycleRecord, Platform, PlatformQuery};

/// The platforms the caller reaches, newest first. Operators may ask for deleted ones too.
///
/// # Errors
/// `INVALID_CURSOR`.
pub async fn list(
    cx: &Context,
    scope: &OrganizationScope<grant::PlatformRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<DeletedFilter>,
) -> Result<Page<Stored<Platform>>> {
    let platforms = match scope.reach() {
        Reach::Nowhere => return Ok(Page::empty()),
        Reach::Installation => PlatformQuery::All {
            deleted: query.filter.include_deleted && cx.caller.is_operator(),
        },
        Reach::Organization(organization) => PlatformQuery::Of(organization.clone()),
        Reach::Platform(platform) => PlatformQuery::WithId(platform.clone()),
    };
    unowned::<Platform>(uow)
        .page(&platforms, &query.page())
        .await
}

/// The platform. A deleted one can still be looked at, until it is removed for good.
#[must_use]
pub fn get(scope: &PlatformScope<grant::PlatformRead>) -> Stored<Platform> {
    scope.platform().clone()
}

/// What happened to a platform's status, newest first.
///
/// # Errors
/// `INVALID_CURSOR`.
pub async fn lifecycle(
    scope: &PlatformScope<grant::PlatformRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<NoFilter>,
) -> Result<Page<Stored<LifecycleRecord>>> {
    let records = scope.records::<LifecycleRecord>(uow);
    records.page(&LifecycleQuery::All, &query.page()).await
}
