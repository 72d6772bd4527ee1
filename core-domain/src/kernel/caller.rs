//! Who is calling and what they may do.

use super::text_value::text_enum;
use super::{
    Error, OrganizationId, Permission, PermissionSet, PlatformId, Result, SessionId, UserId,
};

text_enum! {
    /// A member's role in an organization.
    pub enum Role {
        /// May do everything.
        Owner = "owner",
        /// May do everything but end the organization's platform.
        Admin = "admin",
        /// May look, and deploy.
        Member = "member",
    }
}

impl Role {
    /// What the role allows when the organization has not remapped it.
    #[must_use]
    pub fn permissions(self) -> PermissionSet {
        match self {
            Self::Owner => PermissionSet::new(["*:*"]),
            Self::Admin => PermissionSet::new([
                "platform:read",
                "platform:create",
                "platform:update",
                "entity:*",
                "resource:*",
                "audit:*",
                "job:*",
                "deployment:*",
                "stack:read",
            ]),
            Self::Member => PermissionSet::new(["*:read", "deployment:create"]),
        }
    }
}

/// The organization a session or key acts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The organization.
    pub organization_id: OrganizationId,
    /// The platform that belongs to it, if it has one.
    pub platform_id: Option<PlatformId>,
    /// The caller's role in it.
    pub role: Role,
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
        /// The active organization, if any.
        membership: Option<Membership>,
    },
    /// The suite itself: jobs and background work.
    System,
}

impl Caller {
    /// The person behind the call, if there is one.
    #[must_use]
    pub fn user_id(&self) -> Option<&UserId> {
        match self {
            Self::User { user_id, .. } => Some(user_id),
            _ => None,
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

    /// The caller's place in the organization they act for, if they act for one.
    #[must_use]
    pub fn membership(&self) -> Option<&Membership> {
        match self {
            Self::User { membership, .. } => membership.as_ref(),
            _ => None,
        }
    }

    /// The platform the caller acts for, if any.
    #[must_use]
    pub fn platform_id(&self) -> Option<&PlatformId> {
        self.membership()?.platform_id.as_ref()
    }

    /// Tells whether the caller operates the installation: the service key, the suite itself, or an owner or admin of
    /// the `core-operator` organization.
    #[must_use]
    pub fn is_operator(&self) -> bool {
        match self {
            Self::Service { .. } | Self::System => true,
            Self::User { membership, .. } => membership
                .as_ref()
                .is_some_and(|m| m.operates && matches!(m.role, Role::Owner | Role::Admin)),
            Self::Anonymous => false,
        }
    }

    /// Tells whether the caller is anybody at all.
    ///
    /// # Errors
    /// `UNAUTHORIZED` for an anonymous caller.
    pub fn signed_in(&self) -> Result<()> {
        if matches!(self, Self::Anonymous) {
            Err(Error::Unauthorized)
        } else {
            Ok(())
        }
    }

    /// Demands an operator.
    ///
    /// # Errors
    /// `UNAUTHORIZED` for an anonymous caller, `FORBIDDEN` for another one.
    pub fn operator(&self) -> Result<()> {
        self.signed_in()?;
        if self.is_operator() {
            Ok(())
        } else {
            Err(Error::Forbidden)
        }
    }

    /// Demands a permission on a platform. A foreign platform is "not found", exactly as a missing one.
    ///
    /// # Errors
    /// `UNAUTHORIZED` for an anonymous caller, `NOT_FOUND` for a foreign platform, `FORBIDDEN` without the permission.
    pub fn may(&self, permission: Permission, platform: &PlatformId) -> Result<()> {
        self.signed_in()?;
        if self.is_operator() {
            return Ok(());
        }
        let acts_for = |m: &&Membership| m.platform_id.as_ref() == Some(platform);
        match self.membership().filter(acts_for) {
            None => Err(Error::NotFound("platform")),
            Some(membership) if membership.permissions.allows(permission) => Ok(()),
            Some(_) => Err(Error::Forbidden),
        }
    }

    /// What the audit calls the kind of caller: `user`, `service`, `system` or `anonymous`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Service { .. } => "service",
            Self::User { .. } => "user",
            Self::System => "system",
        }
    }

    /// What the audit calls the caller: the user's id, or the name of the service.
    #[must_use]
    pub fn actor_id(&self) -> &str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Service { name } => name,
            Self::User { user_id, .. } => user_id.as_str(),
            Self::System => "system",
        }
    }
}
