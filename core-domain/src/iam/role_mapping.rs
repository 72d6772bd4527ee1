//! The permissions of an organization's roles.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{OrganizationId, PermissionPattern, Role};

/// The role mappings of an organization, which override the built-in roles and add new ones. They are stored inside the
/// organization, because every request of its members needs them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct RoleMappings(
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(strategy = "crate::kernel::strategy::few_entries()")
    )]
    BTreeMap<Role, Vec<PermissionPattern>>,
);

impl RoleMappings {
    /// Returns the patterns that the organization maps the role to; `None` if it does not map the role.
    #[must_use]
    pub fn get(&self, role: &Role) -> Option<&[PermissionPattern]> {
        self.0.get(role).map(Vec::as_slice)
    }

    /// Iterates over the mapped roles, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Role, &[PermissionPattern])> {
        self.0
            .iter()
            .map(|(role, patterns)| (role, patterns.as_slice()))
    }

    /// Returns the number of mapped roles.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether no role is mapped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Maps a role to permission patterns and returns its previous mapping. The patterns are stored sorted and without
    /// duplicates.
    pub fn set(
        &mut self,
        role: Role,
        mut patterns: Vec<PermissionPattern>,
    ) -> Option<Vec<PermissionPattern>> {
        patterns.sort();
        patterns.dedup();
        self.0.insert(role, patterns)
    }

    /// Removes the mapping of a role and returns it.
    pub fn remove(&mut self, role: &Role) -> Option<Vec<PermissionPattern>> {
        self.0.remove(role)
    }

    /// Returns the permission patterns of a role in the organization: its mapping, or the permissions of the built-in
    /// role.
    #[must_use]
    pub fn patterns_of(&self, role: &Role) -> Vec<String> {
        match self.get(role) {
            Some(patterns) => patterns.iter().map(ToString::to_string).collect(),
            None => role.permissions().patterns(),
        }
    }

    /// Returns whether the organization has the role: it is built in or mapped.
    #[must_use]
    pub fn has_role(&self, role: &Role) -> bool {
        Role::BUILT_IN.contains(role) || self.0.contains_key(role)
    }
}

/// Maps a role of an organization to permissions. Replaces the previous mapping of the role.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MapRole {
    /// The id of the organization.
    pub org_id: OrganizationId,
    /// The name of the role: a built-in role or a custom name.
    pub role: Role,
    /// The permission patterns of the role. If empty, the role itself allows nothing; grants to members still apply.
    #[schemars(length(max = 100))]
    pub permissions: Vec<PermissionPattern>,
}
