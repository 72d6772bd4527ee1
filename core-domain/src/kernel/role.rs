//! Roles: names that an organization gives its members. Three are built in.

use std::borrow::Cow;

use super::{PermissionSet, TextValue};

/// A member's role in an organization: 1 to 63 characters `[a-z0-9_-]`, a letter in front.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct Role(Cow<'static, str>);

impl Role {
    /// May do everything.
    pub const OWNER: Self = Self(Cow::Borrowed("owner"));
    /// May do everything but end the organization's platform.
    pub const ADMIN: Self = Self(Cow::Borrowed("admin"));
    /// May look, and deploy.
    pub const MEMBER: Self = Self(Cow::Borrowed("member"));
    /// The roles every organization has.
    pub const BUILT_IN: [Self; 3] = [Self::OWNER, Self::ADMIN, Self::MEMBER];

    /// Reads a name; `None` when it cannot be one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(built_in) = Self::BUILT_IN.into_iter().find(|role| role.0 == text) {
            return Some(built_in);
        }
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        let named = text.starts_with(|c: char| c.is_ascii_lowercase()) && text.len() <= 63;
        (named && text.bytes().all(fits)).then(|| Self(Cow::Owned(text.to_owned())))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the role allows when the organization has not mapped it otherwise; a role that is not built in, nothing.
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
                "stack:read",
                "organization:update",
                "member:*",
                "invitation:*",
                "role:*",
                "grant:*",
                "apikey:*",
            ]),
            // Named one by one, so that a permission that comes later is not theirs by accident.
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

/// The roles of a member, at least one: comma-joined as they were given, `owner` in front, without repetitions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct Roles(Cow<'static, str>);

/// How many roles a member has at most.
const MAX_ROLES: usize = 10;

impl Roles {
    /// Of an owner.
    pub const OWNER: Self = Self(Cow::Borrowed("owner"));

    /// Reads names joined with commas; `None` when one cannot be a name, or there are none or too many.
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

    /// These roles; `None` when there are none or too many.
    #[must_use]
    pub fn of(roles: impl IntoIterator<Item = Role>) -> Option<Self> {
        let mut names: Vec<Cow<'static, str>> = Vec::new();
        for Role(name) in roles {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        // In front, so that stores find owners by how their roles begin.
        names.sort_by_key(|name| name != Self::OWNER.as_str());
        match names.as_mut_slice() {
            [] => None,
            [only] => Some(Self(std::mem::take(only))),
            names if names.len() > MAX_ROLES => None,
            names => Some(Self(names.join(",").into())),
        }
    }

    /// The names, joined with commas.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names, one by one.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split(',')
    }

    /// The roles, one by one.
    pub fn iter(&self) -> impl Iterator<Item = Role> + '_ {
        self.names().filter_map(Role::parse)
    }

    /// Tells whether this is one of them.
    #[must_use]
    pub fn contains(&self, role: &Role) -> bool {
        self.names().any(|name| name == role.as_str())
    }

    /// What the roles allow when the organization has mapped none of them.
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
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not the names of roles"))
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
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not the name of a role"))
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
    fn a_member_is_granted_what_is_named_and_nothing_that_comes_later() {
        let patterns = Role::MEMBER.permissions();
        assert!(patterns.patterns().iter().all(|p| !p.contains('*')));
        // What may hold secrets is not for everybody to see, nor whom the organization invites.
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
    fn several_roles_are_joined_with_commas_and_allow_what_any_of_them_allows() {
        let roles = Roles::parse("auditor, admin,auditor").unwrap();
        assert_eq!(roles.as_str(), "auditor,admin");
        assert!(roles.contains(&Role::ADMIN) && !roles.contains(&Role::OWNER));
        assert_eq!(roles.permissions(), Role::ADMIN.permissions());
        for none in ["", ",", "admin,", "Admin", "a,,b"] {
            assert_eq!(Roles::parse(none), None, "{none}");
        }
    }

    #[test]
    fn names_are_free_but_plain_and_allow_nothing_by_themselves() {
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
