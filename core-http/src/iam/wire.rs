//! The records as better-auth's clients know them.

use core_domain::iam::{Session, User};
use core_domain::kernel::{Email, OrganizationId, SessionId, Timestamp, UserId};
use schemars::JsonSchema;
use serde::Serialize;

/// A user.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AuthUser")]
pub(super) struct WireUser {
    id: UserId,
    name: String,
    email: Email,
    email_verified: bool,
    image: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<&User> for WireUser {
    fn from(user: &User) -> Self {
        Self {
            id: user.id.clone(),
            name: user.name.clone(),
            email: user.email.clone(),
            email_verified: user.email_verified,
            image: user.image.clone(),
            created_at: user.created_at,
            updated_at: user.updated_at,
        }
    }
}

/// A session, for whoever has shown its token.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AuthSession")]
pub(super) struct WireSession {
    id: SessionId,
    token: String,
    user_id: UserId,
    expires_at: Timestamp,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Empty when unknown.
    ip_address: String,
    /// Empty when unknown.
    user_agent: String,
    active_organization_id: Option<OrganizationId>,
}

impl WireSession {
    pub(super) fn new(session: &Session, token: String) -> Self {
        Self {
            id: session.id.clone(),
            token,
            user_id: session.user_id.clone(),
            expires_at: session.expires_at,
            created_at: session.created_at,
            updated_at: session.updated_at,
            ip_address: session.ip_address.clone().unwrap_or_default(),
            user_agent: session.user_agent.clone().unwrap_or_default(),
            active_organization_id: session.active_organization_id.clone(),
        }
    }
}
