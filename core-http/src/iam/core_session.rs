//! The session together with its organization, platform, role and permissions, for the other services of the suite.

use std::sync::Arc;

use core_domain::access::{ServiceScope, SessionScope};
use core_domain::iam::{Organization, Session, User};
use core_domain::kernel::{Error, OrganizationId, PlatformId, Result, Roles, Slug, Timestamp};
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
            .summary("Returns the session with organization, tenant, role and permissions.")
            .description(
                "Returns the session of the request, its user, and the active organization with \
                 the caller's role and permissions there. A session that is due for extension is \
                 extended first.",
            )
            .plain(with(iam, core_session)),
        post("/api/validate-session", "validateSession")
            .summary("Validates a session token for a service.")
            .description(
                "Returns `valid: true` with the session, its user, organization and permissions. \
                 An unknown or expired token, and the token of a banned user, return `valid: \
                 false`. The session is not extended.",
            )
            .reads(with(iam, validate_session)),
    ]
}

/// A session with its organization, role and permissions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CoreSession {
    /// The user who is signed in.
    user: User,
    /// The session, without its token.
    session: Session,
    /// The active organization; `null` if the session has none.
    organization: Option<Organization>,
    /// The platform of the active organization; `null` if it has none.
    platform_id: Option<PlatformId>,
    /// The platform that the user acts for; `null` without a platform.
    tenant: Option<Tenant>,
    /// The user's roles in the active organization, separated by commas; `null` without one.
    role: Option<Roles>,
    /// `operator` for an operator of the installation, otherwise the same as `role`; `null` without a role.
    effective_role: Option<String>,
    /// The user's permissions in the active organization, sorted and without duplicates.
    permissions: Vec<String>,
    /// The time until which this response is valid if nothing changes. The session, the access token or a grant of the
    /// user expires then.
    valid_until: Timestamp,
}

/// The platform that a user acts for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Tenant {
    /// The id of the platform.
    platform_id: PlatformId,
    /// The organization that owns the platform.
    organization_id: OrganizationId,
    /// The slug of the organization.
    slug: Slug,
    /// Whether the platform is suspended.
    suspended: bool,
}

impl From<SessionDetails> for CoreSession {
    fn from(details: SessionDetails) -> Self {
        let active = details.active.as_ref();
        let membership = active.map(|active| &active.membership);
        let role = membership.map(|membership| membership.roles.clone());
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
            valid_until: details.valid_until,
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
        && found.is_extension_due
    {
        extend(cx, &token).await?;
        found = details(cx, &scope).await?;
    }
    Ok(no_store(Output::new(found.into())))
}

/// Returns the details that were loaded when the caller was identified. Loads them from the store if the caller was
/// identified in another way.
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

/// The session token to validate.
#[derive(Clone, Deserialize, JsonSchema)]
struct ValidateSession {
    /// The session token, with or without its signature.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[^\u0000]*$"))]
    token: String,
}

/// The result of the validation. The fields of a valid session are on the same level as `valid`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct SessionValidation {
    /// Whether the token belongs to an active session.
    valid: bool,
    /// The session and its user; absent if the token is not valid.
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
