//! The session of the request in the format of better-auth's clients: reading it and signing out.

use std::sync::Arc;

use core_domain::access::PublicScope;
use core_domain::iam::{Session, User};
use core_domain::kernel::{OrganizationId, Result, SessionId, Stored, Timestamp, UserId};
use core_domain::port::{Mode, transact};
use core_domain::use_case::iam::session;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::Iam;
use super::cookies::{clear_session_cookies, no_store, set_session_cookie};
use super::identify::PresentedSession;
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, Success, get, post, with};

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        post("/api/auth/sign-out", "signOut")
            .summary("Signs out by ending the session of the request.")
            .description(
                "Revokes the session on every node and clears all session cookies. Without a \
                 session only the cookies are cleared, and the response is the same.",
            )
            .errors(ErrorStyle::TopLevelCode)
            .plain(with(iam, sign_out)),
        get("/api/auth/get-session", "getSession")
            .summary("Returns the session of the request and its user.")
            .description(
                "Returns `null` without a valid session; if a presented session has expired, its \
                 cookies are cleared. A remembered session that was last extended more than a day \
                 ago is extended to 7 days from now. It is never extended beyond 30 days after \
                 the sign-in. `disableRefresh=true` only reads the session.",
            )
            .errors(ErrorStyle::TopLevelCode)
            .plain(with(iam, get_session)),
    ]
}

/// Options for reading the session.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GetSession {
    /// Whether the session is only read and not extended. Default: false.
    disable_refresh: Option<bool>,
}

/// A session of the user.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuthSession {
    /// The id of the session.
    id: SessionId,
    /// The token of the session. Lists contain the id instead for all sessions except the current one.
    token: String,
    /// The user who is signed in.
    user_id: UserId,
    /// The time at which the session expires.
    expires_at: Timestamp,
    /// The time of the sign-in.
    created_at: Timestamp,
    /// The time of the last change of the session.
    updated_at: Timestamp,
    /// The client's IP address at sign-in; empty if unknown.
    ip_address: String,
    /// The client's `User-Agent` at sign-in; empty if unknown.
    user_agent: String,
    /// The organization that the session acts for; `null` if none.
    active_organization_id: Option<OrganizationId>,
}

impl AuthSession {
    pub(super) fn new(session: &Session, token: String) -> Self {
        Self {
            id: session.id.clone(),
            token,
            user_id: session.user_id.clone(),
            expires_at: session.expires_at,
            created_at: session.created_at,
            updated_at: session.updated_at,
            ip_address: session.ip_address.clone().unwrap_or_default(),
            user_agent: session.user_agent.clone().unwrap_or_default(),
            active_organization_id: session.active_organization_id.clone(),
        }
    }
}

/// A session and its user.
#[derive(Clone, Serialize, JsonSchema)]
struct SessionAndUser {
    /// The session of the request.
    session: AuthSession,
    /// The user who is signed in.
    user: User,
}

async fn get_session(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), GetSession>,
) -> Result<Output<Option<SessionAndUser>>> {
    let Some(presented) = PresentedSession::of(cx, &iam).await? else {
        return Ok(no_store(Output::new(None)));
    };
    let Some(found) = &presented.details else {
        return Ok(no_store(clear_session_cookies(&iam, Output::new(None))));
    };
    let wanted = !input.query.disable_refresh.unwrap_or(false);
    let extended = if found.is_extension_due && wanted {
        extend(cx, &presented.token).await?
    } else {
        None
    };
    let session = extended.as_ref().unwrap_or(&found.session);
    let answer = SessionAndUser {
        session: AuthSession::new(session, presented.token.clone()),
        user: found.user.edit(),
    };
    let output = no_store(Output::new(Some(answer)));
    if extended.is_some() {
        Ok(set_session_cookie(&iam, output, session, &presented.token))
    } else {
        Ok(output)
    }
}

/// Extends the session of the token if that is due.
pub(super) async fn extend(cx: &Cx, token: &str) -> Result<Option<Stored<Session>>> {
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(session::extend(uow, token))
    })
    .await
}

async fn sign_out(cx: &Cx, iam: Arc<Iam>, scope: PublicScope, _: Input) -> Result<Output<Success>> {
    end(cx, &iam, &scope).await?;
    Ok(clear_session_cookies(&iam, Output::new(Success::YES)))
}

/// Ends the session of the request, if there is one.
pub(super) async fn end(cx: &Cx, iam: &Iam, scope: &PublicScope) -> Result<()> {
    if let Some(token) = &iam.presented_token(&cx.headers)
        && is_known(cx, token).await?
    {
        transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(session::sign_out(cx, scope, uow, token))
        })
        .await?;
    }
    Ok(())
}

/// Returns whether the token belongs to a session. Anyone can send made-up tokens, and opening a write transaction for
/// each would be too expensive.
async fn is_known(cx: &Cx, token: &str) -> Result<bool> {
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let known = session::exists(uow.as_mut(), token).await;
    uow.rollback().await;
    known
}
