//! Workers: stored and versioned script bundles with their bindings. A version is an immutable folder. A pointer file
//! selects the current version.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use core_domain::port::ResourceRef;
use core_domain::registry::ResourceType;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::data_dir::{DataDir, StagingPath};
use crate::error::{LocalError, Result};
use crate::manifest::{Manifest, read_json, to_json};
use crate::names::{check_paths, digest, is_identifier};

const POINTER: &str = "current.json";
const BUNDLE: &str = "bundle.json";
const VERSIONS: &str = "versions";
const MODULES: &str = "modules";

/// Maximum number of modules in a bundle.
const MAX_MODULES: usize = 1_000;
/// Maximum length of the path of a module, in bytes.
const MAX_MODULE_PATH: usize = 1_024;
/// Maximum size of a bundle, all modules together, in bytes.
const MAX_BUNDLE: usize = 10 * 1024 * 1024;

/// A worker script with its bindings and variables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkerScript {
    /// The path of the module that is run; one of `modules`.
    pub main_module: String,
    /// The source text of each module by its path.
    pub modules: BTreeMap<String, String>,
    /// The objects that the script can use.
    #[serde(default)]
    pub bindings: Vec<WorkerBinding>,
    /// Variables by name. A JSON string becomes a text; every other value is passed as JSON.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vars: BTreeMap<String, Value>,
}

/// An object that a script can use under a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkerBinding {
    /// The name of the binding in the script: a JavaScript identifier.
    pub name: String,
    /// The resource type of the object.
    #[serde(rename = "type")]
    pub resource_type: ResourceType,
    /// The name of the object.
    pub resource: String,
}

/// The current version of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerVersion {
    /// The digest of the script. Equal scripts are the same version.
    pub version: String,
    /// The script of this version.
    pub script: WorkerScript,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkerPointer {
    version: String,
    effect_key: String,
}

/// The stored form of a version. The texts of the modules are separate files.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    main_module: String,
    modules: Vec<String>,
    bindings: Vec<WorkerBinding>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    vars: BTreeMap<String, Value>,
}

impl WorkerScript {
    /// Parses the configuration of a create request and checks the script itself, without its bindings' targets.
    pub(crate) fn parse(config: &Value) -> Result<Self> {
        let script: Self = serde_json::from_value(config.clone())
            .map_err(|error| LocalError::Invalid(format!("the worker's settings: {error}")))?;
        script.check()?;
        Ok(script)
    }

    fn check(&self) -> Result<()> {
        if !self.modules.contains_key(&self.main_module) {
            return invalid(format!(
                "the main module {:?} is missing in modules",
                self.main_module
            ));
        }
        let length: usize = self.modules.values().map(String::len).sum();
        if self.modules.len() > MAX_MODULES || length > MAX_BUNDLE {
            return invalid("the bundle is too large".to_owned());
        }
        check_paths(self.modules.keys().map(String::as_str), MAX_MODULE_PATH)?;
        let mut names = BTreeSet::new();
        let bound = self.bindings.iter().map(|binding| &binding.name);
        for name in bound.chain(self.vars.keys()) {
            if !is_identifier(name) || !names.insert(name) {
                return invalid(format!(
                    "the binding name {name:?} is not an identifier or is used twice"
                ));
            }
        }
        Ok(())
    }

    /// Checks that the targets of all bindings exist and have the same owner as the worker.
    pub(crate) fn check_bindings(&self, data: &DataDir, owner: &str) -> Result<()> {
        for binding in &self.bindings {
            let target = ResourceRef {
                resource_type: binding.resource_type,
                name: binding.resource.clone(),
            };
            // An object of another owner is indistinguishable from a missing one.
            let exists = match Manifest::read_owned(data, &target, owner) {
                Err(LocalError::NameTaken(_)) => false,
                found => found?.is_some(),
            };
            if !exists {
                return invalid(format!(
                    "the binding {} refers to {} {}, which does not exist",
                    binding.name, binding.resource_type, binding.resource
                ));
            }
        }
        Ok(())
    }

    fn version(&self) -> Result<String> {
        Ok(digest(&[&to_json(self)?])[..32].to_owned())
    }

    fn write(&self, staged: &StagingPath, folder: &str) -> Result<()> {
        let bundle = Bundle {
            main_module: self.main_module.clone(),
            modules: self.modules.keys().cloned().collect(),
            bindings: self.bindings.clone(),
            vars: self.vars.clone(),
        };
        staged.write(&format!("{folder}{BUNDLE}"), &to_json(&bundle)?)?;
        for (path, text) in &self.modules {
            staged.write(&format!("{folder}{MODULES}/{path}"), text.as_bytes())?;
        }
        Ok(())
    }

    /// Writes the first version into the staged folder of a new worker.
    pub(crate) fn write_first(&self, staged: &StagingPath, effect_key: &str) -> Result<()> {
        let version = self.version()?;
        self.write(staged, &format!("{VERSIONS}/{version}/"))?;
        let effect_key = effect_key.to_owned();
        staged.write(
            POINTER,
            &to_json(&WorkerPointer {
                version,
                effect_key,
            })?,
        )
    }

    /// Makes this script the current version of an existing worker.
    pub(crate) fn make_current(
        &self,
        data: &DataDir,
        name: &str,
        owner: &str,
        effect_key: &str,
    ) -> Result<()> {
        let version = self.version()?;
        let staged = data.stage_dir()?;
        self.write(&staged, "")?;
        let lock = data.lock_publish()?;
        let worker = worker_ref(name);
        if Manifest::read_owned(data, &worker, owner)?.is_none() {
            return Err(LocalError::Missing(format!("worker {name}")));
        }
        let kind = ResourceType::Worker.as_str();
        // If the version exists already, it is kept.
        data.publish(staged, &[kind, name, VERSIONS, &version], &lock)?;
        let effect_key = effect_key.to_owned();
        let pointer = to_json(&WorkerPointer {
            version,
            effect_key,
        })?;
        data.replace_file(&[kind, name, POINTER], &[&pointer])
    }
}

/// Returns the current version of a worker without reading its script.
pub(crate) fn current_digest(data: &DataDir, name: &str) -> Result<Option<String>> {
    let pointer =
        read_json::<WorkerPointer>(data, &[ResourceType::Worker.as_str(), name, POINTER])?;
    Ok(pointer.map(|pointer| pointer.version))
}

/// Returns the current version of a worker; `None` if the worker does not exist.
pub(crate) fn current(data: &DataDir, name: &str) -> Result<Option<WorkerVersion>> {
    if Manifest::read(data, &worker_ref(name))?.is_none() {
        return Ok(None);
    }
    let kind = ResourceType::Worker.as_str();
    let Some(pointer) = read_json::<WorkerPointer>(data, &[kind, name, POINTER])? else {
        return Ok(None);
    };
    let folder = [kind, name, VERSIONS, &pointer.version];
    let bundle_path = [&folder[..], &[BUNDLE]].concat();
    let Some(bundle) = read_json::<Bundle>(data, &bundle_path)? else {
        return Ok(None);
    };
    let mut modules = BTreeMap::new();
    for path in bundle.modules {
        let parts: Vec<&str> = folder
            .into_iter()
            .chain([MODULES])
            .chain(path.split('/'))
            .collect();
        let text = data
            .read(&parts)?
            .and_then(|text| String::from_utf8(text).ok());
        let text = text.ok_or_else(|| {
            let path: PathBuf = parts.iter().collect();
            LocalError::damaged_file(path, "the module is missing or not UTF-8")
        })?;
        modules.insert(path, text);
    }
    let script = WorkerScript {
        main_module: bundle.main_module,
        modules,
        bindings: bundle.bindings,
        vars: bundle.vars,
    };
    Ok(Some(WorkerVersion {
        version: pointer.version,
        script,
    }))
}

pub(crate) fn worker_ref(name: &str) -> ResourceRef {
    ResourceRef {
        resource_type: ResourceType::Worker,
        name: name.to_owned(),
    }
}

const fn invalid<T>(text: String) -> Result<T> {
    Err(LocalError::Invalid(text))
}
