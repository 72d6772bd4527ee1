//! Creates sessions, and lets a person list and end their own.

use std::sync::Arc;

use super::challenge::{accept_password, remove_trusted_devices};
use super::lookup::session_of_token;
use crate::access::{
    Covers, PersonScope, PublicScope, SessionScope, all_unowned, audited, unaudited, unowned,
};
use crate::iam::{
    Member, MemberQuery, OAuthClient, Session, SessionQuery, TokenHash, TwoFactorChallenge,
    TwoFactorChallengeQuery, User,
};
use crate::kernel::{
    Caller, Code, Context, Effect, Error, OrganizationId, Record, Result, SessionId, Stored,
    TOKEN_LENGTH, Timestamp, Unowned, UserId, secret_token,
};
use crate::port::UnitOfWork;
use crate::use_case::iam::oauth::revoke_approvals;
use crate::use_case::shared::remove_first;

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
    let member = unowned::<Member>(uow).first(&first).await?;
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
    unowned::<Session>(uow).remove_all(&expired).await?;
    let oldest = SessionQuery::OldestOf(user.id.clone());
    let count = unowned::<Session>(uow).count(&oldest).await?;
    let excess = count.saturating_add(1);
    let excess = excess.saturating_sub(cx.limits.sessions_per_user.into());
    if excess == 0 {
        return Ok(());
    }
    let excess = u32::try_from(excess).unwrap_or(u32::MAX);
    let (cx, scope) = (as_user(cx, user).without_conditions(), PublicScope::open());
    for session in unowned::<Session>(uow).list(&oldest, excess).await? {
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

/// Returns the valid sessions of the person, newest first. A limit keeps the list short.
///
/// # Errors
/// Only those of the store.
pub async fn list(scope: &PersonScope, uow: &mut dyn UnitOfWork) -> Result<Vec<Stored<Session>>> {
    let now = uow.now().await?;
    let active = SessionQuery::ActiveOf(scope.user_id().clone(), now);
    all_unowned::<Session>(uow, active).await
}

/// Ends a session of the person. Takes effect everywhere at once.
///
/// # Errors
/// `NOT_FOUND` if the session is unknown, expired or another user's.
pub async fn revoke(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    id: &SessionId,
) -> Result<()> {
    let now = uow.now().await?;
    let session = unowned::<Session>(uow).get(id).await?;
    if session.user_id != *scope.user_id() || now >= session.expires_at {
        return Err(Error::NotFound(Session::KIND));
    }
    audited::remove(cx, scope, uow, &session, "session.revoked").await?;
    uow.effects().add(Effect::SessionChanged(id.clone()));
    Ok(())
}

/// The session of a user that continues when all others end.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::iam) enum KeptSession<'a> {
    /// No session continues.
    None,
    /// Only this session continues.
    Only(&'a SessionId),
}

/// Ends the sessions of a user, with effect everywhere at once. Also ends everything that could create a session
/// without a new proof: pending second-factor challenges, approved devices without tokens, and the trust in devices.
pub(in crate::use_case::iam) async fn end_all(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
    kept: KeptSession<'_>,
) -> Result<()> {
    let cx = cx.without_conditions();
    let waiting = TwoFactorChallengeQuery::OfUser(user.clone());
    unowned::<TwoFactorChallenge>(uow)
        .remove_all(&waiting)
        .await?;
    remove_trusted_devices(uow, user).await?;
    revoke_approvals(&cx, scope, uow, user).await?;
    let all = SessionQuery::OldestOf(user.clone());
    for session in all_unowned::<Session>(uow, all).await? {
        if matches!(kept, KeptSession::Only(kept) if *kept == session.id) {
            continue;
        }
        audited::remove(&cx, scope, uow, &session, "session.revoked").await?;
        uow.effects()
            .add(Effect::SessionChanged(session.id.clone()));
    }
    Ok(())
}

/// Ends all sessions of the person. The caller's session ends only with `also_own`.
///
/// # Errors
/// `UNAUTHORIZED` if the caller's session has ended.
pub async fn revoke_all(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    include_own: bool,
) -> Result<()> {
    let own = unowned::<Session>(uow).find(scope.session_id()).await?;
    let own = own.ok_or(Error::Unauthorized)?;
    let kept = if include_own {
        KeptSession::None
    } else {
        KeptSession::Only(&own.id)
    };
    end_all(cx, scope, uow, &own.user_id, kept).await
}

/// Ends a session of the person, by its token or its id. Does nothing if the session is unknown or another user's.
///
/// # Errors
/// `UNAUTHORIZED` if the caller's session has ended.
pub async fn revoke_by_token_or_id(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    name: &str,
) -> Result<()> {
    let own = unowned::<Session>(uow).find(scope.session_id()).await?;
    let own = own.ok_or(Error::Unauthorized)?;
    let with_token = SessionQuery::WithToken(TokenHash::of(name));
    let mut found = unowned::<Session>(uow).first(&with_token).await?;
    if let (None, Some(id)) = (&found, SessionId::parse(name)) {
        found = unowned::<Session>(uow).find(&id).await?;
    }
    let Some(session) = found.filter(|session| session.user_id == own.user_id) else {
        return Ok(());
    };
    audited::remove(cx, scope, uow, &session, "session.revoked").await?;
    uow.effects()
        .add(Effect::SessionChanged(session.id.clone()));
    Ok(())
}

/// Ends the session of this token, with effect everywhere at once. Requires only the token. Does nothing if the token
/// is unknown.
///
/// # Errors
/// Only those of the store.
pub async fn sign_out(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    token: &str,
) -> Result<()> {
    let Some(session) = session_of_token(uow, token).await? else {
        return Ok(());
    };
    audited::remove(cx, scope, uow, &session, "session.signed_out").await?;
    uow.effects()
        .add(Effect::SessionChanged(session.id.clone()));
    Ok(())
}

/// Removes at most `limit` expired sessions, in the order of their expiry. Returns their number; 0 means that none is
/// left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_expired(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let now = uow.now().await?;
    remove_first::<Session>(uow, &SessionQuery::ExpiredAt(now), limit).await
}
