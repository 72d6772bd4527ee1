//! The caller's sessions, on the suite's own routes.

use core_domain::access::PersonScope;
use core_domain::iam::Session;
use core_domain::kernel::{Result, SessionId, Timestamp};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::session;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Cx, Endpoint, Input, ListP4, Output, delete, get};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/api/sessions", "listSessions")
            .summary("Lists the caller's active sessions, newest first.")
            .description(
                "Returns all sessions of the user that have not expired, on a single page. \
                 Session tokens are never returned.",
            )
            .reads(list),
        delete("/api/sessions/{id}", "revokeSession")
            .summary("Revokes one of the caller's sessions.")
            .description(
                "The session ends immediately on every node. A session that is unknown, expired \
                 or another user's is reported as not found.",
            )
            .writes(revoke),
    ]
}

/// A session of the caller, without its token.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SessionView {
    /// The id of the session.
    id: SessionId,
    /// The time of the sign-in.
    created_at: Timestamp,
    /// The time at which the session expires.
    expires_at: Timestamp,
    /// The client's IP address at sign-in; `null` if unknown.
    ip_address: Option<String>,
    /// The client's `User-Agent` at sign-in; `null` if unknown.
    user_agent: Option<String>,
    /// `true` for the session of the request.
    current: bool,
}

impl SessionView {
    fn new(session: &Session, current: Option<&SessionId>) -> Self {
        Self {
            id: session.id.clone(),
            created_at: session.created_at,
            expires_at: session.expires_at,
            ip_address: session.ip_address.clone(),
            user_agent: session.user_agent.clone(),
            current: current == Some(&session.id),
        }
    }
}

async fn list(
    cx: &Cx,
    scope: PersonScope,
    uow: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Output<ListP4<SessionView>>> {
    let current = cx.caller.session_id();
    let sessions = session::list(&scope, uow).await?;
    let views = sessions.iter().map(|s| SessionView::new(s, current));
    // The number of sessions per user is limited, so one page is enough.
    Ok(Output::new(ListP4 {
        data: views.collect(),
        cursor: None,
    }))
}

/// The revoked session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct RevokedSession {
    /// The id of the session.
    id: SessionId,
}

async fn revoke(
    cx: &Cx,
    scope: PersonScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(SessionId,)>,
) -> Result<Output<RevokedSession>> {
    let (id,) = input.path;
    session::revoke(cx, &scope, uow, &id).await?;
    Ok(Output::new(RevokedSession { id }))
}
