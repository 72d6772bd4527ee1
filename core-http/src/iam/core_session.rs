//! The session with everything other parts of the suite want to know of it.

use std::sync::Arc;

use core_domain::iam::{OrganizationType, Session, membership};
use core_domain::kernel::{
    Error, Name, OrganizationId, PlatformId, Result, Role, SessionId, Slug, Timestamp, UserId,
};
use core_domain::port::{Mode, UnitOfWork};
use core_domain::use_case::iam as use_case;
use core_domain::use_case::iam::{Place, ResolvedSession};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::Iam;
use super::cookies::uncached;
use super::session::extend;
use super::wire::WireUser;
use crate::kernel::{Cx, Input, Output};

/// A session, enriched.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CoreSession {
    user: WireUser,
    session: ShownSession,
    /// The active organization.
    organization: Option<ShownOrganization>,
    platform_id: Option<PlatformId>,
    /// The platform the user acts in.
    tenant: Option<Tenant>,
    /// The user's role in the active organization.
    role: Option<Role>,
    /// `operator` for who operates the installation; otherwise the role.
    effective_role: Option<String>,
    permissions: Vec<String>,
}

/// A session without its token.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ShownSession {
    id: SessionId,
    user_id: UserId,
    created_at: Timestamp,
    updated_at: Timestamp,
    expires_at: Timestamp,
    ip_address: Option<String>,
    user_agent: Option<String>,
    active_organization_id: Option<OrganizationId>,
}

impl From<&Session> for ShownSession {
    fn from(session: &Session) -> Self {
        Self {
            id: session.id.clone(),
            user_id: session.user_id.clone(),
            created_at: session.created_at,
            updated_at: session.updated_at,
            expires_at: session.expires_at,
            ip_address: session.ip_address.clone(),
            user_agent: session.user_agent.clone(),
            active_organization_id: session.active_organization_id.clone(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ShownOrganization {
    id: OrganizationId,
    name: Name,
    slug: Slug,
    r#type: OrganizationType,
    platform_id: Option<PlatformId>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<&Place> for ShownOrganization {
    fn from(place: &Place) -> Self {
        let organization = &place.organization;
        Self {
            id: organization.id.clone(),
            name: organization.name.clone(),
            slug: organization.slug.clone(),
            r#type: organization.kind,
            platform_id: organization.platform_id.clone(),
            created_at: organization.created_at,
            updated_at: organization.updated_at,
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Tenant {
    platform_id: PlatformId,
    organization_id: OrganizationId,
    slug: Slug,
    suspended: bool,
}

async fn enriched(uow: &mut dyn UnitOfWork, found: &ResolvedSession) -> Result<CoreSession> {
    let place = found.place.as_ref();
    let membership = place.map(|place| membership(&place.organization, place.role));
    let tenant = tenant(uow, place).await?;
    let role = place.map(|place| place.role);
    let effective_role = if found.caller().is_operator() {
        Some("operator".to_owned())
    } else {
        role.map(|role| role.to_string())
    };
    Ok(CoreSession {
        user: WireUser::from(&*found.user),
        session: ShownSession::from(&*found.session),
        organization: place.map(ShownOrganization::from),
        platform_id: place.and_then(|place| place.organization.platform_id.clone()),
        tenant,
        role,
        effective_role,
        permissions: membership.map_or_else(Vec::new, |m| m.permissions.patterns().to_vec()),
    })
}

async fn tenant(uow: &mut dyn UnitOfWork, place: Option<&Place>) -> Result<Option<Tenant>> {
    let Some(organization) = place.map(|place| &place.organization) else {
        return Ok(None);
    };
    let Some(platform_id) = organization.platform_id.clone() else {
        return Ok(None);
    };
    Ok(Some(Tenant {
        suspended: use_case::platform_is_suspended(uow, &platform_id).await?,
        platform_id,
        organization_id: organization.id.clone(),
        slug: organization.slug.clone(),
    }))
}

pub(super) async fn core_session(cx: &Cx, iam: Arc<Iam>, _: Input) -> Result<Output<CoreSession>> {
    let id = cx.caller.session_id().ok_or(Error::Unauthorized)?;
    if let Some(token) = iam.presented_token(&cx.headers) {
        let mut uow = cx.app.store.begin(Mode::Read).await?;
        let found = use_case::authorize(uow.as_mut(), &token).await;
        uow.rollback().await;
        if found?.is_some_and(|authorized| authorized.extension_due) {
            extend(cx, &token).await?;
        }
    }
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let found = use_case::resolve_session_of(uow.as_mut(), id).await?;
    let session = enriched(uow.as_mut(), &found.ok_or(Error::Unauthorized)?).await?;
    uow.rollback().await;
    Ok(uncached(Output::new(session)))
}

/// The body of a validation.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ValidateSession {
    /// The session's token, bare or signed.
    #[schemars(length(min = 1, max = 512))]
    token: String,
}

/// Whether a token is that of a session, and of which.
#[derive(Serialize, JsonSchema)]
pub(super) struct Validated {
    valid: bool,
    /// Everything about the session; its fields stand beside `valid`.
    #[serde(flatten)]
    session: Option<CoreSession>,
}

pub(super) async fn validate_session(
    _: &Cx,
    iam: Arc<Iam>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), ValidateSession>,
) -> Result<Output<Validated>> {
    let presented = format!("Bearer {}", input.body.token);
    let found = match iam.signer.token_in_bearer(&presented) {
        Some(token) => use_case::resolve_session(uow, &token).await?,
        None => None,
    };
    let session = match &found {
        Some(found) => Some(enriched(uow, found).await?),
        None => None,
    };
    Ok(uncached(Output::new(Validated {
        valid: session.is_some(),
        session,
    })))
}
