//! Parts of stacks: the single objects that an activated stack and its apps are made of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::kernel::{TextError, text};
use crate::registry::ResourceType;

text! {
    /// What a part of a stack is called in it: `^[a-z]([a-z0-9-]*[a-z0-9])?$`, 1 to 44 characters.
    PartName,
    part_name,
    { "type": "string", "minLength": 1, "maxLength": 44, "pattern": "^[a-z]([a-z0-9-]*[a-z0-9])?$", "examples": ["api"] }
}

fn part_name(text: &str) -> Result<String, TextError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    match text.len() {
        0 => Err(TextError::TooShort),
        45.. => Err(TextError::TooLong),
        _ if text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.ends_with(plain)
            && text.chars().all(|c| plain(c) || c == '-') =>
        {
            Ok(text.to_owned())
        }
        _ => Err(TextError::Malformed),
    }
}

impl PartName {
    /// What a part of an app is called: the app's name, and what the part is in it.
    pub(super) fn of_app(app: &str, suffix: &str) -> Self {
        Self(format!("{app}{suffix}"))
    }
}

/// Which part of a stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartId {
    /// What kind of object.
    pub resource_type: ResourceType,
    /// Its name.
    pub name: PartName,
    /// Whether it is a part of an app, and no resource of the definition.
    pub of_app: bool,
}

impl PartId {
    /// What no other part of the stack shares with it, whatever its apps are called.
    #[must_use]
    pub fn key(&self) -> String {
        let of = if self.of_app { "app" } else { "resource" };
        format!("{}\n{of}\n{}", self.resource_type, self.name)
    }
}

/// What a worker or a site can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartBinding {
    /// What it calls it.
    pub name: String,
    /// The part it leads to.
    pub target: PartId,
}

/// The script of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The module that is run; one of `modules`.
    pub main_module: String,
    /// Text of each module by its path.
    pub modules: BTreeMap<String, String>,
}

/// One object that is made for a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackPart {
    /// Which.
    pub id: PartId,
    /// What it can reach.
    pub bindings: Vec<PartBinding>,
    /// The texts it can read, by name.
    pub vars: BTreeMap<String, String>,
    /// Its script, for a worker that brings one.
    pub script: Option<Script>,
}

impl StackPart {
    /// A part without settings.
    pub(super) const fn plain(id: PartId) -> Self {
        Self {
            id,
            bindings: Vec::new(),
            vars: BTreeMap::new(),
            script: None,
        }
    }
}
