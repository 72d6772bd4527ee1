//! What a caller is allowed: patterns of `resource:action`, with `*` for either part.

use super::Permission;
use super::text::TextError;
use super::text::text;

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
