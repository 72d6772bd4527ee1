//! The caller's sessions as better-auth's clients know them.

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
            .summary("The caller's sessions. Of others than the caller's own, `token` is the id: nobody knows their tokens.")
            .errors(ErrorStyle::TopLevelCode)
            .reads(with(iam, list)),
        post("/api/auth/revoke-session", "revokeAuthSession")
            .summary("Ends one of the caller's sessions, named by its token or id.")
            .ends_access()
            .errors(ErrorStyle::TopLevelCode)
            .writes(revoke),
        post("/api/auth/revoke-sessions", "revokeAuthSessions")
            .summary("Ends all of the caller's sessions.")
            .ends_access()
            .errors(ErrorStyle::TopLevelCode)
            .writes(revoke_all),
        post("/api/auth/revoke-other-sessions", "revokeOtherAuthSessions")
            .summary("Ends all of the caller's sessions but this one.")
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

/// The body of a revocation.
#[derive(Clone, Deserialize, JsonSchema)]
struct RevokeSession {
    /// The session's token, or its id.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[^\u0000]*$"))]
    token: String,
}

async fn revoke(
    cx: &Cx,
    scope: SessionScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), RevokeSession>,
) -> Result<Output<Status>> {
    session::revoke_named(cx, &scope, uow, &input.body.token).await?;
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
