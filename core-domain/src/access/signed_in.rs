//! Scopes that depend only on the identity of the caller.

use super::records::covers_unowned;
use super::records::unowned_records;
use super::requirement::Requirement;
use crate::iam::PlatformSuspension;
use crate::kernel::{Code, Context, Error, PlatformId, Result, SessionId, UserId};
use crate::port::UnitOfWork;

/// Any caller, also an anonymous one.
#[derive(Clone, Copy, Debug)]
pub struct PublicScope(());

impl PublicScope {
    /// Creates the scope without a check.
    #[must_use]
    pub const fn open() -> Self {
        Self(())
    }
}

/// An authenticated caller whose platform is not suspended.
#[derive(Clone, Copy, Debug)]
pub struct SignedInScope(());

/// A person who calls by a session, or for whom a service calls.
#[derive(Clone, Debug)]
pub struct PersonScope {
    user_id: UserId,
}

impl PersonScope {
    /// The user id of the person.
    #[must_use]
    pub const fn user_id(&self) -> &UserId {
        &self.user_id
    }

    /// Returns the scope on the person's own account.
    #[must_use]
    pub fn account(&self) -> AccountScope {
        AccountScope {
            user_id: self.user_id.clone(),
        }
    }
}

/// The account of a person, for the person or for a program with a personal API key of that person.
#[derive(Clone, Debug)]
pub struct AccountScope {
    user_id: UserId,
}

impl AccountScope {
    /// The user id of the account's owner.
    #[must_use]
    pub const fn user_id(&self) -> &UserId {
        &self.user_id
    }
}

/// A person with a session.
#[derive(Clone, Debug)]
pub struct SessionScope {
    session_id: SessionId,
}

impl SessionScope {
    /// The id of the caller's session.
    #[must_use]
    pub const fn session_id(&self) -> &SessionId {
        &self.session_id
    }
}

/// A service: the holder of the service key, or the suite itself.
#[derive(Clone, Copy, Debug)]
pub struct ServiceScope(());

covers_unowned! {
    PublicScope;
    SignedInScope;
    PersonScope;
    AccountScope;
    SessionScope;
    ServiceScope;
}

/// Authorizes any caller who is not anonymous.
///
/// # Errors
/// - `UNAUTHORIZED` if the caller is anonymous.
/// - `PLATFORM_SUSPENDED` if the platform that the caller acts for is suspended.
pub async fn authorize_signed_in(cx: &Context, uow: &mut dyn UnitOfWork) -> Result<SignedInScope> {
    Requirement::SignedIn.check(&cx.caller)?;
    ensure_caller_not_suspended(cx, uow).await?;
    Ok(SignedInScope(()))
}

/// Authorizes a person to manage their own data. API keys are refused, also the person's own. A suspended platform is
/// no obstacle.
///
/// # Errors
/// `UNAUTHORIZED` if the caller is not a person.
pub fn authorize_person(cx: &Context) -> Result<PersonScope> {
    let user_id = cx.caller.person_id().cloned().ok_or(Error::Unauthorized)?;
    Ok(PersonScope { user_id })
}

/// Authorizes a person, or a program with a personal API key, which may read the account of its owner.
///
/// # Errors
/// `UNAUTHORIZED` for all other callers, in particular for the API keys of an organization.
pub fn authorize_account(cx: &Context) -> Result<AccountScope> {
    let user_id = cx.caller.account_id().cloned().ok_or(Error::Unauthorized)?;
    Ok(AccountScope { user_id })
}

/// Authorizes a person with a session.
///
/// # Errors
/// `UNAUTHORIZED` if the caller has no session.
pub fn authorize_session(cx: &Context) -> Result<SessionScope> {
    let session_id = cx.caller.session_id().cloned().ok_or(Error::Unauthorized)?;
    Ok(SessionScope { session_id })
}

/// Authorizes a service.
///
/// # Errors
/// - `UNAUTHORIZED` if the caller is anonymous.
/// - `FORBIDDEN` if the caller is not a service.
pub fn authorize_service(cx: &Context) -> Result<ServiceScope> {
    Requirement::Service.check(&cx.caller)?;
    Ok(ServiceScope(()))
}

/// Returns `PLATFORM_SUSPENDED` if the caller acts for a suspended platform and is not an operator.
pub(super) async fn ensure_caller_not_suspended(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
) -> Result<()> {
    ensure_not_suspended(cx, uow, cx.caller.platform_id()).await
}

/// Returns `PLATFORM_SUSPENDED` if the platform is suspended and the caller is not an operator.
pub(super) async fn ensure_not_suspended(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: Option<&PlatformId>,
) -> Result<()> {
    let Some(platform) = platform.filter(|_| !cx.caller.is_operator()) else {
        return Ok(());
    };
    let suspension = unowned_records::<PlatformSuspension>(uow)
        .find(platform)
        .await?;
    if suspension.is_some() {
        return Err(platform_suspended_error());
    }
    Ok(())
}

/// Returns the error for callers of a suspended platform.
pub(super) fn platform_suspended_error() -> Error {
    let message = "This platform has been suspended.";
    Error::refused(Code::PlatformSuspended, message)
}
