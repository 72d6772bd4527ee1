//! What every way to sign in ends with: a new session with a new token.

use std::sync::Arc;

use super::reauthenticate::accept_password;
use crate::access::{PublicScope, audited, unaudited, unowned};
use crate::iam::{Member, MemberQuery, OAuthClient, Session, SessionQuery, TokenHash, User};
use crate::kernel::{
    Caller, Code, Context, Effect, Error, OrganizationId, Result, SessionId, Stored, TOKEN_LENGTH,
    Timestamp, secret_token,
};
use crate::port::UnitOfWork;

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
