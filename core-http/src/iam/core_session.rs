//! The session with everything other parts of the suite want to know of it.

use std::sync::Arc;

use core_domain::access::{ServiceScope, SessionScope};
use core_domain::iam::{Organization, Session, User};
use core_domain::kernel::{Error, OrganizationId, PlatformId, Result, Roles, Slug};
use core_domain::port::{Mode, UnitOfWork};
use core_domain::use_case::iam::session::{self, ActiveMembership, SessionDetails};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::Iam;
use super::cookies::no_store;
use super::identify::PresentedSession;
use super::session::extend;
use crate::kernel::{Cx, Endpoint, Input, Output, get, post, with};

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        get("/api/core/session", "getCoreSession")
            .summary("The session of the request with organization, tenant, role and permissions.")
            .plain(with(iam, core_session)),
        post("/api/validate-session", "validateSession")
            .summary("For services: what is behind a session token.")
            .reads(with(iam, validate_session)),
    ]
}

/// A session, enriched.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CoreSession {
    user: User,
    session: Session,
    /// The active organization.
    organization: Option<Organization>,
    platform_id: Option<PlatformId>,
    /// The platform the user acts in.
    tenant: Option<Tenant>,
    /// The user's role in the active organization.
    role: Option<Roles>,
    /// `operator` for who operates the installation; otherwise the role.
    effective_role: Option<String>,
    permissions: Vec<String>,
}

/// The platform a user acts in.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Tenant {
    platform_id: PlatformId,
    organization_id: OrganizationId,
    slug: Slug,
    suspended: bool,
}

impl From<SessionDetails> for CoreSession {
    fn from(details: SessionDetails) -> Self {
        let active = details.active.as_ref();
        let membership = active.map(|active| &active.membership);
        let role = membership.map(|membership| membership.role.clone());
        let effective_role = if details.caller().is_operator() {
            Some("operator".to_owned())
        } else {
            role.as_ref().map(ToString::to_string)
        };
        Self {
            organization: active.map(|active| active.organization.edit()),
            platform_id: active.and_then(|active| active.organization.platform_id.clone()),
            tenant: active.and_then(|active| tenant(active, details.suspended)),
            role,
            effective_role,
            permissions: membership.map_or_else(Vec::new, |m| m.permissions.patterns()),
            session: details.session.into_inner(),
            user: details.user.into_inner(),
        }
    }
}

fn tenant(active: &ActiveMembership, suspended: bool) -> Option<Tenant> {
    let organization = &active.organization;
    Some(Tenant {
        platform_id: organization.platform_id.clone()?,
        organization_id: organization.id.clone(),
        slug: organization.slug.clone(),
        suspended,
    })
}

async fn core_session(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: SessionScope,
    _: Input,
) -> Result<Output<CoreSession>> {
    let mut found = known_details(cx, &scope).await?;
    if let Some(token) = iam.presented_token(&cx.headers)
        && found.extension_due
    {
        extend(cx, &token).await?;
        found = details(cx, &scope).await?;
    }
    Ok(no_store(Output::new(found.into())))
}

/// As they were found when the caller was identified, or are now, when the caller was known without them.
async fn known_details(cx: &Cx, scope: &SessionScope) -> Result<SessionDetails> {
    let presented = cx.extensions.get::<Arc<PresentedSession>>();
    let known = presented.and_then(|presented| presented.details.as_ref());
    match known.filter(|known| known.session.id == *scope.session_id()) {
        Some(known) => Ok(known.clone()),
        None => details(cx, scope).await,
    }
}

async fn details(cx: &Cx, scope: &SessionScope) -> Result<SessionDetails> {
    let mut uow = cx.app.store.begin(Mode::Auto).await?;
    let found = session::details(scope, uow.as_mut()).await;
    uow.rollback().await;
    found?.ok_or(Error::Unauthorized)
}

/// The body of a validation.
#[derive(Clone, Deserialize, JsonSchema)]
struct ValidateSession {
    /// The session's token, bare or signed.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[^\u0000]*$"))]
    token: String,
}

/// Whether a token is that of a session, and of which.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct SessionValidation {
    valid: bool,
    /// Everything about the session; its fields stand beside `valid`.
    #[serde(flatten)]
    session: Option<CoreSession>,
}

async fn validate_session(
    _: &Cx,
    iam: Arc<Iam>,
    _: ServiceScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), ValidateSession>,
) -> Result<Output<SessionValidation>> {
    let presented = format!("Bearer {}", input.body.token);
    let found = match iam.signer.token_in_bearer(&presented) {
        Some(token) => session::details_by_token(uow, &token).await?,
        None => None,
    };
    let session = found.map(CoreSession::from);
    Ok(no_store(Output::new(SessionValidation {
        valid: session.is_some(),
        session,
    })))
}
