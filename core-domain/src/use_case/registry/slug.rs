//! Slugs: whether a slug is taken or reserved, and the errors for that.

use crate::access::unowned_records;
use crate::kernel::{Code, Error, Result, Slug, StoreError};
use crate::port::UnitOfWork;
use crate::registry::{Onboarding, OnboardingQuery, Platform, PlatformQuery};
use crate::use_case::iam::organization;

/// Returns the `SLUG_TAKEN` error.
pub(super) fn slug_taken() -> Error {
    Error::refused(
        Code::SlugTaken,
        "This slug is already taken. Choose another one.",
    )
}

/// Converts a conflict on the unique index `slug` to `SLUG_TAKEN`. Other errors are returned unchanged.
pub(super) fn slug_conflict(error: Error) -> Error {
    match error {
        Error::Store(StoreError::Conflict { index: "slug", .. }) => slug_taken(),
        error => error,
    }
}

/// Returns whether a new platform cannot use this slug: a platform or organization has it, or an open onboarding has
/// reserved it.
pub(super) async fn is_taken(uow: &mut dyn UnitOfWork, slug: &Slug) -> Result<bool> {
    let platforms = PlatformQuery::WithSlug(slug.clone());
    Ok(unowned_records::<Platform>(uow)
        .first(&platforms)
        .await?
        .is_some()
        || is_reserved(uow, slug).await?
        || organization::slug_is_taken(uow, slug).await?)
}

async fn is_reserved(uow: &mut dyn UnitOfWork, slug: &Slug) -> Result<bool> {
    let onboardings = OnboardingQuery::OpenWithSlug(slug.clone());
    let found = unowned_records::<Onboarding>(uow)
        .first(&onboardings)
        .await?;
    Ok(found.is_some())
}

/// Returns `SLUG_TAKEN` if an open onboarding has reserved the slug for the platform that it will create.
pub(super) async fn ensure_not_reserved(uow: &mut dyn UnitOfWork, slug: &Slug) -> Result<()> {
    if is_reserved(uow, slug).await? {
        return Err(slug_taken());
    }
    Ok(())
}
