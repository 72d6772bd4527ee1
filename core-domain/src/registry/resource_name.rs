//! Deterministic names of what a platform is given at the provider.

use sha2::{Digest, Sha256};

use super::{FeatureId, ResourceType};
use crate::kernel::{EntityId, Environment, PlatformId, Slug, StackId, hex};

/// What a platform is given in an environment, in the order it is made: type and purpose.
pub const DEFAULT_RESOURCES: [(ResourceType, &str); 6] = [
    (ResourceType::D1, "db"),
    (ResourceType::Kv, "cache"),
    (ResourceType::R2, "assets"),
    (ResourceType::Queue, "events"),
    (ResourceType::Worker, "api"),
    (ResourceType::Pages, "site"),
];

/// How much of the slug a name shows.
const SLUG_PART: usize = 24;

/// How much of the slug and of what it is called the name of a stack's object shows.
const STACK_SLUG_PART: usize = 16;
const STACK_NAME_PART: usize = 10;

/// What a resource of this type is there for on a platform.
#[must_use]
pub fn purpose_of(resource_type: ResourceType) -> &'static str {
    DEFAULT_RESOURCES
        .iter()
        .find(|(of, _)| *of == resource_type)
        .map_or("", |(_, purpose)| purpose)
}

/// The name of a platform's resource: `{slug}-{8 hex digits of the platform}-{environment}-{purpose}`, always one the
/// provider takes (see [`is_provider_name`]). Different platforms have different names whatever their slugs.
#[must_use]
pub fn resource_name(
    platform: &PlatformId,
    slug: &Slug,
    environment: Environment,
    resource_type: ResourceType,
) -> String {
    name_for(platform, slug, environment, purpose_of(resource_type))
}

/// What the worker is there for that says who requests of the platform's users come from.
pub const AUTH: &str = "auth";

/// As [`resource_name`], of the platform's auth worker.
#[must_use]
pub fn auth_worker_name(platform: &PlatformId, slug: &Slug, environment: Environment) -> String {
    name_for(platform, slug, environment, AUTH)
}

fn name_for(platform: &PlatformId, slug: &Slug, environment: Environment, purpose: &str) -> String {
    let digest = digest_of(platform);
    let slug = spelled(slug.as_str(), SLUG_PART);
    format!("{slug}-{digest}-{environment}-{purpose}")
}

/// What the names of a platform's objects have in common: 8 hex digits.
fn digest_of(platform: &PlatformId) -> String {
    hex(&Sha256::digest(platform.as_str().as_bytes())[..4])
}

/// Tells whether a name is one that was derived for this platform: whatever bears it is the platform's, where a provider
/// keeps no mark of the owner. People cannot choose the digits of a platform.
#[must_use]
pub fn bears_platform(name: &str, platform: &PlatformId) -> bool {
    let digest = digest_of(platform);
    is_provider_name(name) && name.split('-').skip(1).any(|part| part == digest)
}

/// The name of the worker of an entity's feature: `{slug}-{24 hex digits of platform, entity and feature}-{environment}`,
/// always one the provider takes. Different features have different names, and none that [`resource_name`] gives.
#[must_use]
pub fn feature_worker_name(
    platform: &PlatformId,
    slug: &Slug,
    entity: &EntityId,
    feature: &FeatureId,
    environment: Environment,
) -> String {
    // None of the three has a line end.
    let digest = Sha256::digest(format!("{platform}\n{entity}\n{feature}"));
    let slug = spelled(slug.as_str(), SLUG_PART);
    format!("{slug}-{}-{environment}", hex(&digest[..12]))
}

/// The name of an object of a workspace stack, which is called `name` in it and told from its others by `key`:
/// `{slug}-{8 hex digits of the platform}-{environment}-{name}-{16 hex digits of stack and key}`, always one the provider
/// takes. The objects of a stack have other names than those of any other one, of the same template too.
#[must_use]
pub fn stack_resource_name(
    platform: &PlatformId,
    slug: &Slug,
    environment: Environment,
    stack: &StackId,
    (name, key): (&str, &str),
) -> String {
    let slug = spelled(slug.as_str(), STACK_SLUG_PART);
    let (digest, name) = (digest_of(platform), spelled(name, STACK_NAME_PART));
    let of_stack = hex(&Sha256::digest(format!("{stack}\n{key}"))[..8]);
    format!("{slug}-{digest}-{environment}-{name}-{of_stack}")
}

/// The text with a letter in front, no two dashes in a row, none at the end, and at most `length` characters.
fn spelled(text: &str, length: usize) -> String {
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

/// Tells whether the provider takes a name: `^[a-z][a-z0-9-]{1,56}[a-z0-9]$`.
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
    fn a_name_shows_slug_platform_environment_and_purpose() {
        let platform = PlatformId::parse("p1").unwrap();
        let slug = Slug::parse("engines").unwrap();
        let name = resource_name(&platform, &slug, Environment::Prod, ResourceType::D1);
        assert_eq!(name, "engines-f64551fc-prod-db");
    }

    #[test]
    fn features_that_differ_in_anything_have_workers_of_different_names() {
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
        fn every_name_is_one_the_provider_takes(slug in "[a-z0-9-]{1,63}", platform in "[a-z0-9]{1,36}") {
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
        fn the_objects_of_a_stack_have_names_the_provider_takes_and_that_bear_the_platform(
            slug in "[a-z0-9-]{1,63}", name in "[a-z]([a-z0-9-]{0,42}[a-z0-9])?", environment in prop::sample::select(Environment::ALL),
        ) {
            let (platform, slug) = (PlatformId::parse("p1").unwrap(), Slug::parse(&slug).unwrap());
            let of = |stack, key| stack_resource_name(&platform, &slug, environment, &StackId::parse(stack).unwrap(), (&name, key));
            let names = [of("s1", "a"), of("s1", "b"), of("s2", "a")];
            prop_assert!(names.iter().all(|name| is_provider_name(name) && bears_platform(name, &platform)), "{:?}", names);
            prop_assert!(names[0] != names[1] && names[0] != names[2]);
        }
    }
}
