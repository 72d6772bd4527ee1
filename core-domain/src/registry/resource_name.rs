//! Deterministic names of a platform's objects at the provider.

use sha2::{Digest, Sha256};

use super::{FeatureId, ResourceType};
use crate::kernel::{EntityId, Environment, PlatformId, Slug, StackId, hex};

/// The resources that a platform has in an environment, with type and purpose, in the order of their creation.
pub const DEFAULT_RESOURCES: [(ResourceType, &str); 6] = [
    (ResourceType::D1, "db"),
    (ResourceType::Kv, "cache"),
    (ResourceType::R2, "assets"),
    (ResourceType::Queue, "events"),
    (ResourceType::Worker, "api"),
    (ResourceType::Pages, "site"),
];

/// Maximum number of characters of the slug in a name.
const MAX_SLUG_CHARS: usize = 24;

/// Maximum number of characters of the slug, and of the object's own name, in the name of a stack's object.
const STACK_SLUG_PART: usize = 16;
const STACK_NAME_PART: usize = 10;

/// Number of hexadecimal digits that identify a platform, and a feature, in a name.
const PLATFORM_DIGITS: usize = 8;
const FEATURE_DIGITS: usize = 24;

/// Returns the purpose of a platform's resource of this type.
#[must_use]
pub fn purpose_of(resource_type: ResourceType) -> &'static str {
    DEFAULT_RESOURCES
        .iter()
        .find(|(of, _)| *of == resource_type)
        .map_or("", |(_, purpose)| purpose)
}

/// Returns the name of a platform's resource: `{slug}-{8 hex digits of the platform}-{environment}-{purpose}`. The
/// provider always accepts it (see [`is_provider_name`]). Different platforms have different names, whatever their
/// slugs.
#[must_use]
pub fn resource_name(
    platform: &PlatformId,
    slug: &Slug,
    environment: Environment,
    resource_type: ResourceType,
) -> String {
    name_for(platform, slug, environment, purpose_of(resource_type))
}

/// The purpose of the auth worker, which identifies the users behind requests to the platform.
pub const AUTH: &str = "auth";

/// Returns the name of the platform's auth worker, in the form of [`resource_name`].
#[must_use]
pub fn auth_worker_name(platform: &PlatformId, slug: &Slug, environment: Environment) -> String {
    name_for(platform, slug, environment, AUTH)
}

fn name_for(platform: &PlatformId, slug: &Slug, environment: Environment, purpose: &str) -> String {
    let digest = digest_of(platform);
    let slug = to_name_part(slug.as_str(), MAX_SLUG_CHARS);
    format!("{slug}-{digest}-{environment}-{purpose}")
}

/// Returns the 8 hexadecimal digits that all names of a platform's objects contain.
fn digest_of(platform: &PlatformId) -> String {
    hex(&Sha256::digest(platform.as_str().as_bytes())[..PLATFORM_DIGITS / 2])
}

/// Returns whether a name was derived for this platform. An object with such a name belongs to the platform, where a
/// provider does not store the owner. Callers cannot choose the digits of a platform.
#[must_use]
pub fn is_name_of_platform(name: &str, platform: &PlatformId) -> bool {
    let digest = digest_of(platform);
    is_provider_name(name) && name.split('-').skip(1).any(|part| part == digest)
}

/// The owner for which the name of an object at the provider was derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameOwner {
    /// The platform: one of [`DEFAULT_RESOURCES`] in an environment, or the auth worker.
    Platform,
    /// A workspace stack of the platform.
    Stack,
    /// An object of another platform.
    OtherPlatform,
    /// A feature. The name does not show the platform of the feature.
    Feature,
}

/// Returns the owner for which a name was derived, as seen from a platform. `None` if jobs never derive names of this
/// form.
///
/// Only the last digits before an environment count. A slug that imitates the name of another platform has no effect.
#[must_use]
pub fn name_holder(name: &str, platform: &PlatformId) -> Option<NameOwner> {
    let (digits, purpose) = match parse_derived_name(name)? {
        DerivedName::Feature { .. } => return Some(NameOwner::Feature),
        DerivedName::Platform {
            digits, purpose, ..
        } => (digits, purpose),
    };
    if digits != digest_of(platform) {
        return Some(NameOwner::OtherPlatform);
    }
    let is_own = purpose == AUTH || DEFAULT_RESOURCES.iter().any(|(_, p)| *p == purpose);
    Some(if is_own {
        NameOwner::Platform
    } else {
        NameOwner::Stack
    })
}

/// Returns the environment in a derived name. `None` if jobs never derive names of this form.
#[must_use]
pub fn environment_in(name: &str) -> Option<Environment> {
    match parse_derived_name(name)? {
        DerivedName::Feature { environment } | DerivedName::Platform { environment, .. } => {
            Some(environment)
        }
    }
}

/// The parts of a name that a job derived for an object at the provider.
enum DerivedName<'n> {
    Platform {
        digits: &'n str,
        environment: Environment,
        /// The part after the environment: the purpose of an object of the platform itself, or the name of an object of
        /// a stack.
        purpose: &'n str,
    },
    Feature {
        environment: Environment,
    },
}

fn parse_derived_name(name: &str) -> Option<DerivedName<'_>> {
    let dashes: Vec<usize> = name.match_indices('-').map(|(at, _)| at).collect();
    let part = |at: usize| {
        let end = dashes.get(at + 1).copied().unwrap_or(name.len());
        &name[dashes[at] + 1..end]
    };
    let environment = |at: usize| {
        let mut all = Environment::ALL.iter().copied();
        all.find(|environment| environment.as_str() == part(at))
    };
    let places = (1..dashes.len()).rev();
    for at in places {
        let (digits, Some(environment)) = (part(at - 1), environment(at)) else {
            continue;
        };
        let rest = dashes.get(at + 1).map(|dash| &name[dash + 1..]);
        match rest {
            Some(purpose) if is_digest(digits, PLATFORM_DIGITS) && !purpose.is_empty() => {
                return Some(DerivedName::Platform {
                    digits,
                    environment,
                    purpose,
                });
            }
            None if is_digest(digits, FEATURE_DIGITS) => {
                return Some(DerivedName::Feature { environment });
            }
            _ => {}
        }
    }
    None
}

fn is_digest(part: &str, digits: usize) -> bool {
    let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    part.len() == digits && part.bytes().all(is_digit)
}

/// Returns the name of the worker of an entity's feature:
/// `{slug}-{24 hex digits of platform, entity and feature}-{environment}`. The provider always accepts it. Different
/// features have different names, which also differ from all names of [`resource_name`].
#[must_use]
pub fn feature_worker_name(
    platform: &PlatformId,
    slug: &Slug,
    entity: &EntityId,
    feature: &FeatureId,
    environment: Environment,
) -> String {
    // None of the three contains a line break.
    let digest = Sha256::digest(format!("{platform}\n{entity}\n{feature}"));
    let slug = to_name_part(slug.as_str(), MAX_SLUG_CHARS);
    let digest = hex(&digest[..FEATURE_DIGITS / 2]);
    format!("{slug}-{digest}-{environment}")
}

/// Returns the name of an object of a workspace stack:
/// `{slug}-{8 hex digits of the platform}-{environment}-{name}-{16 hex digits of stack and key}`. The provider always
/// accepts it.
///
/// `name` is the object's name in the stack; `key` distinguishes it from the stack's other objects. Objects of
/// different stacks have different names, even if the stacks have the same template.
#[must_use]
pub fn stack_resource_name(
    platform: &PlatformId,
    slug: &Slug,
    environment: Environment,
    stack: &StackId,
    name: &str,
    key: &str,
) -> String {
    let slug = to_name_part(slug.as_str(), STACK_SLUG_PART);
    let (digest, name) = (digest_of(platform), to_name_part(name, STACK_NAME_PART));
    let of_stack = hex(&Sha256::digest(format!("{stack}\n{key}"))[..8]);
    format!("{slug}-{digest}-{environment}-{name}-{of_stack}")
}

/// Returns the text in a form that fits into a name. It starts with a letter, has no two dashes in a row and none at
/// the end, and has at most `length` characters.
fn to_name_part(text: &str, length: usize) -> String {
    let mut spelled = String::new();
    if !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        spelled.push('p');
    }
    for c in text.chars() {
        if spelled.len() == length {
            break;
        }
        if c != '-' || !spelled.ends_with('-') {
            spelled.push(c);
        }
    }
    spelled.trim_end_matches('-').to_owned()
}

/// Returns whether the provider accepts a name: `^[a-z][a-z0-9-]{1,56}[a-z0-9]$`.
#[must_use]
pub fn is_provider_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    (3..=58).contains(&bytes.len())
        && first.is_ascii_lowercase()
        && plain(*last)
        && bytes.iter().all(|b| plain(*b) || *b == b'-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_contains_slug_platform_environment_and_purpose() {
        let platform = PlatformId::parse("p1").unwrap();
        let slug = Slug::parse("engines").unwrap();
        let name = resource_name(&platform, &slug, Environment::Prod, ResourceType::D1);
        assert_eq!(name, "engines-f64551fc-prod-db");
    }

    #[test]
    fn names_of_other_forms_have_no_holder() {
        let platform = PlatformId::parse("p1").unwrap();
        for name in [
            "",
            "-",
            "engines-db",
            "f64551fc-prod-db",
            "engines-f64551fc-prod",
            "engines-f64551fc-db",
            "engines-F64551FC-prod-db",
            "engines db",
            "engines-prod",
            "0123456789abcdef01234567-prod",
        ] {
            assert_eq!(name_holder(name, &platform), None, "{name}");
        }
    }

    #[test]
    fn different_features_have_different_worker_names() {
        let name = |platform, slug, entity, feature, environment| {
            let (platform, slug) = (
                PlatformId::parse(platform).unwrap(),
                Slug::parse(slug).unwrap(),
            );
            let (entity, feature) = (
                EntityId::parse(entity).unwrap(),
                FeatureId::parse(feature).unwrap(),
            );
            feature_worker_name(&platform, &slug, &entity, &feature, environment)
        };
        let longest = "a-slug-as-long-as-names-show-of-it";
        let names = [
            name("p1", longest, "e1", "search", Environment::Prod),
            name("p2", longest, "e1", "search", Environment::Prod),
            name("p1", longest, "e2", "search", Environment::Prod),
            name("p1", longest, "e1", "Search", Environment::Prod),
            name("p1", longest, "e1", "@core/search é", Environment::Prod),
            name("p1", longest, "e1", "search", Environment::Stg),
            name("p1", "-", "e1", "search", Environment::Prod),
        ];
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len());
        assert!(names.iter().all(|name| is_provider_name(name)), "{names:?}");
    }

    proptest! {
        #[test]
        fn the_provider_accepts_every_resource_name(slug in "[a-z0-9-]{1,63}", platform in "[a-z0-9]{1,36}") {
            let (platform, slug) = (PlatformId::parse(&platform).unwrap_or_else(|| PlatformId::parse("p").unwrap()), Slug::parse(&slug).unwrap());
            for environment in Environment::ALL {
                for (resource_type, _) in DEFAULT_RESOURCES {
                    let name = resource_name(&platform, &slug, *environment, resource_type);
                    prop_assert!(is_provider_name(&name), "{}", name);
                    prop_assert!(!name.contains("--"));
                }
            }
        }

        #[test]
        fn names_of_stack_objects_are_accepted_and_contain_the_platform(
            slug in "[a-z0-9-]{1,63}", name in "[a-z]([a-z0-9-]{0,42}[a-z0-9])?", environment in prop::sample::select(Environment::ALL),
        ) {
            let (platform, slug) = (PlatformId::parse("p1").unwrap(), Slug::parse(&slug).unwrap());
            let of = |stack, key| stack_resource_name(&platform, &slug, environment, &StackId::parse(stack).unwrap(), &name, key);
            let names = [of("s1", "a"), of("s1", "b"), of("s2", "a")];
            prop_assert!(names.iter().all(|name| is_provider_name(name) && is_name_of_platform(name, &platform)), "{:?}", names);
            prop_assert!(names[0] != names[1] && names[0] != names[2]);
        }

        #[test]
        fn every_name_that_a_job_derives_is_reserved_for_its_holder(
            slug in "[a-z0-9-]{1,63}", name in "[a-z]([a-z0-9-]{0,42}[a-z0-9])?", environment in prop::sample::select(Environment::ALL),
            resource_type in prop::sample::select(DEFAULT_RESOURCES.to_vec()),
        ) {
            let (own, other) = (PlatformId::parse("p1").unwrap(), PlatformId::parse("p2").unwrap());
            let slug = Slug::parse(&slug).unwrap();
            let (entity, feature) = (EntityId::parse("e1").unwrap(), FeatureId::parse(&name).unwrap());
            let of_stack = stack_resource_name(&own, &slug, environment, &StackId::parse("s1").unwrap(), &name, "key");
            for (derived, holder) in [
                (resource_name(&own, &slug, environment, resource_type.0), NameOwner::Platform),
                (auth_worker_name(&own, &slug, environment), NameOwner::Platform),
                (of_stack, NameOwner::Stack),
            ] {
                prop_assert_eq!(name_holder(&derived, &own), Some(holder), "{}", derived);
                prop_assert_eq!(name_holder(&derived, &other), Some(NameOwner::OtherPlatform), "{}", derived);
            }
            let of_feature = feature_worker_name(&own, &slug, &entity, &feature, environment);
            prop_assert_eq!(name_holder(&of_feature, &own), Some(NameOwner::Feature), "{}", of_feature);
        }
    }
}
