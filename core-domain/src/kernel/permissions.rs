//! Permissions. A permission has the form `resource:action`. Roles and grants allow patterns of permissions, in which
//! `*` can stand for either part.

use super::text::text_enum;
use super::text::{TextError, text};

/// A permission as a type, with which a scope is opened. A use case names the type in its signature, and the endpoint
/// that calls the use case takes the required permission from there.
pub trait PermissionType: Send + Sync + 'static {
    /// The permission that the caller needs.
    const PERMISSION: Permission;

    /// Whether the scope is for changes to the records of a platform. Such a scope cannot be opened on a deleted
    /// platform.
    const WRITES: bool;

    /// `true` if callers of a suspended platform can open the scope. They cannot if an operator suspended the platform.
    const LIFTS_SUSPENSION: bool = false;
}

/// A permission whose scopes can write records of the platform. Writing through another scope does not compile.
pub trait WritePermission: PermissionType {}

/// Declares the permissions: their names, and a [`PermissionType`] type for each of them. The mode says what the permission is
/// for:
///
/// - `writes`: changes to the records of a platform.
/// - `moves`: changes to the platform itself. The state machine of the platform decides about a deleted platform.
/// - `reads`: everything else.
macro_rules! permissions {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal $mode:ident),+ $(,)?) => {
        text_enum! {
            /// A permission that a use case requires.
            pub enum Permission { $($(#[doc = $doc])* $name = $text),+ }
        }

        /// One type for each permission.
        pub mod permission {
            use super::{PermissionType, Permission, WritePermission};
            $(
                $(#[doc = $doc])*
                #[derive(Clone, Copy, Debug)]
                pub struct $name;

                impl PermissionType for $name {
                    const PERMISSION: Permission = Permission::$name;
                    const WRITES: bool = permissions!(@$mode);
                }

                permissions!(@$mode $name);
            )+

            /// Allows restoring a platform. Callers of a suspended platform can use it, unless an operator suspended
            /// the platform.
            #[derive(Clone, Copy, Debug)]
            pub struct PlatformRestore;

            impl PermissionType for PlatformRestore {
                const PERMISSION: Permission = Permission::PlatformManage;
                const WRITES: bool = false;
                const LIFTS_SUSPENSION: bool = true;
            }

            impl WritePermission for PlatformRestore {}
        }
    };
    (@reads) => { false };
    (@writes) => { true };
    (@moves) => { false };
    (@reads $name:ident) => {};
    (@writes $name:ident) => {
        impl WritePermission for $name {}
    };
    (@moves $name:ident) => {
        impl WritePermission for $name {}
    };
}

permissions! {
    /// Allows reading platforms.
    PlatformRead = "platform:read" reads,
    /// Allows creating platforms.
    PlatformCreate = "platform:create" reads,
    /// Allows updating platforms.
    PlatformUpdate = "platform:update" moves,
    /// Allows suspending, restoring, canceling and deleting platforms.
    PlatformManage = "platform:manage" moves,
    /// Allows reading entities.
    EntityRead = "entity:read" reads,
    /// Allows creating, updating and deleting entities.
    EntityWrite = "entity:write" writes,
    /// Allows reading infrastructure resources.
    ResourceRead = "resource:read" reads,
    /// Allows creating, updating and deleting infrastructure resources.
    ResourceWrite = "resource:write" writes,
    /// Allows reading which features are active.
    FeatureRead = "feature:read" reads,
    /// Allows activating and deactivating features.
    FeatureWrite = "feature:write" writes,
    /// Allows reading the names and statuses of the secrets of resources, but not their values.
    SecretRead = "secret:read" reads,
    /// Allows updating the statuses of the secrets of resources.
    SecretWrite = "secret:write" writes,
    /// Allows reading builds.
    BuildRead = "build:read" reads,
    /// Allows updating the statuses of builds.
    BuildWrite = "build:write" writes,
    /// Allows reading workspace stacks.
    WorkspaceRead = "workspace:read" reads,
    /// Allows creating workspace stacks.
    WorkspaceWrite = "workspace:write" writes,
    /// Allows reading DNS records.
    DnsRead = "dns:read" reads,
    /// Allows creating, updating and deleting DNS records.
    DnsWrite = "dns:write" writes,
    /// Allows reading custom domains.
    DomainRead = "domain:read" reads,
    /// Allows adding, updating and removing custom domains.
    DomainWrite = "domain:write" writes,
    /// Allows reading the configuration of a platform, which can contain sensitive values.
    ConfigRead = "config:read" reads,
    /// Allows changing the configuration of a platform.
    ConfigWrite = "config:write" writes,
    /// Allows reading the audit log.
    AuditRead = "audit:read" reads,
    /// Allows reading the stream of changes.
    EventRead = "event:read" reads,
    /// Allows reading webhooks and their deliveries.
    WebhookRead = "webhook:read" reads,
    /// Allows creating, updating and deleting webhooks.
    WebhookWrite = "webhook:write" writes,
    /// Allows reading provisioning jobs.
    JobRead = "job:read" reads,
    /// Allows creating provisioning jobs.
    JobCreate = "job:create" writes,
    /// Allows reading deployments.
    DeploymentRead = "deployment:read" reads,
    /// Allows deploying sites.
    DeploymentCreate = "deployment:create" writes,
    /// Allows updating the statuses of deployments that an external program makes.
    DeploymentWrite = "deployment:write" writes,
    /// Allows reading the logs of workers and sites, which can contain personal data.
    LogRead = "log:read" reads,
    /// Allows reading subscriptions, invoices, payment methods and usage.
    BillingRead = "billing:read" reads,
    /// Allows changing subscriptions and payment methods. Charges can follow.
    BillingManage = "billing:manage" reads,
    /// Allows reading stack templates.
    StackRead = "stack:read" reads,
    /// Allows publishing stack templates.
    StackWrite = "stack:write" writes,
    /// Allows updating the organization.
    OrganizationUpdate = "organization:update" reads,
    /// Allows deleting the organization.
    OrganizationDelete = "organization:delete" reads,
    /// Allows reading the members of the organization.
    MemberRead = "member:read" reads,
    /// Allows adding members to the organization without an invitation.
    MemberCreate = "member:create" reads,
    /// Allows changing the roles of members.
    MemberUpdate = "member:update" reads,
    /// Allows removing members from the organization.
    MemberDelete = "member:delete" reads,
    /// Allows reading the invitations of the organization.
    InvitationRead = "invitation:read" reads,
    /// Allows inviting people to the organization.
    InvitationCreate = "invitation:create" reads,
    /// Allows canceling invitations of the organization.
    InvitationCancel = "invitation:cancel" reads,
    /// Allows reading the permissions to which roles are mapped.
    RoleRead = "role:read" reads,
    /// Allows mapping roles to permissions.
    RoleWrite = "role:write" reads,
    /// Allows reading the grants and denials of members.
    GrantRead = "grant:read" reads,
    /// Allows granting and denying permissions to single members.
    GrantWrite = "grant:write" reads,
    /// Allows reading the API keys of the organization.
    ApiKeyRead = "apikey:read" reads,
    /// Allows creating and revoking API keys of the organization.
    ApiKeyWrite = "apikey:write" reads,
}

text! {
    /// A pattern of permissions: `resource:action`, with `*` for either part. The two words can be freely chosen, so
    /// that an embedding program can define permissions of its own.
    PermissionPattern, pattern, {
        "type": "string", "minLength": 3, "maxLength": 128,
        "pattern": r"^([a-z][a-z0-9_-]*|\*):([a-z][a-z0-9_-]*|\*)$",
        "examples": ["deployment:create"],
    }
}

fn pattern(text: &str) -> Result<String, TextError> {
    let word = |part: &str| {
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        part == "*" || part.starts_with(|c: char| c.is_ascii_lowercase()) && part.bytes().all(fits)
    };
    let (resource, action) = text.split_once(':').ok_or(TextError::Malformed)?;
    match text.len() {
        ..3 => Err(TextError::TooShort),
        129.. => Err(TextError::TooLong),
        _ if word(resource) && word(action) => Ok(text.to_owned()),
        _ => Err(TextError::Malformed),
    }
}

/// Returns whether a pattern allows everything that another pattern or permission stands for.
#[must_use]
pub fn pattern_includes(pattern: &str, other: &str) -> bool {
    by_parts(pattern, other, |part, other| part == "*" || part == other)
}

/// Returns whether a permission exists that both patterns stand for.
fn overlap(one: &str, other: &str) -> bool {
    by_parts(one, other, |part, other| {
        part == "*" || other == "*" || part == other
    })
}

fn by_parts(one: &str, other: &str, fits: impl Fn(&str, &str) -> bool) -> bool {
    match (one.split_once(':'), other.split_once(':')) {
        (Some((resource, action)), Some((other_resource, other_action))) => {
            fits(resource, other_resource) && fits(action, other_action)
        }
        _ => false,
    }
}

/// Returns the pattern of the permissions that both patterns stand for; `None` if there are none.
fn intersection(one: &str, other: &str) -> Option<String> {
    if !overlap(one, other) {
        return None;
    }
    let (resource, action) = one.split_once(':')?;
    let (other_resource, other_action) = other.split_once(':')?;
    let narrower = |part, other| if part == "*" { other } else { part };
    Some(format!(
        "{}:{}",
        narrower(resource, other_resource),
        narrower(action, other_action)
    ))
}

/// Returns the patterns of the permissions for which both lists have a pattern.
fn intersections(some: &[String], others: &[String]) -> Vec<String> {
    let pairs = some
        .iter()
        .flat_map(|one| others.iter().map(move |other| (one, other)));
    pairs
        .filter_map(|(one, other)| intersection(one, other))
        .collect()
}

/// A set of permissions: what at least one pattern allows and no pattern denies. If the credential has scopes, the set
/// contains only permissions within them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PermissionSet {
    allowed: Vec<String>,
    denied: Vec<String>,
    scopes: Option<Vec<String>>,
}

fn sort_and_dedup(patterns: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    let mut patterns: Vec<String> = patterns.into_iter().map(Into::into).collect();
    patterns.sort();
    patterns.dedup();
    patterns
}

impl PermissionSet {
    /// Creates the set of the permissions that the patterns allow.
    #[must_use]
    pub fn new(patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            allowed: sort_and_dedup(patterns),
            ..Self::default()
        }
    }

    /// Removes the permissions that the patterns stand for from the set.
    #[must_use]
    pub fn without(mut self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let more = patterns.into_iter().map(Into::into);
        self.denied = sort_and_dedup(std::mem::take(&mut self.denied).into_iter().chain(more));
        self
    }

    /// Restricts the set to the permissions that the scopes allow. Repeated calls restrict it further.
    #[must_use]
    pub fn within(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let scopes = sort_and_dedup(scopes);
        self.scopes = Some(match self.scopes.take() {
            Some(narrower) => sort_and_dedup(intersections(&narrower, &scopes)),
            None => scopes,
        });
        self
    }

    /// Returns whether the set contains the permission.
    #[must_use]
    pub fn allows(&self, permission: Permission) -> bool {
        self.covers(permission.as_str())
    }

    /// Returns whether the set contains everything that a pattern stands for. The text can also be a permission that
    /// the suite does not define.
    #[must_use]
    pub fn covers(&self, wanted: &str) -> bool {
        let by = |patterns: &[String]| patterns.iter().any(|p| pattern_includes(p, wanted));
        by(&self.allowed)
            && !self.denied.iter().any(|denied| overlap(denied, wanted))
            && self.scopes.as_deref().is_none_or(by)
    }

    /// Returns the set as patterns that only allow, sorted and without duplicates, for readers that do not support
    /// denials. A pattern with a denied part is replaced by the remaining permissions of the suite, one by one.
    /// Permissions that the suite does not define are then omitted.
    #[must_use]
    pub fn patterns(&self) -> Vec<String> {
        if self.denied.is_empty() && self.scopes.is_none() {
            return self.allowed.clone();
        }
        let scopes = self
            .scopes
            .clone()
            .unwrap_or_else(|| vec!["*:*".to_owned()]);
        let within = intersections(&self.allowed, &scopes).into_iter();
        sort_and_dedup(within.flat_map(|pattern| self.without_denied(pattern)))
    }

    fn without_denied(&self, pattern: String) -> Vec<String> {
        if !self.denied.iter().any(|denied| overlap(denied, &pattern)) {
            return vec![pattern];
        }
        let left = Permission::ALL.iter().filter(|permission| {
            pattern_includes(&pattern, permission.as_str()) && self.allows(**permission)
        });
        left.map(ToString::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_star_matches_exactly_one_whole_part() {
        let readers = PermissionSet::new(["*:read"]);
        assert!(readers.allows(Permission::PlatformRead));
        assert!(!readers.allows(Permission::PlatformUpdate));
        assert!(PermissionSet::new(["platform:*"]).allows(Permission::PlatformManage));
        assert!(!PermissionSet::new(["*", "plat*:read"]).allows(Permission::PlatformRead));
    }

    #[test]
    fn a_pattern_consists_of_two_words_or_stars() {
        for good in ["*:*", "platform:*", "*:read", "my-report_2:print"] {
            assert!(PermissionPattern::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "*",
            ":",
            "a:",
            ":b",
            "a:b:c",
            "A:b",
            "plat*:read",
            "a b:c",
            "1a:b",
        ] {
            assert!(PermissionPattern::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_pattern_is_covered_only_if_no_part_of_it_is_denied() {
        let set = PermissionSet::new(["*:*"]).without(["platform:manage"]);
        assert!(set.covers("entity:*") && set.covers("platform:read"));
        assert!(!set.covers("platform:*") && !set.covers("*:*"));
        let shown = set.patterns();
        assert!(shown.iter().any(|p| p == "platform:read"));
        assert!(
            !shown
                .iter()
                .any(|p| p == "platform:manage" || p.contains('*'))
        );
    }

    #[test]
    fn scopes_narrow_patterns_and_never_widen_them() {
        let set = PermissionSet::new(["platform:read", "entity:*"]).within(["*:read", "job:*"]);
        assert_eq!(set.patterns(), ["entity:read", "platform:read"]);
        assert!(!set.covers("entity:write") && !set.covers("job:read"));
    }

    fn some_pattern() -> impl Strategy<Value = String> {
        let part = |words: &'static [&'static str]| prop::sample::select(words);
        (
            part(&["*", "platform", "entity"]),
            part(&["*", "read", "write"]),
        )
            .prop_map(|(resource, action)| format!("{resource}:{action}"))
    }

    fn some_patterns() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec(some_pattern(), 0..4)
    }

    proptest! {
        #[test]
        fn patterns_allow_exactly_the_permissions_of_the_set(
            allowed in some_patterns(),
            denied in some_patterns(),
            scopes in prop::option::of(some_patterns()),
        ) {
            let mut set = PermissionSet::new(allowed).without(denied);
            if let Some(scopes) = scopes {
                set = set.within(scopes);
            }
            let shown = PermissionSet::new(set.patterns());
            for permission in Permission::ALL {
                prop_assert_eq!(set.allows(*permission), shown.allows(*permission), "{}", permission);
            }
        }
    }
}
