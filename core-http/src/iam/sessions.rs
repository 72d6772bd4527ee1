//! The caller's sessions.

use core_domain::iam::Session;
use core_domain::kernel::{Result, SessionId, Timestamp};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam as use_case;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Cx, Input, ListP4, Output};

/// A session in the list of its user. Its token is not known to anybody but its holder.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedSession {
    id: SessionId,
    created_at: Timestamp,
    expires_at: Timestamp,
    ip_address: Option<String>,
    user_agent: Option<String>,
    /// Whether it is the session of the request.
    current: bool,
}

impl ListedSession {
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

pub(super) async fn list(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Output<ListP4<ListedSession>>> {
    let current = cx.caller.session_id();
    let sessions = use_case::sessions_of_caller(cx, uow).await?;
    let data = sessions
        .iter()
        .map(|session| ListedSession::new(session, current))
        .collect();
    // There are never more than fit one page.
    Ok(Output::new(ListP4 { data, cursor: None }))
}

/// The session that was ended.
#[derive(Serialize, JsonSchema)]
pub(super) struct RevokedSession {
    id: SessionId,
}

pub(super) async fn revoke(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(SessionId,)>,
) -> Result<Output<RevokedSession>> {
    let (id,) = input.path;
    use_case::revoke_session(cx, uow, &id).await?;
    Ok(Output::new(RevokedSession { id }))
}
