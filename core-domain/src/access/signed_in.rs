//! Scopes that ask who calls and nothing else.

use super::platform::suspended;
use super::records::covers_unowned;
use super::records::unowned;
use super::requirement::Requirement;
use crate::iam::PlatformSuspension;
use crate::kernel::{Context, Error, PlatformId, Result, SessionId, UserId};
use crate::port::UnitOfWork;

/// Anybody, known or not.
#[derive(Clone, Copy, Debug)]
pub struct PublicScope(());

impl PublicScope {
    /// Lets everybody in.
    #[must_use]
    pub const fn open() -> Self {
        Self(())
    }
}

/// Somebody who is known, and whose platform is not suspended.
#[derive(Clone, Copy, Debug)]
pub struct SignedInScope(());

/// A person.
#[derive(Clone, Debug)]
pub struct PersonScope {
    user_id: UserId,
}

impl PersonScope {
    /// Who it is.
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

/// The account of a person, for the person or a program with a personal API key of theirs.
#[derive(Clone, Debug)]
pub struct AccountScope {
    user_id: UserId,
}

impl AccountScope {
    /// Returns whose account it is.
    #[must_use]
    pub const fn user_id(&self) -> &UserId {
        &self.user_id
    }
}

/// A person known by a session.
#[derive(Clone, Debug)]
pub struct SessionScope {
    session_id: SessionId,
}

impl SessionScope {
    /// By which session.
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

/// Lets in whoever is known.
///
/// # Errors
/// `UNAUTHORIZED`; `PLATFORM_SUSPENDED` when the platform the caller acts for is suspended.
pub async fn authorize_signed_in(cx: &Context, uow: &mut dyn UnitOfWork) -> Result<SignedInScope> {
    Requirement::SignedIn.check(&cx.caller)?;
    ensure_caller_not_suspended(cx, uow).await?;
    Ok(SignedInScope(()))
}

/// Lets persons in. Their own affairs are theirs, whatever became of the platform they act for, and not those of programs
/// that have a key of theirs.
///
/// # Errors
/// `UNAUTHORIZED`.
pub fn authorize_person(cx: &Context) -> Result<PersonScope> {
    let user_id = cx.caller.person_id().cloned().ok_or(Error::Unauthorized)?;
    Ok(PersonScope { user_id })
}

/// Lets persons in, and programs with a personal API key, which reads the account of its owner.
///
/// # Errors
/// `UNAUTHORIZED` for everybody else, programs with a key of an organization among them.
pub fn authorize_account(cx: &Context) -> Result<AccountScope> {
    let user_id = cx.caller.account_id().cloned().ok_or(Error::Unauthorized)?;
    Ok(AccountScope { user_id })
}

/// Lets persons with a session in.
///
/// # Errors
/// `UNAUTHORIZED`.
pub fn authorize_session(cx: &Context) -> Result<SessionScope> {
    let session_id = cx.caller.session_id().cloned().ok_or(Error::Unauthorized)?;
    Ok(SessionScope { session_id })
}

/// Lets services in.
///
/// # Errors
/// `UNAUTHORIZED`, `FORBIDDEN`.
pub fn authorize_service(cx: &Context) -> Result<ServiceScope> {
    Requirement::Service.check(&cx.caller)?;
    Ok(ServiceScope(()))
}

/// Refuses callers who act for a suspended platform.
pub(super) async fn ensure_caller_not_suspended(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
) -> Result<()> {
    ensure_not_suspended(cx, uow, cx.caller.platform_id()).await
}

/// Refuses callers who are no operators if the platform is suspended.
pub(super) async fn ensure_not_suspended(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: Option<&PlatformId>,
) -> Result<()> {
    let Some(platform) = platform.filter(|_| !cx.caller.is_operator()) else {
        return Ok(());
    };
    let suspension = unowned::<PlatformSuspension>(uow).find(platform).await?;
    if suspension.is_some() {
        return Err(suspended());
    }
    Ok(())
}
