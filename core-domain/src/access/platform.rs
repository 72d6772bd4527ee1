//! Scopes on one platform.

use std::marker::PhantomData;
use std::ops::Deref;

use super::membership::membership_of;
use super::records::{Covers, Sealed};
use super::records::{Records, unowned_records};
use super::signed_in::platform_suspended_error;
use crate::iam::{Organization, PlatformSuspension};
use crate::kernel::{
    Caller, Context, Error, Machine, PermissionSet, PermissionType, PlatformId, PlatformOwned,
    Record, Result, Stored, Unowned, WritePermission,
};
use crate::port::{Persisted, UnitOfWork, Within};
use crate::registry::{Platform, PlatformEvent, PlatformStatus};

/// Read access to one platform, independent of a permission. Scopes that write, and jobs, have a [`PlatformWriter`].
#[derive(Clone, Debug)]
pub struct PlatformAccess {
    platform: Stored<Platform>,
    suspension: Option<Stored<PlatformSuspension>>,
}

impl PlatformAccess {
    /// The platform's id, which the scope's records share.
    #[must_use]
    pub fn id(&self) -> &PlatformId {
        &self.platform.id
    }

    /// The platform, as read when the scope was created.
    #[must_use]
    pub const fn platform(&self) -> &Stored<Platform> {
        &self.platform
    }

    /// The current suspension, with its originator; `None` if the platform is not suspended.
    #[must_use]
    pub fn suspension(&self) -> Option<&PlatformSuspension> {
        self.suspension.as_deref()
    }

    /// Returns access to the platform's records of one kind. Records of other platforms are invisible.
    pub fn records<'a, R>(&'a self, uow: &'a mut dyn UnitOfWork) -> Records<'a, R>
    where
        R: Persisted + Record<Owner = PlatformOwned>,
    {
        Records::within(uow, Within::Platform(&self.platform.id))
    }
}

/// Write access to one platform, for write scopes and jobs.
#[derive(Clone, Debug)]
pub struct PlatformWriter(PlatformAccess);

impl Deref for PlatformWriter {
    type Target = PlatformAccess;

    fn deref(&self) -> &PlatformAccess {
        &self.0
    }
}

/// A platform on which the caller is authorized to do `G`. Only [`authorize`] creates one, so a use case that takes it
/// cannot be called without a check.
#[derive(Clone, Debug)]
pub struct PlatformScope<G> {
    platform: PlatformWriter,
    permission: PhantomData<fn() -> G>,
}

impl<G> Deref for PlatformScope<G> {
    type Target = PlatformAccess;

    fn deref(&self) -> &PlatformAccess {
        &self.platform
    }
}

impl<G: WritePermission> PlatformScope<G> {
    /// Returns write access to the platform, for use cases that do not depend on `G`.
    #[must_use]
    pub const fn writer(&self) -> &PlatformWriter {
        &self.platform
    }
}

impl<G> PlatformScope<G> {
    fn new(access: PlatformAccess) -> Self {
        Self {
            platform: PlatformWriter(access),
            permission: PhantomData,
        }
    }

    /// Authorizes the caller to do `H` on the same platform.
    ///
    /// # Errors
    /// Those of [`authorize`], in particular `FORBIDDEN` if the caller lacks `H`, and `INVALID_STATE` if `H` writes and
    /// the platform is deleted.
    pub async fn also<H: PermissionType>(
        &self,
        cx: &Context,
        uow: &mut dyn UnitOfWork,
    ) -> Result<PlatformScope<H>> {
        authorize(cx, uow, self.id()).await
    }
}

impl<G> Sealed for PlatformScope<G> {}
impl Sealed for PlatformWriter {}

impl<G: WritePermission> Covers<PlatformOwned> for PlatformScope<G> {
    fn covered_platform(&self) -> Option<&PlatformId> {
        Some(self.id())
    }
}

impl<G: WritePermission> Covers<Unowned> for PlatformScope<G> {
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

/// Authorizes the caller to do `G` on a platform. Operators and the suite itself reach every platform. Other callers
/// reach the platforms of the organization that they act for. A platform of another tenant is reported as missing.
///
/// # Errors
/// In this order:
/// - `UNAUTHORIZED` if the caller is anonymous.
/// - `NOT_FOUND` if the platform is missing or out of the caller's reach.
/// - `FORBIDDEN` if the caller lacks `G`.
/// - `PLATFORM_SUSPENDED` if the platform is suspended and the caller is not an operator.
/// - `INVALID_STATE` if `G` writes and the platform is deleted.
pub async fn authorize<G: PermissionType>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<PlatformScope<G>> {
    if cx.caller.is_anonymous() {
        return Err(Error::Unauthorized);
    }
    let platform = unowned_records::<Platform>(uow).get(platform).await?;
    if !cx.caller.is_operator() {
        let permissions = permissions_on(cx, uow, &platform).await?;
        let permissions = permissions.ok_or(Error::NotFound(Platform::KIND))?;
        if !permissions.allows(G::PERMISSION) {
            return Err(Error::Forbidden);
        }
    }
    let suspension = unowned_records::<PlatformSuspension>(uow)
        .find(&platform.id)
        .await?;
    if let Some(suspension) = &suspension
        && !cx.caller.is_operator()
        && (!G::LIFTS_SUSPENSION || suspension.is_locked())
    {
        return Err(platform_suspended_error());
    }
    if G::WRITES {
        ensure_not_deleted(&platform)?;
    }
    Ok(PlatformScope::new(PlatformAccess {
        platform,
        suspension,
    }))
}

/// Returns the caller's permissions on the platform; `None` if the platform is out of the caller's reach.
pub(super) async fn permissions_on(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &Platform,
) -> Result<Option<PermissionSet>> {
    if let Some(own) = cx.caller.membership() {
        let of_organization = platform.organization_id.as_ref() == Some(&own.organization_id);
        let active = own.platform_id.as_ref() == Some(&platform.id);
        return Ok((of_organization || active).then(|| own.permissions.clone()));
    }
    // A service may name only the person that it calls for, not their organization. Then the platform's organization
    // decides.
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
    let Some(organization) = unowned_records::<Organization>(uow)
        .find(organization)
        .await?
    else {
        return Ok(None);
    };
    let own = membership_of(uow, &organization, user_id).await?;
    Ok(own.map(|own| own.permissions))
}

/// Returns `INVALID_STATE` if the platform is deleted, and its records can therefore not change.
pub(crate) fn ensure_not_deleted(platform: &Platform) -> Result<()> {
    if platform.status != PlatformStatus::Deleted {
        return Ok(());
    }
    let restorable = PlatformEvent::Delete.transition().from.iter().copied();
    Err(crate::kernel::IllegalTransition::new(platform.status, restorable).into())
}

/// Returns write access to a platform for a job; `None` if the platform does not exist. Checks no permission, because
/// the suite itself acts.
pub(super) async fn writer_for_job(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<Option<PlatformWriter>> {
    let Some(platform) = unowned_records::<Platform>(uow).find(platform).await? else {
        return Ok(None);
    };
    let suspension = unowned_records::<PlatformSuspension>(uow)
        .find(&platform.id)
        .await?;
    Ok(Some(PlatformWriter(PlatformAccess {
        platform,
        suspension,
    })))
}
