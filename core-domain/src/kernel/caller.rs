//! The caller of a request. What a caller may do is decided only in `access`.

use super::{ApiKeyId, OrganizationId, PermissionSet, PlatformId, Role, Roles, SessionId, UserId};

/// The organization that a session or API key acts for, with the caller's permissions in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The id of the organization.
    pub organization_id: OrganizationId,
    /// The platform of the organization; `None` if it has none.
    pub platform_id: Option<PlatformId>,
    /// The caller's roles in the organization.
    pub roles: Roles,
    /// The caller's permissions in the organization.
    pub permissions: PermissionSet,
    /// Whether the organization operates the installation (type `core-operator`).
    pub is_operator: bool,
}

/// The caller of a request. Authentication creates it; it never relies on what a client claims about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Caller {
    /// A caller without a valid credential.
    Anonymous,
    /// A service, or the holder of the service key.
    Service {
        /// The name of the service in the audit log; `service-key` for the static key.
        name: String,
    },
    /// A signed-in person.
    User {
        /// The id of the user.
        user_id: UserId,
        /// The session; `None` if a service identifies the person.
        session_id: Option<SessionId>,
        /// The service that identifies the person; `None` if a session does.
        service: Option<String>,
        /// The active organization of the session, if any.
        membership: Option<Membership>,
    },
    /// A program with an API key.
    ApiKey {
        /// The id of the key; not its secret.
        key_id: ApiKeyId,
        /// The owner of the key; `None` if the key belongs to an organization.
        user_id: Option<UserId>,
        /// The organization that the key acts for, with the permissions of the key. `None` for a personal key, which
        /// acts only for its owner.
        membership: Option<Membership>,
    },
    /// The suite itself: jobs and background work.
    System,
}

/// The credential of a caller, for the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Credential<'a> {
    /// The type of the credential: `session`, `api_key` or `service`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The id of the session or key, or the name of the service.
    pub id: &'a str,
}

impl Caller {
    /// Returns the person of the call: the signed-in user, or the owner of the API key.
    #[must_use]
    pub fn user_id(&self) -> Option<&UserId> {
        match self {
            Self::User { user_id, .. } => Some(user_id),
            Self::ApiKey { user_id, .. } => user_id.as_ref(),
            _ => None,
        }
    }

    /// Returns the signed-in user; `None` for the owner of an API key, because a program makes the call.
    #[must_use]
    pub const fn person_id(&self) -> Option<&UserId> {
        match self {
            Self::User { user_id, .. } => Some(user_id),
            _ => None,
        }
    }

    /// Returns the user whose account the caller acts for: the signed-in user, or the owner of a personal key.
    #[must_use]
    pub const fn account_id(&self) -> Option<&UserId> {
        match self {
            Self::ApiKey {
                user_id,
                membership: None,
                ..
            } => user_id.as_ref(),
            _ => self.person_id(),
        }
    }

    /// Returns the session that identifies the caller, if any.
    #[must_use]
    pub fn session_id(&self) -> Option<&SessionId> {
        match self {
            Self::User { session_id, .. } => session_id.as_ref(),
            _ => None,
        }
    }

    /// Returns the API key that identifies the caller, if any.
    #[must_use]
    pub const fn api_key_id(&self) -> Option<&ApiKeyId> {
        match self {
            Self::ApiKey { key_id, .. } => Some(key_id),
            _ => None,
        }
    }

    /// Returns the caller's membership in the organization that the caller acts for, if any.
    #[must_use]
    pub fn membership(&self) -> Option<&Membership> {
        match self {
            Self::User { membership, .. } | Self::ApiKey { membership, .. } => membership.as_ref(),
            _ => None,
        }
    }

    /// Returns the platform that the caller acts for, if any.
    #[must_use]
    pub fn platform_id(&self) -> Option<&PlatformId> {
        self.membership()?.platform_id.as_ref()
    }

    /// Returns whether the caller has no valid credential.
    #[must_use]
    pub const fn is_anonymous(&self) -> bool {
        matches!(self, Self::Anonymous)
    }

    /// Returns whether the caller is a service or the suite itself.
    #[must_use]
    pub const fn is_service(&self) -> bool {
        matches!(self, Self::Service { .. } | Self::System)
    }

    /// Returns whether the caller operates the installation: a service, the suite itself, or a session of an owner or
    /// admin of the `core-operator` organization.
    #[must_use]
    pub fn is_operator(&self) -> bool {
        let operates = |m: &Membership| {
            m.is_operator
                && [Role::OWNER, Role::ADMIN]
                    .iter()
                    .any(|role| m.roles.contains(role))
        };
        match self {
            Self::Service { .. } | Self::System => true,
            Self::User { membership, .. } => membership.as_ref().is_some_and(operates),
            Self::Anonymous | Self::ApiKey { .. } => false,
        }
    }

    /// Returns the kind of caller for the audit log: `user`, `api_key`, `service`, `system` or `anonymous`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Service { .. } => "service",
            Self::User { .. } => "user",
            Self::ApiKey { .. } => "api_key",
            Self::System => "system",
        }
    }

    /// Returns the id of the caller for the audit log: the id of the user or key, or the name of the service.
    #[must_use]
    pub fn actor_id(&self) -> &str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Service { name } => name,
            Self::User { user_id, .. } => user_id.as_str(),
            Self::ApiKey { key_id, .. } => key_id.as_str(),
            Self::System => "system",
        }
    }

    /// Returns the credential of the caller; `None` for anonymous callers and the suite itself.
    #[must_use]
    pub fn credential(&self) -> Option<Credential<'_>> {
        let of = |kind, id| Some(Credential { kind, id });
        match self {
            Self::Anonymous | Self::System => None,
            Self::Service { name } => of("service", name),
            Self::ApiKey { key_id, .. } => of("api_key", key_id.as_str()),
            Self::User {
                session_id,
                service,
                ..
            } => match (session_id, service) {
                (Some(session), _) => of("session", session.as_str()),
                (None, Some(service)) => of("service", service),
                (None, None) => None,
            },
        }
    }
}
