//! Decides whether a member has a permission. A valid denial wins over a valid grant, a grant over the role mappings.
//! Otherwise the permission is refused.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Member, Organization, PermissionGrant, RoleMappings};
use crate::kernel::{GrantId, Membership, PermissionSet, Role, Roles, Timestamp, pattern_includes};

/// The rule that decided about a permission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "type", content = "id", rename_all = "camelCase")]
pub enum DecisionRule {
    /// A denial for this member, with its id.
    Denial(GrantId),
    /// A grant to this member, with its id.
    Grant(GrantId),
    /// The mapping of a role of the member, with the role's name.
    Role(Role),
    /// No rule allows the permission, so it is refused.
    Nothing,
}

/// A decision about a permission, with the rule that decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Decision {
    /// Whether the member has the permission.
    pub allowed: bool,
    /// The rule that decided.
    pub rule: DecisionRule,
}

/// Decides whether a member with these roles and grants has a permission. The permission is `resource:action` and need
/// not be one that the suite defines.
#[must_use]
pub fn decide(
    permission: &str,
    roles: &Roles,
    mappings: &RoleMappings,
    grants: &[PermissionGrant],
    now: Timestamp,
) -> Decision {
    let counting = |granted: bool| {
        let counts = move |g: &&PermissionGrant| g.granted == granted && g.is_active(now);
        let mut counting = grants.iter().filter(counts);
        counting.find(|grant| pattern_includes(grant.permission.as_str(), permission))
    };
    let rule = if let Some(denial) = counting(false) {
        DecisionRule::Denial(denial.id.clone())
    } else if let Some(grant) = counting(true) {
        DecisionRule::Grant(grant.id.clone())
    } else {
        let allows = |role: &Role| {
            let patterns = mappings.patterns_of(role);
            patterns
                .iter()
                .any(|pattern| pattern_includes(pattern, permission))
        };
        roles
            .iter()
            .find(allows)
            .map_or(DecisionRule::Nothing, DecisionRule::Role)
    };
    Decision {
        allowed: matches!(rule, DecisionRule::Grant(_) | DecisionRule::Role(_)),
        rule,
    }
}

/// Returns all permissions of a member with these roles and grants. Agrees with [`decide`] for every permission.
#[must_use]
pub fn permissions(
    roles: &Roles,
    mappings: &RoleMappings,
    grants: &[PermissionGrant],
    now: Timestamp,
) -> PermissionSet {
    if mappings.is_empty() && grants.is_empty() {
        return roles.permissions();
    }
    let of = |granted: bool| {
        let counting = grants
            .iter()
            .filter(move |g| g.granted == granted && g.is_active(now));
        counting.map(|grant| grant.permission.as_str().to_owned())
    };
    let mapped = roles.iter().flat_map(|role| mappings.patterns_of(&role));
    PermissionSet::new(mapped.chain(of(true))).without(of(false))
}

/// Returns the membership of a member, with the permissions at the given time.
#[must_use]
pub fn membership(organization: &Organization, member: &Member, now: Timestamp) -> Membership {
    Membership {
        organization_id: organization.id.clone(),
        platform_id: organization.platform_id.clone(),
        permissions: permissions(&member.role, &organization.roles, &member.grants, now),
        roles: member.role.clone(),
        is_operator: organization.operates(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::{MemberId, Permission, PermissionPattern, UserId};
    use crate::testing::SeededEntropy;

    const NOW: i64 = 1_800_000_000;

    #[derive(Clone, Debug)]
    struct GrantSpec {
        pattern: String,
        granted: bool,
        /// Time until the grant expires, in seconds from now; may be negative.
        ends: Option<i64>,
    }

    fn some_pattern() -> impl Strategy<Value = String> {
        let resources = prop::sample::select(vec!["*", "platform", "entity", "job"]);
        let actions = prop::sample::select(vec!["*", "read", "write", "create"]);
        (resources, actions).prop_map(|(resource, action)| format!("{resource}:{action}"))
    }

    fn some_grants() -> impl Strategy<Value = Vec<GrantSpec>> {
        let given = (some_pattern(), any::<bool>(), prop::option::of(-2..3_i64));
        let given = given.prop_map(|(pattern, granted, ends)| GrantSpec {
            pattern,
            granted,
            ends,
        });
        prop::collection::vec(given, 0..5)
    }

    fn some_mappings() -> impl Strategy<Value = Vec<(&'static str, Vec<String>)>> {
        let role = prop::sample::select(vec!["owner", "member", "auditor"]);
        prop::collection::vec((role, prop::collection::vec(some_pattern(), 0..3)), 0..3)
    }

    fn build_grants(given: &[GrantSpec]) -> Vec<PermissionGrant> {
        let entropy = SeededEntropy::new(1);
        let now = Timestamp::from_seconds(NOW);
        let member = MemberId::generate(now, &entropy);
        let grant = |given: &GrantSpec| PermissionGrant {
            id: GrantId::generate_for_member(&member, now, &entropy).unwrap(),
            permission: PermissionPattern::parse(&given.pattern).unwrap(),
            granted: given.granted,
            granted_by: UserId::parse("ada").unwrap(),
            expires_at: given.ends.map(|ends| Timestamp::from_seconds(NOW + ends)),
            created_at: now,
        };
        given.iter().map(grant).collect()
    }

    /// A direct implementation of the rules, as the expected result.
    fn naive(
        permission: &str,
        roles: &[&str],
        mapped: &[(&str, Vec<String>)],
        given: &[GrantSpec],
    ) -> bool {
        let fits = |pattern: &str| {
            let pattern: Vec<&str> = pattern.split(':').collect();
            let wanted: Vec<&str> = permission.split(':').collect();
            (0..2).all(|part| pattern[part] == "*" || pattern[part] == wanted[part])
        };
        let mut granted = false;
        for grant in given {
            let expired = grant.ends.is_some_and(|ends| ends <= 0);
            if expired || !fits(&grant.pattern) {
                continue;
            }
            if !grant.granted {
                return false;
            }
            granted = true;
        }
        granted
            || roles.iter().any(
                |role| match mapped.iter().rev().find(|(name, _)| name == role) {
                    Some((_, patterns)) => patterns.iter().any(|pattern| fits(pattern)),
                    None => {
                        let built_in = Role::parse(role).unwrap().permissions().patterns();
                        built_in.iter().any(|pattern| fits(pattern))
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn denials_win_over_grants_over_roles_and_expired_grants_are_ignored(
            roles in prop::sample::subsequence(vec!["owner", "member", "auditor"], 1..=3),
            mapped in some_mappings(),
            given in some_grants(),
        ) {
            let now = Timestamp::from_seconds(NOW);
            let member = Roles::parse(&roles.join(",")).unwrap();
            let mut mappings = RoleMappings::default();
            for (role, patterns) in &mapped {
                let patterns = patterns.iter().map(|p| PermissionPattern::parse(p).unwrap());
                mappings.set(Role::parse(role).unwrap(), patterns.collect());
            }
            let grants = build_grants(&given);
            let everything = permissions(&member, &mappings, &grants, now);
            for permission in Permission::ALL.iter().map(|p| p.as_str()).chain(["report:print"]) {
                let decision = decide(permission, &member, &mappings, &grants, now);
                let expected = naive(permission, &roles, &mapped, &given);
                prop_assert_eq!(decision.allowed, expected, "{}", permission);
                prop_assert_eq!(everything.covers(permission), expected, "{}", permission);
            }
        }
    }

    #[test]
    fn decision_names_the_rule_that_decided() {
        let spec = |pattern: &str, granted| GrantSpec {
            pattern: pattern.to_owned(),
            granted,
            ends: None,
        };
        let now = Timestamp::from_seconds(NOW);
        let grants = build_grants(&[spec("job:create", true), spec("job:read", false)]);
        let rule = |permission| {
            decide(
                permission,
                &Role::MEMBER.into(),
                &RoleMappings::default(),
                &grants,
                now,
            )
            .rule
        };
        assert_eq!(
            rule("job:create"),
            DecisionRule::Grant(grants[0].id.clone())
        );
        assert_eq!(rule("job:read"), DecisionRule::Denial(grants[1].id.clone()));
        assert_eq!(rule("entity:read"), DecisionRule::Role(Role::MEMBER));
        assert_eq!(rule("entity:write"), DecisionRule::Nothing);
    }

    #[test]
    fn grant_id_contains_the_member_id() {
        let entropy = SeededEntropy::new(1);
        let now = Timestamp::from_seconds(NOW);
        let member = MemberId::generate(now, &entropy);
        let grant = GrantId::generate_for_member(&member, now, &entropy).unwrap();
        assert_eq!(grant.member(), Some(member));
        assert_eq!(GrantId::parse("made-up").unwrap().member(), None);
    }
}
