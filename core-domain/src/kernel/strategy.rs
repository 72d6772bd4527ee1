//! Strategies for proptest. Values and commands are generated from the schema that documentation and validation use,
//! records from the types of their fields. The generated values are therefore valid, and no field is listed a second
//! time.

use proptest::arbitrary::{Arbitrary, any};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy};
use proptest::sample::select;
use proptest::strategy::{BoxedStrategy, Union, ValueTree};
use proptest::string::string_regex;
use proptest::test_runner::TestRunner;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::JsonText;
use super::sample::{Fields, sample_of};

/// The pattern of instants in the years 2020 to 2035.
const INSTANT: &str = "20(2[0-9]|3[0-5])-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3])(:[0-5][0-9]){2}\\.[0-9]{3}Z";

/// Maximum number of characters of a text beyond its minimum, if the schema has no maximum.
const LENGTH: u64 = 40;
/// The number of entries of a generated list or map is below its minimum plus this number.
const ENTRIES: usize = 4;

/// Returns a strategy for a type with a schema: a command, a validated text or a fixed set of words. Optional fields
/// are absent in half of the cases. Rules that span several fields are not part of the schema, so a generated command
/// can break them.
///
/// ```
/// use core_domain::registry::CreateEntity;
/// use core_domain::testing::strategies::from_schema;
/// use proptest::prelude::*;
///
/// proptest!(|(command in from_schema::<CreateEntity>())| {
///     prop_assert!(command.slug.as_str().len() <= 63);
/// });
/// ```
pub fn from_schema<T: JsonSchema + DeserializeOwned + std::fmt::Debug>() -> BoxedStrategy<T> {
    json_of(&schema_of::<T>())
        .prop_filter_map("not a value of the type", |value| {
            serde_json::from_value(value).ok()
        })
        .boxed()
}

/// Returns a strategy for arbitrary JSON, at most two levels deep.
pub fn json() -> impl Strategy<Value = Value> {
    let leaf = proptest::prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        count().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 12, 3, |inner| {
        proptest::prop_oneof![
            vec(inner.clone(), 0..=3).prop_map(Value::Array),
            vec(("[a-z]{1,8}", inner), 0..=3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Returns a strategy for JSON that a schema allows. For a text whose pattern has no strategy, it returns the example
/// of the schema.
pub fn json_of(schema: &Value) -> BoxedStrategy<Value> {
    for choice in ["anyOf", "oneOf"] {
        if let Some(branches) = list(schema, choice) {
            return Union::new(branches.iter().map(json_of)).boxed();
        }
    }
    if let Some(constant) = schema.get("const") {
        return Just(constant.clone()).boxed();
    }
    if let Some(words) = list(schema, "enum") {
        return select(words.clone()).boxed();
    }
    match schema.get("type") {
        Some(Value::String(kind)) => of_kind(kind, schema),
        Some(Value::Array(kinds)) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            Union::new(kinds.map(|kind| of_kind(kind, schema))).boxed()
        }
        _ => json().boxed(),
    }
}

/// Returns a fixed sample of values: every call returns the same ones. For tests that need a few values and no property
/// test.
///
/// # Panics
/// Panics if the strategy rejects too many values.
#[must_use]
#[expect(
    clippy::panic,
    reason = "a strategy without values is a mistake of a test"
)]
pub fn fixed_sample<T: Arbitrary>(count: usize) -> Vec<T> {
    let (strategy, mut runner) = (T::arbitrary(), TestRunner::deterministic());
    let trees = std::iter::repeat_with(|| strategy.new_tree(&mut runner));
    let values = trees.map(|tree| match tree {
        Ok(tree) => tree.current(),
        Err(reason) => panic!("no value: {reason}"),
    });
    values.take(count).collect()
}

/// Returns a strategy for numbers that count something: attempts, positions, versions.
pub(crate) fn count() -> impl Strategy<Value = i64> + Clone {
    0..100_000_i64
}

/// Returns a strategy for an optional count.
pub(crate) fn opt_count() -> impl Strategy<Value = Option<i64>> {
    proptest::option::of(count())
}

/// Returns a strategy for optional JSON.
pub(crate) fn opt_json() -> impl Strategy<Value = Option<Value>> {
    proptest::option::of(json())
}

/// Returns a strategy for JSON that is stored as text.
pub(crate) fn json_text() -> impl Strategy<Value = JsonText> {
    json().prop_map(|value| JsonText::of(&value))
}

/// Returns a strategy for optional JSON that is stored as text.
pub(crate) fn opt_json_text() -> impl Strategy<Value = Option<JsonText>> {
    proptest::option::of(json_text())
}

/// Returns a strategy for a short list.
pub(crate) fn few<T: Arbitrary + 'static>() -> BoxedStrategy<Vec<T>> {
    vec(any::<T>(), 0..ENTRIES).boxed()
}

/// Returns a strategy for an optional short list.
pub(crate) fn opt_few<T: Arbitrary + 'static>() -> impl Strategy<Value = Option<Vec<T>>> {
    proptest::option::of(few())
}

/// Returns a strategy for a short map.
pub(crate) fn few_entries<K: Arbitrary + Ord + 'static, V: Arbitrary + 'static>()
-> BoxedStrategy<std::collections::BTreeMap<K, Vec<V>>> {
    let entry = (any::<K>(), few::<V>());
    vec(entry, 0..ENTRIES)
        .prop_map(|entries| entries.into_iter().collect())
        .boxed()
}

fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .for_deserialize()
        .with(|settings| settings.inline_subschemas = true);
    let generator = SchemaGenerator::from(settings);
    generator.into_root_schema_for::<T>().to_value()
}

fn list<'a>(schema: &'a Value, key: &str) -> Option<&'a Vec<Value>> {
    schema.get(key)?.as_array()
}

fn of_kind(kind: &str, schema: &Value) -> BoxedStrategy<Value> {
    match kind {
        "null" => Just(Value::Null).boxed(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "integer" | "number" => {
            let bound = |key: &str| schema.get(key).and_then(Value::as_i64);
            let least = bound("minimum").unwrap_or(0);
            let most = bound("maximum").unwrap_or_else(|| least.saturating_add(100_000));
            (least..=most).prop_map(Value::from).boxed()
        }
        "string" => text(schema),
        "array" => {
            let items = schema.get("items").unwrap_or(&Value::Null);
            let least = schema.get("minItems").and_then(Value::as_u64);
            let least = least.map_or(0, |least| usize::try_from(least).unwrap_or(ENTRIES));
            vec(json_of(items), least..least + ENTRIES)
                .prop_map(Value::from)
                .boxed()
        }
        _ => object(schema),
    }
}

fn object(schema: &Value) -> BoxedStrategy<Value> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        // `true` or an absent `additionalProperties` allows any value.
        let described = schema
            .get("additionalProperties")
            .map_or_else(|| json().boxed(), json_of);
        let fields = vec(("[a-z]{1,8}", described), 0..ENTRIES);
        return fields
            .prop_map(|fields| Value::Object(fields.into_iter().collect()))
            .boxed();
    };
    let required = list(schema, "required");
    let fields = properties.iter().map(|(name, property)| {
        let is_required = required.is_some_and(|names| names.iter().any(|known| known == name));
        let value = json_of(property).prop_map(Some);
        let value = if is_required {
            value.boxed()
        } else {
            proptest::prop_oneof![Just(None), value].boxed()
        };
        (Just(name.clone()), value)
    });
    let fields: Vec<_> = fields.collect();
    fields
        .prop_map(|fields| {
            let given = |(name, value): (String, Option<Value>)| Some((name, value?));
            Value::Object(fields.into_iter().filter_map(given).collect())
        })
        .boxed()
}

fn text(schema: &Value) -> BoxedStrategy<Value> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
    let least = bound("minLength").unwrap_or(0);
    let most = bound("maxLength").unwrap_or(least + LENGTH);
    let word = |key: &str| schema.get(key).and_then(Value::as_str);
    let pattern = match (word("pattern"), word("format")) {
        (Some(pattern), _) => of_length(pattern, least, most),
        (None, Some("date-time")) => INSTANT.to_owned(),
        (None, Some("email")) => {
            "[a-z0-9][a-z0-9_+]{0,12}@[a-z0-9]{1,12}\\.(org|example)".to_owned()
        }
        (None, Some("idn-hostname")) => {
            "(\\*\\.)?[a-zäöü0-9]{1,12}\\.[a-z]{1,12}\\.example".to_owned()
        }
        (None, Some("uri")) => "https://[a-z]{1,12}\\.example(/[a-z0-9]{1,8}){0,3}".to_owned(),
        (None, _) => format!("\\PC{{{least},{most}}}"),
    };
    let Ok(texts) = string_regex(&pattern) else {
        return Just(sample_of(schema, &Map::new(), Fields::All)).boxed();
    };
    texts
        .prop_filter("too short or too long", move |text| {
            (least..=most).contains(&(text.chars().count() as u64))
        })
        .prop_map(Value::from)
        .boxed()
}

/// Returns the pattern with the length limits in it if it consists of one character class. The shortest and the longest
/// texts are then generated often enough.
fn of_length(pattern: &str, least: u64, most: u64) -> String {
    let class = pattern.strip_prefix('^').and_then(|rest| {
        let rest = rest
            .strip_suffix("+$")
            .or_else(|| rest.strip_suffix("*$"))?;
        let is_class = rest.starts_with('[') && rest.matches(['[', ']']).count() == 2;
        is_class.then_some(rest)
    });
    class.map_or_else(
        || pattern.to_owned(),
        |class| format!("{class}{{{least},{most}}}"),
    )
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq};
    use proptest::proptest;
    use serde_json::json;

    use crate::iam::{Bootstrap, SetUpOrganization};
    use crate::kernel::{
        DeletedFilter, Line, ListQuery, Name, NoFilter, Record, TextValue, for_each_record,
    };
    use crate::registry::{
        CreateCustomDomain, CreateDeployment, CreateDnsRecord, CreateEntity, CreatePlatform,
        CreateResource, CreateWorkspaceStack, DeleteEntity, DeploymentChange, DeploymentFilter,
        EntityFilter, SetConfig, StartOnboarding, UpdateCustomDomain, UpdateEntity, UpdatePlatform,
        UpdateResource,
    };
    use crate::shared::{
        AuditFilter, CreateWebhook, PlatformAuditFilter, UpdateWebhook, WebhookDeliveryFilter,
    };
    use crate::stacks::{CreateTemplate, PublishVersion, UpdateTemplate};
    use crate::testing::cases;
    use crate::use_case::registry::provision::{DeprovisionCommand, ProvisionCommand};

    use super::*;

    /// Checks that the generated values differ, match the schema, and can be deserialized.
    fn check_command<T: JsonSchema + DeserializeOwned + Debug + PartialEq>() {
        let schema = schema_of::<T>();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let values = json_of(&schema);
        proptest!(ProptestConfig::with_cases(cases(50)), |(value in values)| {
            prop_assert!(validator.is_valid(&value), "{value}: {schema}");
            prop_assert!(serde_json::from_value::<T>(value.clone()).is_ok(), "{value}: {schema}");
        });
        let mut runner = TestRunner::deterministic();
        let commands = from_schema::<T>();
        let mut made = || commands.new_tree(&mut runner).unwrap().current();
        let first = made();
        assert!((0..50).any(|_| made() != first), "{first:?} alone");
    }

    macro_rules! check_commands {
    ($($command:ty),+ $(,)?) => { $(check_command::<$command>();)+ };
}

    #[test]
    fn generated_commands_match_their_schema_and_deserialize() {
        check_commands!(
            Bootstrap,
            SetUpOrganization,
            CreatePlatform,
            UpdatePlatform,
            CreateEntity,
            UpdateEntity,
            DeleteEntity,
            CreateResource,
            UpdateResource,
            CreateWorkspaceStack,
            SetConfig,
            CreateDeployment,
            DeploymentChange,
            DeploymentFilter,
            CreateDnsRecord,
            CreateCustomDomain,
            UpdateCustomDomain,
            StartOnboarding,
            ProvisionCommand,
            DeprovisionCommand,
            CreateTemplate,
            UpdateTemplate,
            PublishVersion,
            CreateWebhook,
            UpdateWebhook,
            WebhookDeliveryFilter,
            EntityFilter,
            AuditFilter,
            PlatformAuditFilter,
            DeletedFilter,
            ListQuery<NoFilter>,
        );
    }

    #[test]
    fn generated_maps_contain_the_values_that_the_schema_describes() {
        let schema = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        proptest!(|(map in json_of(&schema))| {
            let map = map.as_object().unwrap();
            prop_assert!(map.values().all(|value| value.is_string()), "{map:?}");
        });
    }

    fn check_record<R: Record + Arbitrary>() {
        let made = fixed_sample::<R>(20);
        assert_eq!(
            made,
            fixed_sample::<R>(20),
            "every call returns the same records"
        );
        assert!(made.iter().all(|record| !record.key().is_empty()));
        let others = made.iter().filter(|record| **record != made[0]);
        assert!(others.count() > 10, "{} do not differ", R::KIND);
    }

    macro_rules! check_records {
    ($($accessor:ident: $record:ty $(, $id:ident $doc:literal)?;)+) => {
        #[test]
        fn every_record_has_a_strategy_and_samples() {
            $(check_record::<$record>();)+
        }

        proptest! {
            #[test]
            fn every_id_parses_from_its_text_form($($($accessor in any::<crate::kernel::$id>(),)?)+) {
                $($(
                    let text = $accessor.as_text();
                    prop_assert_eq!(crate::kernel::$id::from_text(text), Some($accessor.clone()));
                )?)+
            }
        }
    };
}
    for_each_record!(check_records);

    /// Checks that a serialized record matches its schema.
    fn check_serialized<R: Record + Arbitrary + JsonSchema + serde::Serialize>() {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        let schema = SchemaGenerator::from(settings).into_root_schema_for::<R>();
        let validator = jsonschema::validator_for(&schema.to_value()).unwrap();
        proptest!(ProptestConfig::with_cases(cases(50)), |(record in any::<R>())| {
            let shown = serde_json::to_value(&record).unwrap();
            prop_assert!(validator.is_valid(&shown), "{shown}");
        });
    }

    #[test]
    fn every_record_serializes_according_to_its_schema() {
        check_serialized::<crate::shared::AuditEntry>();
        check_serialized::<crate::shared::Webhook>();
        check_serialized::<crate::shared::WebhookDelivery>();
        check_serialized::<crate::shared::AuditCheckpoint>();
        check_serialized::<crate::iam::User>();
        check_serialized::<crate::iam::Session>();
        check_serialized::<crate::iam::Organization>();
        check_serialized::<crate::provisioning::Job>();
        check_serialized::<crate::registry::Platform>();
        check_serialized::<crate::registry::LifecycleRecord>();
        check_serialized::<crate::registry::Entity>();
        check_serialized::<crate::registry::Resource>();
        check_serialized::<crate::registry::DnsRecord>();
        check_serialized::<crate::registry::CustomDomain>();
        check_serialized::<crate::registry::Deployment>();
        check_serialized::<crate::registry::WorkspaceStack>();
        check_serialized::<crate::registry::PlatformConfig>();
        check_serialized::<crate::registry::ConfigVersion>();
        check_serialized::<crate::stacks::StackTemplate>();
        check_serialized::<crate::stacks::StackVersion>();
    }

    #[test]
    fn the_shortest_and_the_longest_texts_are_generated() {
        let lengths = |texts: Vec<Line<0, 3>>| {
            let lengths = texts.iter().map(|text| text.as_str().chars().count());
            lengths.collect::<std::collections::BTreeSet<_>>()
        };
        assert!(lengths(fixed_sample(200)).is_superset(&[0, 3].into()));
        assert!(
            fixed_sample::<Name>(50)
                .iter()
                .all(|name| !name.as_str().is_empty())
        );
    }

    #[test]
    fn patterns_without_a_strategy_generate_the_example_of_the_schema() {
        let odd = json!({ "type": "string", "pattern": "^(?!a).*$", "examples": ["b"] });
        let closed = json!({ "type": ["array", "null"], "items": { "const": 1 } });
        let mixed = json!({ "type": "object", "properties": { "n": { "type": "integer",
        "minimum": 2, "maximum": 3 } }, "required": ["n"] });
        proptest!(|(odd in json_of(&odd), closed in json_of(&closed), mixed in json_of(&mixed))| {
            prop_assert_eq!(odd, "b");
            let is_closed = closed.as_array().is_none_or(|all| all.iter().all(|one| *one == 1));
            prop_assert!(is_closed);
            prop_assert!(mixed["n"] == 2 || mixed["n"] == 3);
        });
    }
}
