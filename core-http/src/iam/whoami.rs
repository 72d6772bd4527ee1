//! The identity that an access token stands for, for the command-line client.

use std::sync::Arc;

use core_domain::access::SessionScope;
use core_domain::kernel::{Email, Error, PlatformId, Result, Roles, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::config::Iam;
use super::cookies::no_store;
use super::identify::{PresentedSession, has_bearer};
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, post, with};

pub(super) fn row(iam: &Arc<Iam>) -> Endpoint {
    post("/api/v1/cli/whoami", "whoami")
        .summary("Returns the identity of the bearer token.")
        .description(
            "Returns the user, platform and role of the presented token. Session cookies are \
             ignored. The session is not extended.",
        )
        .errors(ErrorStyle::WithoutDetails)
        .plain(with(iam, whoami))
}

/// The identity that a token stands for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Whoami {
    /// The email address of the user.
    email: Email,
    /// The platform of the active organization; `null` without one.
    platform_id: Option<PlatformId>,
    /// The user's roles in the active organization, separated by commas; `null` without one.
    role: Option<Roles>,
    /// The time at which the token expires.
    expires_at: Timestamp,
}

async fn whoami(cx: &Cx, iam: Arc<Iam>, scope: SessionScope, _: Input) -> Result<Output<Whoami>> {
    if !has_bearer(&cx.headers) {
        return Err(Error::Unauthorized);
    }
    let presented = PresentedSession::of(cx, &iam).await?;
    let found = presented
        .as_ref()
        .and_then(|presented| presented.details.as_ref());
    let found = found.filter(|found| found.session.id == *scope.session_id());
    let found = found.ok_or(Error::Unauthorized)?;
    let active = found.active.as_ref();
    let organization = active.map(|active| &active.organization);
    Ok(no_store(Output::new(Whoami {
        email: found.user.email.clone(),
        platform_id: organization.and_then(|organization| organization.platform_id.clone()),
        role: active.map(|active| active.member.role.clone()),
        expires_at: found.expires_at(),
    })))
}
