//! The start of a session by a sign-in.

use std::sync::Arc;

use crate::access::{PublicScope, audited, unaudited, unowned_records};
use crate::iam::{
    Account, AccountQuery, Member, MemberQuery, OAuthClient, Session, SessionQuery, TokenHash, User,
};
use crate::kernel::{
    Caller, Code, Context, Effect, Error, OrganizationId, Result, SessionId, Stored, TOKEN_LENGTH,
    Timestamp, UserId, secret_token,
};
use crate::port::UnitOfWork;

/// The result of a sign-in.
#[derive(Clone, PartialEq)]
pub struct SignedIn {
    /// The user who signed in.
    pub user: Stored<User>,
    /// The new session.
    pub session: Stored<Session>,
    /// The session token, which is returned only once.
    pub token: String,
}

// The `Debug` output hides the token, so that it does not appear in logs.
impl std::fmt::Debug for SignedIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignedIn")
            .field("user", &self.user.id)
            .field("session", &self.session.id)
            .finish_non_exhaustive()
    }
}

/// Creates a session for a user who has completed the sign-in. The session acts for the organization that the user
/// joined first, if any. `second_factor_at` is the time at which they used a second factor, if they did.
///
/// # Errors
/// `BANNED_USER` if the user is banned.
pub(in crate::use_case::iam) async fn create(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    user: Stored<User>,
    remembered: bool,
    second_factor_at: Option<Timestamp>,
) -> Result<SignedIn> {
    ensure_not_banned(&user)?;
    evict_sessions(cx, uow, &user).await?;
    if second_factor_at.is_some() {
        accept_password(uow, &user.id).await?;
    }
    let now = uow.now().await?;
    let first = MemberQuery::OfUser(user.id.clone());
    let member = unowned_records::<Member>(uow).first(&first).await?;
    let token = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let session = Session {
        id: SessionId::generate(now, cx.entropy.as_ref()),
        user_id: user.id.clone(),
        token_hash: TokenHash::of(&token),
        client_id: None,
        active_organization_id: member.map(|member| member.organization_id.clone()),
        remembered,
        ip_address: cx.request.ip.clone(),
        user_agent: cx.request.user_agent.clone(),
        created_at: now,
        updated_at: now,
        extended_at: now,
        authenticated_at: Some(now),
        second_factor_at,
        expires_at: Session::initial_expiry(now, remembered),
    };
    // The sign-in itself is audited.
    let session = unaudited::insert(uow, session).await?;
    Ok(SignedIn {
        user,
        session,
        token,
    })
}

/// Creates the session of a program, which acts for this organization. Its session token is discarded, because programs
/// use access tokens.
pub(in crate::use_case::iam) async fn create_for_client(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    user: &Stored<User>,
    client: OAuthClient,
    organization: Option<OrganizationId>,
) -> Result<Stored<Session>> {
    ensure_not_banned(user)?;
    evict_sessions(cx, uow, user).await?;
    let now = uow.now().await?;
    let session = Session {
        id: SessionId::generate(now, cx.entropy.as_ref()),
        user_id: user.id.clone(),
        token_hash: TokenHash::of(&secret_token(cx.entropy.as_ref(), TOKEN_LENGTH)),
        client_id: Some(client),
        active_organization_id: organization,
        remembered: false,
        ip_address: cx.request.ip.clone(),
        user_agent: cx.request.user_agent.clone(),
        created_at: now,
        updated_at: now,
        extended_at: now,
        authenticated_at: None,
        second_factor_at: None,
        expires_at: Session::program_session_expiry(now, now),
    };
    // The issue of its tokens is audited.
    unaudited::insert(uow, session).await
}

/// Returns `BANNED_USER` if the user is banned.
pub(in crate::use_case::iam) fn ensure_not_banned(user: &User) -> Result<()> {
    if user.banned_at.is_some() {
        let message = "You have been banned from this application.";
        return Err(Error::refused(Code::BannedUser, message));
    }
    Ok(())
}

/// Limits the number of sessions of a user: removes the expired ones, then the oldest.
async fn evict_sessions(cx: &Context, uow: &mut dyn UnitOfWork, user: &User) -> Result<()> {
    let now = uow.now().await?;
    let expired = SessionQuery::ExpiredOf(user.id.clone(), now);
    unowned_records::<Session>(uow).remove_all(&expired).await?;
    let oldest = SessionQuery::OldestOf(user.id.clone());
    let count = unowned_records::<Session>(uow).count(&oldest).await?;
    let excess = count.saturating_add(1);
    let excess = excess.saturating_sub(cx.limits.sessions_per_user.into());
    if excess == 0 {
        return Ok(());
    }
    let excess = u32::try_from(excess).unwrap_or(u32::MAX);
    let (cx, scope) = (as_user(cx, user).without_conditions(), PublicScope::open());
    for session in unowned_records::<Session>(uow)
        .list(&oldest, excess)
        .await?
    {
        audited::remove(&cx, &scope, uow, &session, "session.evicted").await?;
        uow.effects()
            .add(Effect::SessionChanged(session.id.clone()));
    }
    Ok(())
}

/// Returns a context with this user as its caller, for the audit log. The user has just authenticated.
pub(in crate::use_case::iam) fn as_user(cx: &Context, user: &User) -> Context {
    Context {
        caller: Arc::new(Caller::User {
            user_id: user.id.clone(),
            session_id: None,
            service: None,
            membership: None,
        }),
        ..cx.clone()
    }
}

/// Clears the mark that a mailed link set the password, after the user has used a second factor.
pub(super) async fn accept_password(uow: &mut dyn UnitOfWork, user: &UserId) -> Result<()> {
    let password = AccountQuery::PasswordOf(user.clone());
    let account = unowned_records::<Account>(uow).first(&password).await?;
    if let Some(account) = account.filter(|account| account.set_by_link_at.is_some()) {
        let mut next = account.edit();
        next.set_by_link_at = None;
        unaudited::replace(uow, &account, next).await?;
    }
    Ok(())
}
