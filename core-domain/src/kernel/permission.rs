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
    /// Read the audit.
    AuditRead = "audit:read" reads,
    /// See provisioning jobs.
    JobRead = "job:read" reads,
    /// Queue provisioning jobs.
    JobCreate = "job:create" writes,
    /// See deployments.
    DeploymentRead = "deployment:read" reads,
    /// Deploy a site.
    DeploymentCreate = "deployment:create" writes,
    /// See stack templates.
    StackRead = "stack:read" reads,
    /// Publish stack templates.
    StackWrite = "stack:write" writes,
}

/// What a caller is allowed: patterns of `resource:action`, sorted and without duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PermissionSet(Vec<String>);

impl PermissionSet {
    /// The set of these patterns.
    #[must_use]
    pub fn new(patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut patterns: Vec<String> = patterns.into_iter().map(Into::into).collect();
        patterns.sort();
        patterns.dedup();
        Self(patterns)
    }

    /// Tells whether some pattern allows the permission.
    #[must_use]
    pub fn allows(&self, permission: Permission) -> bool {
        self.0
            .iter()
            .any(|pattern| matches(pattern, permission.as_str()))
    }

    /// The patterns, sorted.
    #[must_use]
    pub fn patterns(&self) -> &[String] {
        &self.0
    }
}

fn matches(pattern: &str, permission: &str) -> bool {
    let (Some((resource, action)), Some((wanted_resource, wanted_action))) =
        (pattern.split_once(':'), permission.split_once(':'))
    else {
        return false;
    };
    (resource == "*" || resource == wanted_resource) && (action == "*" || action == wanted_action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_one_whole_part() {
        let readers = PermissionSet::new(["*:read"]);
        assert!(readers.allows(Permission::PlatformRead));
        assert!(!readers.allows(Permission::PlatformUpdate));
        assert!(PermissionSet::new(["platform:*"]).allows(Permission::PlatformManage));
        assert!(!PermissionSet::new(["*", "plat*:read"]).allows(Permission::PlatformRead));
    }
}
