//! Slugs: who has one, and who has reserved one.

use crate::access::unowned;
use crate::kernel::{Code, Error, Result, Slug, StoreError};
use crate::port::UnitOfWork;
use crate::registry::{Onboarding, OnboardingQuery, Platform, PlatformQuery};
use crate::use_case::iam::organization;

pub(super) fn slug_taken() -> Error {
    Error::refused(Code::SlugTaken, "The slug belongs to another one.")
}

/// What a write that could not be made means: that the slug is taken, or that the store failed.
pub(super) fn slug_conflict(error: Error) -> Error {
    match error {
        Error::Store(StoreError::Conflict { index: "slug", .. }) => slug_taken(),
        error => error,
    }
}

/// Tells whether a platform with this slug cannot be created.
pub(super) async fn is_taken(uow: &mut dyn UnitOfWork, slug: &Slug) -> Result<bool> {
    let platforms = PlatformQuery::WithSlug(slug.clone());
    Ok(unowned::<Platform>(uow).first(&platforms).await?.is_some()
        || is_reserved(uow, slug).await?
        || organization::slug_is_taken(uow, slug).await?)
}

async fn is_reserved(uow: &mut dyn UnitOfWork, slug: &Slug) -> Result<bool> {
    let onboardings = OnboardingQuery::OpenWithSlug(slug.clone());
    let found = unowned::<Onboarding>(uow).first(&onboardings).await?;
    Ok(found.is_some())
}

/// Refuses a slug that an open onboarding has reserved for the platform it will create.
pub(super) async fn ensure_not_reserved(uow: &mut dyn UnitOfWork, slug: &Slug) -> Result<()> {
    if is_reserved(uow, slug).await? {
        return Err(slug_taken());
    }
    Ok(())
}
