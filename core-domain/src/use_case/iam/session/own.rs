//! A person's own sessions: listed, and ended.

use std::sync::Arc;

use super::challenge::{accept_password, trust_no_device};
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

/// Somebody has signed in.
#[derive(Clone, PartialEq)]
pub struct SignedIn {
    /// Who.
    pub user: Stored<User>,
    /// The new session.
    pub session: Stored<Session>,
    /// The session's token. Shown now and never again.
    pub token: String,
}

// The token stays out of logs.
impl std::fmt::Debug for SignedIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignedIn")
            .field("user", &self.user.id)
            .field("session", &self.session.id)
            .finish_non_exhaustive()
    }
}

/// Begins a session of a user who has shown everything that a sign-in asks of them. It acts for the organization that the user
/// joined first, if any. `second_factor_at` is the time at which they showed a second factor, if they did.
///
/// # Errors
/// `BANNED_USER`.
pub(in crate::use_case::iam) async fn begin(
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
        expires_at: Session::first_end(now, remembered),
    };
    // Its entry is that of the sign-in.
    let session = unaudited::insert(uow, session).await?;
    Ok(SignedIn {
        user,
        session,
        token,
    })
}

/// Begins the session of a program, which acts for this organization. Nobody ever has its token: the program gets others.
pub(in crate::use_case::iam) async fn begin_for_client(
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
        expires_at: Session::end_of_family(now, now),
    };
    // Its entry is that of its tokens.
    unaudited::insert(uow, session).await
}

/// Refuses a user who is banned.
pub(in crate::use_case::iam) fn ensure_not_banned(user: &User) -> Result<()> {
    if user.banned_at.is_some() {
        let message = "You have been banned from this application.";
        return Err(Error::refused(Code::BannedUser, message));
    }
    Ok(())
}

/// Keeps the sessions of a user bounded: the expired go, and the oldest when there are too many.
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
    let (cx, scope) = (as_user(cx, user).consequence(), PublicScope::open());
    for session in unowned::<Session>(uow).list(&oldest, excess).await? {
        audited::remove(&cx, &scope, uow, &session, "session.evicted").await?;
        uow.effects()
            .add(Effect::SessionChanged(session.id.clone()));
    }
    Ok(())
}

/// The context of somebody who has just proved who they are, for the audit.
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

/// The person's sessions that are valid, newest first; a limit keeps them few.
///
/// # Errors
/// When the store failed.
pub async fn list(scope: &PersonScope, uow: &mut dyn UnitOfWork) -> Result<Vec<Stored<Session>>> {
    let now = uow.now().await?;
    let active = SessionQuery::ActiveOf(scope.user_id().clone(), now);
    all_unowned::<Session>(uow, active).await
}

/// Ends one of the person's sessions, at once and everywhere.
///
/// # Errors
/// `NOT_FOUND` for a session that has expired, is unknown or somebody else's.
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

/// Which session of a person goes on when all others end.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::iam) enum Kept<'a> {
    /// None.
    None,
    /// This one.
    Only(&'a SessionId),
}

/// Ends the sessions of a user, at once and everywhere, and what would begin one without a new proof: the sign-ins that wait for a
/// second factor, the devices that were approved and have no tokens yet. No device is trusted any more.
pub(in crate::use_case::iam) async fn end_all(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
    kept: Kept<'_>,
) -> Result<()> {
    let cx = cx.consequence();
    let waiting = TwoFactorChallengeQuery::OfUser(user.clone());
    unowned::<TwoFactorChallenge>(uow)
        .remove_all(&waiting)
        .await?;
    trust_no_device(uow, user).await?;
    revoke_approvals(&cx, scope, uow, user).await?;
    let all = SessionQuery::OldestOf(user.clone());
    for session in all_unowned::<Session>(uow, all).await? {
        if matches!(kept, Kept::Only(kept) if *kept == session.id) {
            continue;
        }
        audited::remove(&cx, scope, uow, &session, "session.revoked").await?;
        uow.effects()
            .add(Effect::SessionChanged(session.id.clone()));
    }
    Ok(())
}

/// Ends all sessions of the person, or all but the caller's.
///
/// # Errors
/// `UNAUTHORIZED` when the caller's session has ended.
pub async fn revoke_all(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    also_own: bool,
) -> Result<()> {
    let own = unowned::<Session>(uow).find(scope.session_id()).await?;
    let own = own.ok_or(Error::Unauthorized)?;
    let kept = if also_own {
        Kept::None
    } else {
        Kept::Only(&own.id)
    };
    end_all(cx, scope, uow, &own.user_id, kept).await
}

/// Ends one of the person's sessions, named by its token or its id. One that is unknown or somebody else's changes nothing.
///
/// # Errors
/// `UNAUTHORIZED` when the caller's session has ended.
pub async fn revoke_named(
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

/// Ends the session of this token, at once and everywhere. Whoever holds the token may; an unknown one changes nothing.
///
/// # Errors
/// When the store failed.
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

/// Removes at most `limit` of the sessions that have expired, the first to expire first. Returns
/// their number; 0 means that none is left.
///
/// # Errors
/// When the store failed.
pub async fn remove_expired(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let now = uow.now().await?;
    remove_first::<Session>(uow, &SessionQuery::ExpiredAt(now), limit).await
}
