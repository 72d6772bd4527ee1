//! What the roles of an organization allow.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{OrganizationId, PermissionPattern, Role};

/// What an organization's roles allow, where it has said so. Kept with the organization, because every request of its members
/// asks for it.
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
    /// What the organization has mapped the role to, if it has.
    #[must_use]
    pub fn get(&self, role: &Role) -> Option<&[PermissionPattern]> {
        self.0.get(role).map(Vec::as_slice)
    }

    /// The mapped roles, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Role, &[PermissionPattern])> {
        self.0
            .iter()
            .map(|(role, patterns)| (role, patterns.as_slice()))
    }

    /// How many roles are mapped.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Tells whether no role is mapped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Maps a role; answers what it was mapped to. The patterns are kept sorted, each once.
    pub fn set(
        &mut self,
        role: Role,
        mut patterns: Vec<PermissionPattern>,
    ) -> Option<Vec<PermissionPattern>> {
        patterns.sort();
        patterns.dedup();
        self.0.insert(role, patterns)
    }

    /// Takes the mapping of a role away; answers what it was.
    pub fn remove(&mut self, role: &Role) -> Option<Vec<PermissionPattern>> {
        self.0.remove(role)
    }

    /// What a role allows in the organization, as patterns: what it is mapped to, or else what it allows by itself.
    #[must_use]
    pub fn patterns_of(&self, role: &Role) -> Vec<String> {
        match self.get(role) {
            Some(patterns) => patterns.iter().map(ToString::to_string).collect(),
            None => role.permissions().patterns(),
        }
    }

    /// Tells whether the organization has the role: it is built in, or mapped.
    #[must_use]
    pub fn knows(&self, role: &Role) -> bool {
        Role::BUILT_IN.contains(role) || self.0.contains_key(role)
    }
}

/// Maps a role of an organization to permissions, in place of what it was mapped to (interface: `POST /api/core/roles`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MapRole {
    /// The organization.
    pub org_id: OrganizationId,
    /// The role; built in or a name of the organization's own.
    pub role: Role,
    /// What it allows from now on; nothing but the grants of its members when empty.
    #[schemars(length(max = 100))]
    pub permissions: Vec<PermissionPattern>,
}
