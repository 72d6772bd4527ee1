//! The caller's sessions in the format of better-auth's clients.

use std::sync::Arc;

use core_domain::access::{PersonScope, SessionScope};
use core_domain::kernel::Result;
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::session;
use schemars::JsonSchema;
use serde::Deserialize;

use super::config::Iam;
use super::session::AuthSession;
use super::status::Status;
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, get, post, with};

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        get("/api/auth/list-sessions", "listAuthSessions")
            .summary("Lists the caller's active sessions.")
            .description(
                "Returns the sessions of the user that have not expired, newest first. `token` is \
                 the session token only for the session of the request. For every other session \
                 it contains the session id, because only hashes of tokens are stored.",
            )
            .errors(ErrorStyle::TopLevelCode)
            .reads(with(iam, list)),
        post("/api/auth/revoke-session", "revokeAuthSession")
            .summary("Revokes one of the caller's sessions.")
            .description(
                "The session can be named by its token or its id. It ends immediately on every \
                 node. An unknown session, or one of another user, changes nothing and returns \
                 the same response.",
            )
            .ends_access()
            .errors(ErrorStyle::TopLevelCode)
            .writes(revoke),
        post("/api/auth/revoke-sessions", "revokeAuthSessions")
            .summary("Revokes all sessions of the caller.")
            .description(
                "Ends every session of the user, including the session of the request. Also \
                 cancels sign-ins that wait for a second factor and approved devices without \
                 tokens. Removes all trusted devices.",
            )
            .ends_access()
            .errors(ErrorStyle::TopLevelCode)
            .writes(revoke_all),
        post("/api/auth/revoke-other-sessions", "revokeOtherAuthSessions")
            .summary("Revokes all other sessions of the caller.")
            .description(
                "Ends every session of the user except the session of the request. Also cancels \
                 sign-ins that wait for a second factor and approved devices without tokens. \
                 Removes all trusted devices.",
            )
            .errors(ErrorStyle::TopLevelCode)
            .writes(revoke_others),
    ]
}

async fn list(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PersonScope,
    uow: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Output<Vec<AuthSession>>> {
    let own = cx.caller.session_id();
    let token = iam.presented_token(&cx.headers);
    let sessions = session::list(&scope, uow).await?;
    let views = sessions.iter().map(|session| {
        let name = match &token {
            Some(token) if own == Some(&session.id) => token.clone(),
            _ => session.id.to_string(),
        };
        AuthSession::new(session, name)
    });
    Ok(Output::new(views.collect()))
}

/// The session to revoke.
#[derive(Clone, Deserialize, JsonSchema)]
struct RevokeSession {
    /// The token or the id of the session.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[^\u0000]*$"))]
    token: String,
}

async fn revoke(
    cx: &Cx,
    scope: SessionScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), RevokeSession>,
) -> Result<Output<Status>> {
    session::revoke_by_token_or_id(cx, &scope, uow, &input.body.token).await?;
    Ok(Output::new(Status::OK))
}

async fn revoke_all(
    cx: &Cx,
    scope: SessionScope,
    uow: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Output<Status>> {
    session::revoke_all(cx, &scope, uow, true).await?;
    Ok(Output::new(Status::OK))
}

async fn revoke_others(
    cx: &Cx,
    scope: SessionScope,
    uow: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Output<Status>> {
    session::revoke_all(cx, &scope, uow, false).await?;
    Ok(Output::new(Status::OK))
}
