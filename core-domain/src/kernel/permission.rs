//! Permissions: `resource:action`, with `*` for either part in what a role or a grant allows.

use super::text_value::text_enum;

/// What a scope was opened for: one type a permission. A use case says in its signature which one it takes, and the
/// endpoint that calls it learns it from there.
pub trait Grant: Send + Sync + 'static {
    /// What the caller must be allowed.
    const PERMISSION: Permission;

    /// Whether the scope is there to change what belongs to the platform, which nobody does to a deleted one.
    const WRITES: bool;

    /// Whether the callers of a suspended platform get the scope nevertheless, unless an operator suspended it.
    const LIFTS_SUSPENSION: bool = false;
}

/// A grant whose scopes write records of the platform. With another one it does not compile.
pub trait WriteGrant: Grant {}

/// Declares the permissions: the words, and a [`Grant`] for each that tells whether it changes what belongs to a
/// platform (`writes`) or not (`reads`; also what moves the platform itself, which its state machine decides).
macro_rules! permissions {
    ($($(#[$meta:meta])* $name:ident = $text:literal $mode:ident),+ $(,)?) => {
        text_enum! {
            /// Something a use case demands of its caller.
            pub enum Permission { $($(#[$meta])* $name = $text),+ }
        }

        /// The permissions as types.
        pub mod grant {
            use super::{Grant, Permission, WriteGrant};
            $(
                $(#[$meta])*
                #[derive(Clone, Copy, Debug)]
                pub struct $name;

                impl Grant for $name {
                    const PERMISSION: Permission = Permission::$name;
                    const WRITES: bool = permissions!(@$mode);
                }

                permissions!(@$mode $name);
            )+

            /// Let a platform be used again: the one thing its suspended callers may do, when they suspended it themselves.
            #[derive(Clone, Copy, Debug)]
            pub struct PlatformRestore;

            impl Grant for PlatformRestore {
                const PERMISSION: Permission = Permission::PlatformManage;
                const WRITES: bool = false;
                const LIFTS_SUSPENSION: bool = true;
            }

            impl WriteGrant for PlatformRestore {}
        }
    };
    (@reads) => { false };
    (@writes) => { true };
    (@moves) => { false };
    (@reads $name:ident) => {};
    (@writes $name:ident) => {
        impl WriteGrant for $name {}
    };
    (@moves $name:ident) => {
        impl WriteGrant for $name {}
    };
}

permissions! {
    /// See platforms.
    PlatformRead = "platform:read" reads,
    /// Create a platform.
    PlatformCreate = "platform:create" reads,
    /// Change a platform.
    PlatformUpdate = "platform:update" moves,
    /// Suspend, restore, cancel or delete a platform.
    PlatformManage = "platform:manage" moves,
    /// See entities.
    EntityRead = "entity:read" reads,
    /// Change entities.
    EntityWrite = "entity:write" writes,
    /// See infrastructure resources.
    ResourceRead = "resource:read" reads,
    /// Change infrastructure resources.
    ResourceWrite = "resource:write" writes,
    /// See which features are active.
    FeatureRead = "feature:read" reads,
    /// Activate and deactivate features.
    FeatureWrite = "feature:write" writes,
    /// See which secrets a resource has, and where they stand; never their values.
    SecretRead = "secret:read" reads,
    /// Note where the secrets of a resource stand.
    SecretWrite = "secret:write" writes,
    /// See builds.
    BuildRead = "build:read" reads,
    /// Note where builds stand.
    BuildWrite = "build:write" writes,
    /// See workspace stacks.
    WorkspaceRead = "workspace:read" reads,
    /// Create workspace stacks.
    WorkspaceWrite = "workspace:write" writes,
    /// See DNS records.
    DnsRead = "dns:read" reads,
    /// Change DNS records.
    DnsWrite = "dns:write" writes,
    /// See custom domains.
    DomainRead = "domain:read" reads,
    /// Change custom domains.
    DomainWrite = "domain:write" writes,
    /// See a platform's configuration, which may hold what not everybody should see.
    ConfigRead = "config:read" reads,
    /// Change a platform's configuration.
    ConfigWrite = "config:write" writes,
    /// Read the audit.
    AuditRead = "audit:read" reads,
    /// Follow what changes.
    EventRead = "event:read" reads,
    /// See webhooks and their deliveries.
    WebhookRead = "webhook:read" reads,
    /// Change webhooks.
    WebhookWrite = "webhook:write" writes,
    /// See provisioning jobs.
    JobRead = "job:read" reads,
    /// Queue provisioning jobs.
    JobCreate = "job:create" writes,
    /// See deployments.
    DeploymentRead = "deployment:read" reads,
    /// Deploy a site.
    DeploymentCreate = "deployment:create" writes,
    /// Note where deployments stand that something else than the suite makes.
    DeploymentWrite = "deployment:write" writes,
    /// See stack templates.
    StackRead = "stack:read" reads,
    /// Publish stack templates.
    StackWrite = "stack:write" writes,
    /// Change an organization.
    OrganizationUpdate = "organization:update" reads,
    /// Delete an organization.
    OrganizationDelete = "organization:delete" reads,
    /// See the members of an organization.
    MemberRead = "member:read" reads,
    /// Add a member to an organization without an invitation.
    MemberCreate = "member:create" reads,
    /// Change the roles of members.
    MemberUpdate = "member:update" reads,
    /// Remove members.
    MemberDelete = "member:delete" reads,
    /// See invitations.
    InvitationRead = "invitation:read" reads,
    /// Invite people.
    InvitationCreate = "invitation:create" reads,
    /// Take invitations back.
    InvitationCancel = "invitation:cancel" reads,
    /// See what roles are mapped to.
    RoleRead = "role:read" reads,
    /// Map roles to permissions.
    RoleWrite = "role:write" reads,
    /// See grants and denials.
    GrantRead = "grant:read" reads,
    /// Grant and deny permissions to single members.
    GrantWrite = "grant:write" reads,
    /// See the API keys of an organization.
    ApiKeyRead = "apikey:read" reads,
    /// Create and revoke API keys of an organization.
    ApiKeyWrite = "apikey:write" reads,
}
