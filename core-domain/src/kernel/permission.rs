//! Permissions: `resource:action`, with `*` for either part in what a role or a grant allows.

use super::text_value::text_enum;

text_enum! {
    /// Something a use case demands of its caller.
    pub enum Permission {
        /// See platforms.
        PlatformRead = "platform:read",
        /// Make a platform.
        PlatformCreate = "platform:create",
        /// Change a platform.
        PlatformUpdate = "platform:update",
        /// Suspend, restore, cancel or delete a platform.
        PlatformManage = "platform:manage",
        /// See entities.
        EntityRead = "entity:read",
        /// Change entities.
        EntityWrite = "entity:write",
        /// See infrastructure resources.
        ResourceRead = "resource:read",
        /// Change infrastructure resources.
        ResourceWrite = "resource:write",
        /// Read the audit.
        AuditRead = "audit:read",
        /// See provisioning jobs.
        JobRead = "job:read",
        /// Queue provisioning jobs.
        JobCreate = "job:create",
        /// See deployments.
        DeploymentRead = "deployment:read",
        /// Deploy a site.
        DeploymentCreate = "deployment:create",
        /// See stack templates.
        StackRead = "stack:read",
        /// Publish stack templates.
        StackWrite = "stack:write",
    }
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
