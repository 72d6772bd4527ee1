//! The session of the request: looked at, and ended.

use std::sync::Arc;

use core_domain::kernel::Result;
use core_domain::port::{Mode, transact};
use core_domain::use_case::iam as use_case;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::Iam;
use super::cookies::{give, take_away, uncached};
use super::wire::{WireSession, WireUser};
use crate::kernel::{Cx, Input, Output};

/// The query of a look-up.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LookUp {
    disable_refresh: Option<bool>,
}

/// A session and its user.
#[derive(Serialize, JsonSchema)]
pub(super) struct SessionAndUser {
    session: WireSession,
    user: WireUser,
}

pub(super) async fn get_session(
    cx: &Cx,
    iam: Arc<Iam>,
    input: Input<(), LookUp>,
) -> Result<Output<Option<SessionAndUser>>> {
    let Some(token) = iam.presented_token(&cx.headers) else {
        return Ok(uncached(Output::new(None)));
    };
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let found = use_case::resolve_session(uow.as_mut(), &token).await;
    uow.rollback().await;
    let Some(mut found) = found? else {
        extend(cx, &token).await?;
        return Ok(uncached(take_away(&iam, Output::new(None))));
    };
    let extended = if found.extension_due && !input.query.disable_refresh.unwrap_or(false) {
        extend(cx, &token).await?
    } else {
        None
    };
    let is_extended = extended.is_some();
    if let Some(session) = extended {
        found.session = session;
    }
    let answer = SessionAndUser {
        session: WireSession::new(&found.session, token.clone()),
        user: WireUser::from(&*found.user),
    };
    let output = uncached(Output::new(Some(answer)));
    if is_extended {
        Ok(give(&iam, output, &found.session, &token))
    } else {
        Ok(output)
    }
}

/// Extends the session of the token if that is due, removes it if it is over.
pub(super) async fn extend(
    cx: &Cx,
    token: &str,
) -> Result<Option<core_domain::port::Stored<core_domain::iam::Session>>> {
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(async move { use_case::extend_session(uow, token).await })
    })
    .await
}

/// The answer to a sign-out.
#[derive(Serialize, JsonSchema)]
pub(super) struct SignedOut {
    success: bool,
}

pub(super) async fn sign_out(cx: &Cx, iam: Arc<Iam>, _: Input) -> Result<Output<SignedOut>> {
    if let Some(token) = &iam.presented_token(&cx.headers) {
        transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(async move { use_case::sign_out(cx, uow, token).await })
        })
        .await?;
    }
    Ok(take_away(&iam, Output::new(SignedOut { success: true })))
}
