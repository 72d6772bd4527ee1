//! Roles of members: names that an organization defines. Three roles are built in.

use std::borrow::Cow;

use super::{PermissionSet, TextValue};

/// The name of a role in an organization: 1 to 63 characters of `[a-z0-9_-]`; the first is a letter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct Role(Cow<'static, str>);

impl Role {
    /// The role with all permissions.
    pub const OWNER: Self = Self(Cow::Borrowed("owner"));
    /// The role with all permissions except to suspend, restore, cancel or delete the platform, to delete the
    /// organization, and to publish stack templates.
    pub const ADMIN: Self = Self(Cow::Borrowed("admin"));
    /// The role that can read and deploy.
    pub const MEMBER: Self = Self(Cow::Borrowed("member"));
    /// The roles that exist in every organization.
    pub const BUILT_IN: [Self; 3] = [Self::OWNER, Self::ADMIN, Self::MEMBER];

    /// Parses a role name; `None` if the text is not a valid name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(built_in) = Self::BUILT_IN.into_iter().find(|role| role.0 == text) {
            return Some(built_in);
        }
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        let named = text.starts_with(|c: char| c.is_ascii_lowercase()) && text.len() <= 63;
        (named && text.bytes().all(fits)).then(|| Self(Cow::Owned(text.to_owned())))
    }

    /// Returns the name of the role.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the default permissions of the role, which hold unless the organization maps the role. A role that is
    /// not built in has none.
    #[must_use]
    pub fn permissions(&self) -> PermissionSet {
        match self.as_str() {
            "owner" => PermissionSet::new(["*:*"]),
            "admin" => PermissionSet::new([
                "platform:read",
                "platform:create",
                "platform:update",
                "entity:*",
                "resource:*",
                "feature:*",
                "secret:*",
                "build:*",
                "workspace:*",
                "dns:*",
                "domain:*",
                "config:*",
                "audit:*",
                "event:*",
                "webhook:*",
                "job:*",
                "deployment:*",
                "log:read",
                "billing:*",
                "stack:read",
                "organization:update",
                "member:*",
                "invitation:*",
                "role:*",
                "grant:*",
                "apikey:*",
            ]),
            // Listed one by one, so that members do not get future permissions automatically.
            "member" => PermissionSet::new([
                "platform:read",
                "entity:read",
                "resource:read",
                "feature:read",
                "secret:read",
                "build:read",
                "workspace:read",
                "dns:read",
                "domain:read",
                "audit:read",
                "event:read",
                "job:read",
                "deployment:read",
                "deployment:create",
                "log:read",
                "billing:read",
                "stack:read",
                "member:read",
                "role:read",
                "grant:read",
                "apikey:read",
            ]),
            _ => PermissionSet::default(),
        }
    }
}

/// The roles of a member: 1 to 10 names, separated by commas. The order is kept, but `owner` comes first; duplicates
/// are removed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct Roles(Cow<'static, str>);

/// Maximum number of roles of a member.
const MAX_ROLES: usize = 10;

impl Roles {
    /// The roles of an owner: only `owner`.
    pub const OWNER: Self = Self(Cow::Borrowed("owner"));

    /// Parses role names separated by commas. Returns `None` if a name is invalid, or if there is no name or more than
    /// 10.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let built_in = Role::BUILT_IN.into_iter().find(|role| role.0 == text);
        if let Some(Role(name)) = built_in {
            return Some(Self(name));
        }
        let roles: Option<Vec<Role>> = text
            .split(',')
            .map(|name| Role::parse(name.trim()))
            .collect();
        Self::of(roles?)
    }

    /// Creates the set of these roles; `None` if there is no role or more than 10.
    #[must_use]
    pub fn of(roles: impl IntoIterator<Item = Role>) -> Option<Self> {
        let mut names: Vec<Cow<'static, str>> = Vec::new();
        for Role(name) in roles {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        // `owner` comes first so that stores can find owners by a prefix of the text.
        names.sort_by_key(|name| name != Self::OWNER.as_str());
        match names.as_mut_slice() {
            [] => None,
            [only] => Some(Self(std::mem::take(only))),
            names if names.len() > MAX_ROLES => None,
            names => Some(Self(names.join(",").into())),
        }
    }

    /// Returns the names, separated by commas.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Iterates over the names of the roles.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split(',')
    }

    /// Iterates over the roles.
    pub fn iter(&self) -> impl Iterator<Item = Role> + '_ {
        self.names().filter_map(Role::parse)
    }

    /// Returns whether the role is in the set.
    #[must_use]
    pub fn contains(&self, role: &Role) -> bool {
        self.names().any(|name| name == role.as_str())
    }

    /// Returns the combined default permissions of the roles.
    #[must_use]
    pub fn permissions(&self) -> PermissionSet {
        if let Some(role) = Role::parse(&self.0) {
            return role.permissions();
        }
        PermissionSet::new(self.iter().flat_map(|role| role.permissions().patterns()))
    }
}

impl From<Role> for Roles {
    fn from(role: Role) -> Self {
        Self(role.0)
    }
}

impl TextValue for Roles {
    fn as_text(&self) -> &str {
        &self.0
    }

    fn from_text(text: &str) -> Option<Self> {
        Self::parse(text)
    }
}

crate::kernel::arbitrary!(Roles as "owner|admin|member|[a-z][a-z0-9_-]{0,20}(,[a-z][a-z0-9_-]{0,20})?");

impl std::fmt::Display for Roles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Roles {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a list of role names"))
    }
}

impl schemars::JsonSchema for Roles {
    fn schema_name() -> Cow<'static, str> {
        "Roles".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string", "minLength": 1, "maxLength": 639,
            "pattern": "^[a-z][a-z0-9_-]*(,[a-z][a-z0-9_-]*)*$",
            "examples": ["owner"],
        })
    }
}

impl TextValue for Role {
    fn as_text(&self) -> &str {
        &self.0
    }

    fn from_text(text: &str) -> Option<Self> {
        Self::parse(text)
    }
}

crate::kernel::arbitrary!(Role as "owner|admin|member|[a-z][a-z0-9_-]{0,62}");

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Role {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a role name"))
    }
}

impl schemars::JsonSchema for Role {
    fn schema_name() -> Cow<'static, str> {
        "Role".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[a-z][a-z0-9_-]*$",
            "examples": ["owner"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Permission;

    #[test]
    fn members_have_only_the_permissions_that_are_listed_by_name() {
        let patterns = Role::MEMBER.permissions();
        assert!(patterns.patterns().iter().all(|p| !p.contains('*')));
        // Configuration and webhooks can contain secrets, and invitations contain addresses, so members cannot read
        // them.
        let confidential = [
            Permission::ConfigRead,
            Permission::WebhookRead,
            Permission::InvitationRead,
        ];
        let reads = Permission::ALL
            .iter()
            .filter(|p| p.as_str().ends_with(":read"));
        for read in reads {
            assert_ne!(
                patterns.allows(*read),
                confidential.contains(read),
                "{read:?}"
            );
        }
        assert!(!patterns.allows(Permission::EntityWrite));
    }

    #[test]
    fn roles_are_joined_with_commas_and_combine_their_permissions() {
        let roles = Roles::parse("auditor, admin,auditor").unwrap();
        assert_eq!(roles.as_str(), "auditor,admin");
        assert!(roles.contains(&Role::ADMIN) && !roles.contains(&Role::OWNER));
        assert_eq!(roles.permissions(), Role::ADMIN.permissions());
        for none in ["", ",", "admin,", "Admin", "a,,b"] {
            assert_eq!(Roles::parse(none), None, "{none}");
        }
    }

    #[test]
    fn custom_roles_have_simple_names_and_no_default_permissions() {
        for name in ["owner", "a", "billing-admin_2"] {
            assert_eq!(Role::parse(name).unwrap().as_str(), name);
        }
        for name in ["", "Owner", "1st", "a b", "-x", "é", &"a".repeat(64)] {
            assert_eq!(Role::parse(name), None, "{name}");
        }
        assert_eq!(
            Role::parse("auditor").unwrap().permissions(),
            PermissionSet::default()
        );
    }
}
