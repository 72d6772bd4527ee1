//! Scopes on one platform.

use std::marker::PhantomData;
use std::ops::Deref;

use super::membership::membership_of;
use super::records::{Covers, Sealed};
use super::records::{Records, unowned};
use crate::iam::{Organization, PlatformSuspension};
use crate::kernel::{
    Caller, Code, Context, Error, Grant, Machine, PermissionSet, PlatformId, PlatformOwned, Record,
    Result, Stored, Unowned, WriteGrant,
};
use crate::port::{Persisted, UnitOfWork, Within};
use crate::registry::{Platform, PlatformEvent, PlatformStatus};

/// A platform that somebody was let in to, whatever for. To read: scopes that write and jobs have a
/// [`PlatformWriter`].
#[derive(Clone, Debug)]
pub struct PlatformAccess {
    platform: Stored<Platform>,
    suspension: Option<Stored<PlatformSuspension>>,
}

impl PlatformAccess {
    /// The platform's id.
    #[must_use]
    pub fn id(&self) -> &PlatformId {
        &self.platform.id
    }

    /// The platform, as it was when the scope was opened.
    #[must_use]
    pub const fn platform(&self) -> &Stored<Platform> {
        &self.platform
    }

    /// Whether the platform's callers are refused at the moment, and who wanted that.
    #[must_use]
    pub fn suspension(&self) -> Option<&PlatformSuspension> {
        self.suspension.as_deref()
    }

    /// The platform's records of one kind. Those of others do not exist for it.
    pub fn records<'a, R>(&'a self, uow: &'a mut dyn UnitOfWork) -> Records<'a, R>
    where
        R: Persisted + Record<Owner = PlatformOwned>,
    {
        Records::within(uow, Within::Platform(&self.platform.id))
    }
}

/// A platform whose records may be written: that of a scope opened for writing, or of a job.
#[derive(Clone, Debug)]
pub struct PlatformWriter(PlatformAccess);

impl Deref for PlatformWriter {
    type Target = PlatformAccess;

    fn deref(&self) -> &PlatformAccess {
        &self.0
    }
}

/// A platform that the caller was let in to do `G` on. Only [`authorize`] makes one, so a use case that takes it cannot
/// be called unchecked.
#[derive(Clone, Debug)]
pub struct PlatformScope<G> {
    platform: PlatformWriter,
    grant: PhantomData<fn() -> G>,
}

impl<G> Deref for PlatformScope<G> {
    type Target = PlatformAccess;

    fn deref(&self) -> &PlatformAccess {
        &self.platform
    }
}

impl<G: WriteGrant> PlatformScope<G> {
    /// The platform, for use cases that write its records whatever for.
    #[must_use]
    pub const fn writer(&self) -> &PlatformWriter {
        &self.platform
    }
}

impl<G> PlatformScope<G> {
    fn new(access: PlatformAccess) -> Self {
        Self {
            platform: PlatformWriter(access),
            grant: PhantomData,
        }
    }

    /// The same platform for something else, provided the caller is allowed that as well.
    ///
    /// # Errors
    /// `FORBIDDEN`; `INVALID_STATE` for writes to a deleted platform.
    pub async fn also<H: Grant>(
        &self,
        cx: &Context,
        uow: &mut dyn UnitOfWork,
    ) -> Result<PlatformScope<H>> {
        authorize(cx, uow, self.id()).await
    }
}

impl<G> Sealed for PlatformScope<G> {}
impl Sealed for PlatformWriter {}

impl<G: WriteGrant> Covers<PlatformOwned> for PlatformScope<G> {
    fn covered_platform(&self) -> Option<&PlatformId> {
        Some(self.id())
    }
}

impl<G: WriteGrant> Covers<Unowned> for PlatformScope<G> {
    fn covered_platform(&self) -> Option<&PlatformId> {
        None
    }
}

impl Covers<PlatformOwned> for PlatformWriter {
    fn covered_platform(&self) -> Option<&PlatformId> {
        Some(self.id())
    }
}

impl Covers<Unowned> for PlatformWriter {
    fn covered_platform(&self) -> Option<&PlatformId> {
        None
    }
}

/// Lets the caller in to a platform, to do `G`. Operators and the suite itself reach every platform, others those of the
/// organization they act for. A foreign platform is "not found", exactly as a missing one.
///
/// # Errors
/// In this order: `UNAUTHORIZED`; `NOT_FOUND`; `FORBIDDEN`; `PLATFORM_SUSPENDED` for whoever is no operator;
/// `INVALID_STATE` for writes to a deleted platform.
pub async fn authorize<G: Grant>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<PlatformScope<G>> {
    if cx.caller.is_anonymous() {
        return Err(Error::Unauthorized);
    }
    let platform = unowned::<Platform>(uow).get(platform).await?;
    if !cx.caller.is_operator() {
        let permissions = permissions_on(cx, uow, &platform).await?;
        let permissions = permissions.ok_or(Error::NotFound(Platform::KIND))?;
        if !permissions.allows(G::PERMISSION) {
            return Err(Error::Forbidden);
        }
    }
    let suspension = unowned::<PlatformSuspension>(uow)
        .find(&platform.id)
        .await?;
    if let Some(suspension) = &suspension
        && !cx.caller.is_operator()
        && (!G::LIFTS_SUSPENSION || suspension.by_operator)
    {
        return Err(suspended());
    }
    if G::WRITES {
        ensure_not_deleted(&platform)?;
    }
    Ok(PlatformScope::new(PlatformAccess {
        platform,
        suspension,
    }))
}

/// The refusal of a suspended platform's callers.
pub(super) fn suspended() -> Error {
    let message = "This platform has been suspended.";
    Error::refused(Code::PlatformSuspended, message)
}

/// What the caller may do on the platform; `None` when it is not theirs.
async fn permissions_on(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &Platform,
) -> Result<Option<PermissionSet>> {
    if let Some(own) = cx.caller.membership() {
        let of_organization = platform.organization_id.as_ref() == Some(&own.organization_id);
        let active = own.platform_id.as_ref() == Some(&platform.id);
        return Ok((of_organization || active).then(|| own.permissions.clone()));
    }
    // A service names the person it calls for, and not always what they act for: then the platform tells.
    let Caller::User {
        user_id,
        service: Some(_),
        ..
    } = &*cx.caller
    else {
        return Ok(None);
    };
    let Some(organization) = &platform.organization_id else {
        return Ok(None);
    };
    let Some(organization) = unowned::<Organization>(uow).find(organization).await? else {
        return Ok(None);
    };
    let own = membership_of(uow, &organization, user_id).await?;
    Ok(own.map(|own| own.permissions))
}

/// Refuses changes of what belongs to a deleted platform.
pub(crate) fn ensure_not_deleted(platform: &Platform) -> Result<()> {
    if platform.status != PlatformStatus::Deleted {
        return Ok(());
    }
    let restorable = PlatformEvent::Delete.of_event().from.iter().copied();
    Err(crate::kernel::IllegalMove::new(platform.status, restorable).into())
}

/// The platform of a job, for what the job writes. The suite itself works there, so nobody is refused; `None` when the
/// platform is gone.
pub(super) async fn writer_for_job(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<Option<PlatformWriter>> {
    let Some(platform) = unowned::<Platform>(uow).find(platform).await? else {
        return Ok(None);
    };
    let suspension = unowned::<PlatformSuspension>(uow)
        .find(&platform.id)
        .await?;
    Ok(Some(PlatformWriter(PlatformAccess {
        platform,
        suspension,
    })))
}
