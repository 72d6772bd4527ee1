//! Who is calling. What they may do is asked in `access`, and nowhere else.

use super::{ApiKeyId, OrganizationId, PermissionSet, PlatformId, Role, Roles, SessionId, UserId};

/// The organization a session or key acts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The organization.
    pub organization_id: OrganizationId,
    /// The platform that belongs to it, if it has one.
    pub platform_id: Option<PlatformId>,
    /// The caller's roles in it.
    pub role: Roles,
    /// What the caller may do in it.
    pub permissions: PermissionSet,
    /// Whether the organization operates the installation (type `core-operator`).
    pub operates: bool,
}

/// Who is calling. Made by authentication, never from what a client says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Caller {
    /// Nobody we know.
    Anonymous,
    /// The holder of the service key, or another service; named for the audit.
    Service {
        /// The name of the service; `service-key` for the static key.
        name: String,
    },
    /// A signed-in person.
    User {
        /// The person.
        user_id: UserId,
        /// The session, when the caller is known by one.
        session_id: Option<SessionId>,
        /// The service that vouches for the person, when the caller is known by its word.
        service: Option<String>,
        /// The active organization, if any.
        membership: Option<Membership>,
    },
    /// A program with an API key.
    ApiKey {
        /// The key; never its secret.
        key_id: ApiKeyId,
        /// The person the key belongs to, unless it belongs to an organization.
        user_id: Option<UserId>,
        /// The organization that the key acts for, with what the key may there; `None` for a personal key, which acts for
        /// its owner alone.
        membership: Option<Membership>,
    },
    /// The suite itself: jobs and background work.
    System,
}

/// What a caller is known by, for the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Credential<'a> {
    /// `session`, `api_key` or `service`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The id of the session or key, or the name of the service.
    pub id: &'a str,
}

impl Caller {
    /// The person behind the call, if there is one.
    #[must_use]
    pub fn user_id(&self) -> Option<&UserId> {
        match self {
            Self::User { user_id, .. } => Some(user_id),
            Self::ApiKey { user_id, .. } => user_id.as_ref(),
            _ => None,
        }
    }

    /// The person who calls, if it is one: not the owner of a key with which a program calls.
    #[must_use]
    pub const fn person_id(&self) -> Option<&UserId> {
        match self {
            Self::User { user_id, .. } => Some(user_id),
            _ => None,
        }
    }

    /// The person whose account the caller acts for: the person themselves, or the owner of a personal key.
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

    /// The session the caller is known by, if by one.
    #[must_use]
    pub fn session_id(&self) -> Option<&SessionId> {
        match self {
            Self::User { session_id, .. } => session_id.as_ref(),
            _ => None,
        }
    }

    /// The API key the caller is known by, if by one.
    #[must_use]
    pub const fn api_key_id(&self) -> Option<&ApiKeyId> {
        match self {
            Self::ApiKey { key_id, .. } => Some(key_id),
            _ => None,
        }
    }

    /// The caller's place in the organization they act for, if they act for one.
    #[must_use]
    pub fn membership(&self) -> Option<&Membership> {
        match self {
            Self::User { membership, .. } | Self::ApiKey { membership, .. } => membership.as_ref(),
            _ => None,
        }
    }

    /// The platform the caller acts for, if any.
    #[must_use]
    pub fn platform_id(&self) -> Option<&PlatformId> {
        self.membership()?.platform_id.as_ref()
    }

    /// Tells whether nobody is known to call.
    #[must_use]
    pub const fn is_anonymous(&self) -> bool {
        matches!(self, Self::Anonymous)
    }

    /// Tells whether the caller is a service, or the suite itself.
    #[must_use]
    pub const fn is_service(&self) -> bool {
        matches!(self, Self::Service { .. } | Self::System)
    }

    /// Tells whether the caller operates the installation: the service key, the suite itself, or an owner or admin of
    /// the `core-operator` organization by a session.
    #[must_use]
    pub fn is_operator(&self) -> bool {
        let operates = |m: &Membership| {
            m.operates
                && [Role::OWNER, Role::ADMIN]
                    .iter()
                    .any(|role| m.role.contains(role))
        };
        match self {
            Self::Service { .. } | Self::System => true,
            Self::User { membership, .. } => membership.as_ref().is_some_and(operates),
            Self::Anonymous | Self::ApiKey { .. } => false,
        }
    }

    /// What the audit calls the kind of caller: `user`, `api_key`, `service`, `system` or `anonymous`.
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

    /// What the audit calls the caller: the id of the user or key, or the name of the service.
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

    /// What the caller is known by.
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
