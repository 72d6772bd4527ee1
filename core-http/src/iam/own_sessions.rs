//! The caller's sessions.

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
            .summary("The caller's sessions, newest first.")
            .reads(list),
        delete("/api/sessions/{id}", "revokeSession")
            .summary("Ends one of the caller's sessions.")
            .writes(revoke),
    ]
}

/// A session in the list of its user. Its token is not known to anybody but its holder.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SessionView {
    id: SessionId,
    created_at: Timestamp,
    expires_at: Timestamp,
    ip_address: Option<String>,
    user_agent: Option<String>,
    /// Whether it is the session of the request.
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
    // There are never more than fit one page.
    Ok(Output::new(ListP4 {
        data: views.collect(),
        cursor: None,
    }))
}

/// The session that was ended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct RevokedSession {
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
