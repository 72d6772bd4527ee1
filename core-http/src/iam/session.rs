//! The session of the request as better-auth's clients know it: looked at, and ended.

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
            .summary("Ends the session of the request, if it has one.")
            .errors(ErrorStyle::TopLevelCode)
            .plain(with(iam, sign_out)),
        get("/api/auth/get-session", "getSession")
            .summary("The session of the request and its user; null without one.")
            .errors(ErrorStyle::TopLevelCode)
            .plain(with(iam, get_session)),
    ]
}

/// The query of a look-up.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GetSession {
    /// Only look: the session is not extended.
    disable_refresh: Option<bool>,
}

/// A session, for whoever has shown its token.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuthSession {
    id: SessionId,
    token: String,
    user_id: UserId,
    expires_at: Timestamp,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Empty when unknown.
    ip_address: String,
    /// Empty when unknown.
    user_agent: String,
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
    session: AuthSession,
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
    let extended = if found.extension_due && wanted {
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

/// Ends the session of the request, if it has one.
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

/// A unit that writes is too dear for a token that anybody can make up.
async fn is_known(cx: &Cx, token: &str) -> Result<bool> {
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let known = session::is_known(uow.as_mut(), token).await;
    uow.rollback().await;
    known
}
