//! The form of an upload: metadata and modules.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::binding;
use super::code::INVALID;
use crate::envelope::Refusal;
use crate::multipart::Part;
use crate::request::Request;
use crate::state::State;
use crate::state::script::{Content, Script};

const NO_METADATA: Refusal = Refusal::new(400, INVALID, "The form has no part named metadata.");
const NO_ENTRY: Refusal = Refusal::new(
    400,
    INVALID,
    "The metadata names no part of the form as main_module or body_part.",
);
const BAD_MODULE: Refusal =
    Refusal::new(400, INVALID, "A module's field name is not its file name.");
const BAD_DATE: Refusal = Refusal::new(400, INVALID, "compatibility_date is no date.");
const TOO_MANY_TAGS: Refusal = Refusal::new(400, INVALID, "A Worker has at most 8 tags.");
const TOO_LARGE: Refusal = Refusal::new(413, 10027, "The Worker is larger than allowed.");
const MAX_TAGS: usize = 8;
const LARGEST: usize = 64 * 1024 * 1024;
/// Metadata fields that belong to the script, not to a version.
const OF_SCRIPT: [&str; 4] = ["tags", "logpush", "observability", "tail_consumers"];
const OF_VERSION: [&str; 7] = [
    "compatibility_date",
    "compatibility_flags",
    "limits",
    "placement",
    "usage_model",
    "annotations",
    "migrations",
];

#[derive(Deserialize)]
struct Metadata {
    main_module: Option<String>,
    body_part: Option<String>,
    compatibility_date: Option<String>,
    #[serde(default)]
    bindings: Vec<Value>,
    #[serde(default)]
    keep_bindings: Vec<String>,
    tags: Option<Vec<String>>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// A valid upload.
pub(super) struct Upload {
    pub(super) content: Content,
    /// The settings of the script that the upload changes.
    pub(super) settings: Map<String, Value>,
}

/// Parses an upload of a new or existing script.
pub(super) fn parse(state: &State, request: &Request, script: &str) -> Result<Upload, Refusal> {
    let mut modules = request.form(INVALID)?;
    let at = modules
        .iter()
        .position(|part| part.name == "metadata")
        .ok_or(NO_METADATA)?;
    let metadata: Metadata = serde_json::from_slice(&modules.remove(at).body)
        .map_err(|error| Refusal::with(400, INVALID, format!("invalid metadata: {error}")))?;
    let previous = state
        .script(script)
        .and_then(Script::latest_version)
        .map(|version| &version.content);
    let entry = entry(&metadata, &modules)?;
    check(&metadata, &modules)?;
    let strict = request.param("bindings_inherit") == Some("strict");
    let bindings = binding::resolve(
        state,
        script,
        previous,
        metadata.bindings,
        &metadata.keep_bindings,
        strict,
    )?;
    let mut rest = metadata.rest;
    if let Some(date) = metadata.compatibility_date {
        rest.insert("compatibility_date".to_owned(), json!(date));
    }
    if let Some(tags) = metadata.tags {
        rest.insert("tags".to_owned(), json!(tags));
    }
    let part = |names: &[&str]| {
        let named = rest
            .iter()
            .filter(|(name, _)| names.contains(&name.as_str()));
        named
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect::<Map<_, _>>()
    };
    Ok(Upload {
        content: Content {
            modules,
            entry,
            is_module: metadata.body_part.is_none(),
            bindings,
            metadata: part(&OF_VERSION),
        },
        settings: part(&OF_SCRIPT),
    })
}

/// Returns the name of the entry module.
fn entry(metadata: &Metadata, modules: &[Part]) -> Result<String, Refusal> {
    let named = match (&metadata.main_module, &metadata.body_part) {
        (Some(name), None) | (None, Some(name)) => name,
        _ => return Err(NO_ENTRY),
    };
    let part = modules
        .iter()
        .find(|part| part.name == *named)
        .ok_or(NO_ENTRY)?;
    if part.body.is_empty() {
        return Err(Refusal::new(400, INVALID, "The script has no content."));
    }
    Ok(named.clone())
}

fn check(metadata: &Metadata, modules: &[Part]) -> Result<(), Refusal> {
    if modules
        .iter()
        .any(|part| part.file_name.as_deref() != Some(&part.name))
    {
        return Err(BAD_MODULE);
    }
    if modules.iter().map(|part| part.body.len()).sum::<usize>() > LARGEST {
        return Err(TOO_LARGE);
    }
    let is_date = |date: &String| date.parse::<jiff::civil::Date>().is_ok() && date.len() == 10;
    if !metadata.compatibility_date.as_ref().is_none_or(is_date) {
        return Err(BAD_DATE);
    }
    if metadata
        .tags
        .as_ref()
        .is_some_and(|tags| tags.len() > MAX_TAGS)
    {
        return Err(TOO_MANY_TAGS);
    }
    Ok(())
}
