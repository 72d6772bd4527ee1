//! The configuration of a worker in a create request.

use std::collections::BTreeMap;

use core_domain::port::ProviderError;
use serde::Deserialize;
use serde_json::Value;

use crate::binding::{Binding, Vars};

/// A script with its bindings and variables, from [`core_domain::port::ObjectRequest::config`].
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WorkerConfig {
    /// The path of the module that is run; one of `modules`.
    pub(super) main_module: String,
    /// The source text of each module by its path.
    pub(super) modules: BTreeMap<String, String>,
    /// The objects that the script can use.
    #[serde(default)]
    pub(super) bindings: Vec<Binding>,
    /// The variables that the script can read.
    #[serde(default)]
    pub(super) vars: Vars,
}

impl WorkerConfig {
    pub(super) fn parse(config: &Value) -> Result<Self, ProviderError> {
        let refused =
            |problem| ProviderError::Permanent(format!("the worker's settings: {problem}"));
        let worker: Self =
            serde_json::from_value(config.clone()).map_err(|error| refused(error.to_string()))?;
        if !worker.modules.contains_key(&worker.main_module) {
            let missing = format!(
                "the main module {:?} is missing in modules",
                worker.main_module
            );
            return Err(refused(missing));
        }
        match worker.modules.keys().find(|path| !is_part_name(path)) {
            Some(path) => Err(refused(format!("{path:?} is not a valid path of a module"))),
            None => Ok(worker),
        }
    }
}

/// Returns whether a module path can be the name of a part of an upload. The part `metadata` is reserved, in any letter
/// case.
fn is_part_name(path: &str) -> bool {
    let plain = |c: char| !c.is_control() && c != '"' && c != '\\';
    let is_safe = |part: &str| !part.is_empty() && part != "." && part != "..";
    !path.eq_ignore_ascii_case("metadata")
        && path.chars().all(plain)
        && path.split('/').all(is_safe)
}
