//! Permissions: `resource:action`, with `*` for either part in what a role or a grant allows.

use super::text::text_enum;
use super::text::{TextError, text};

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

text! {
    /// A pattern of permissions, as roles and grants have them: `resource:action`, with `*` for either part. The words are
    /// free: what the suite does not ask for itself, an embedder may.
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

/// Tells whether one pattern allows everything that another one (or a permission) stands for.
#[must_use]
pub fn includes(pattern: &str, other: &str) -> bool {
    by_parts(pattern, other, |part, other| part == "*" || part == other)
}

/// Tells whether there is a permission that both patterns stand for.
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

/// What both patterns stand for; `None` when that is nothing.
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

/// What patterns of both lists stand for.
fn intersections(some: &[String], others: &[String]) -> Vec<String> {
    let pairs = some
        .iter()
        .flat_map(|one| others.iter().map(move |other| (one, other)));
    pairs
        .filter_map(|(one, other)| intersection(one, other))
        .collect()
}

/// What a caller is allowed: what some pattern allows and none denies, within the scopes of the credential if it has any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PermissionSet {
    allowed: Vec<String>,
    denied: Vec<String>,
    scopes: Option<Vec<String>>,
}

fn sorted(patterns: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    let mut patterns: Vec<String> = patterns.into_iter().map(Into::into).collect();
    patterns.sort();
    patterns.dedup();
    patterns
}

impl PermissionSet {
    /// The set of what these patterns allow.
    #[must_use]
    pub fn new(patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            allowed: sorted(patterns),
            ..Self::default()
        }
    }

    /// The set without what these patterns stand for.
    #[must_use]
    pub fn denying(mut self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let more = patterns.into_iter().map(Into::into);
        self.denied = sorted(std::mem::take(&mut self.denied).into_iter().chain(more));
        self
    }

    /// What the set and these scopes allow both.
    #[must_use]
    pub fn within(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let scopes = sorted(scopes);
        self.scopes = Some(match self.scopes.take() {
            Some(narrower) => sorted(intersections(&narrower, &scopes)),
            None => scopes,
        });
        self
    }

    /// Tells whether the permission is in the set.
    #[must_use]
    pub fn allows(&self, permission: Permission) -> bool {
        self.covers(permission.as_str())
    }

    /// Tells whether everything that a pattern (or a permission of any words) stands for is in the set.
    #[must_use]
    pub fn covers(&self, wanted: &str) -> bool {
        let by = |patterns: &[String]| patterns.iter().any(|p| includes(p, wanted));
        by(&self.allowed)
            && !self.denied.iter().any(|denied| overlap(denied, wanted))
            && self.scopes.as_deref().is_none_or(by)
    }

    /// The set as patterns that allow, sorted and without duplicates, for whoever cannot be told of denials. Where a denial
    /// takes something out of a pattern, the permissions that are left are named one by one; what is not one of the
    /// suite's own is left out then.
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
        sorted(within.flat_map(|pattern| self.without_denied(pattern)))
    }

    fn without_denied(&self, pattern: String) -> Vec<String> {
        if !self.denied.iter().any(|denied| overlap(denied, &pattern)) {
            return vec![pattern];
        }
        let left = Permission::ALL.iter().filter(|permission| {
            includes(&pattern, permission.as_str()) && self.allows(**permission)
        });
        left.map(ToString::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_star_stands_for_one_whole_part() {
        let readers = PermissionSet::new(["*:read"]);
        assert!(readers.allows(Permission::PlatformRead));
        assert!(!readers.allows(Permission::PlatformUpdate));
        assert!(PermissionSet::new(["platform:*"]).allows(Permission::PlatformManage));
        assert!(!PermissionSet::new(["*", "plat*:read"]).allows(Permission::PlatformRead));
    }

    #[test]
    fn a_pattern_is_two_words_or_stars() {
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
    fn a_pattern_is_covered_only_when_nothing_of_it_is_denied() {
        let set = PermissionSet::new(["*:*"]).denying(["platform:manage"]);
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
        fn the_shown_patterns_allow_exactly_what_the_set_allows(
            allowed in some_patterns(),
            denied in some_patterns(),
            scopes in prop::option::of(some_patterns()),
        ) {
            let mut set = PermissionSet::new(allowed).denying(denied);
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
