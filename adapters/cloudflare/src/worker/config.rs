//! What a request says of a worker.

use std::collections::BTreeMap;

use core_domain::port::ProviderError;
use serde::Deserialize;
use serde_json::Value;

use crate::binding::{Binding, Vars};

/// A script with what it is bound to, as [`core_domain::port::CreateResource::config`] has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WorkerConfig {
    /// The module that is run; one of `modules`.
    pub(super) main_module: String,
    /// Text of each module by its path.
    pub(super) modules: BTreeMap<String, String>,
    /// What the script can reach.
    #[serde(default)]
    pub(super) bindings: Vec<Binding>,
    /// Texts that it can read.
    #[serde(default)]
    pub(super) vars: Vars,
}

impl WorkerConfig {
    pub(super) fn parse(config: &Value) -> Result<Self, ProviderError> {
        let refused =
            |problem| ProviderError::Permanent(format!("the worker's settings: {problem}"));
        let worker: Self =
            serde_json::from_value(config.clone()).map_err(|error| refused(error.to_string()))?;
        if worker.modules.contains_key(&worker.main_module) {
            Ok(worker)
        } else {
            let missing = format!("the main module {:?} is not given", worker.main_module);
            Err(refused(missing))
        }
    }
}
