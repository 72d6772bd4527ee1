//! Workers: stored, versioned script bundles with their bindings. A version is a folder that never changes; a pointer
//! file says which one is current.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use core_domain::port::ResourceRef;
use core_domain::registry::ResourceType;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::data_dir::{DataDir, Staged};
use crate::error::{LocalError, Result};
use crate::manifest::{Manifest, read_json, to_json};
use crate::names::{check_paths, digest, is_identifier};

const POINTER: &str = "current.json";
const BUNDLE: &str = "bundle.json";
const VERSIONS: &str = "versions";
const MODULES: &str = "modules";

/// The most modules a bundle may have.
const MAX_MODULES: usize = 1_000;
/// The longest path of a module, in bytes.
const MAX_MODULE_PATH: usize = 1_024;
/// The longest bundle: all modules together, in bytes.
const MAX_BUNDLE: usize = 10 * 1024 * 1024;

/// A script with what it is bound to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkerScript {
    /// The module that is run; one of `modules`.
    pub main_module: String,
    /// Text of each module by its path.
    pub modules: BTreeMap<String, String>,
    /// What the script can reach.
    #[serde(default)]
    pub bindings: Vec<WorkerBinding>,
    /// Values the script is given by name: a text as a text, everything else as what JSON makes of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vars: BTreeMap<String, Value>,
}

/// One thing a script can reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkerBinding {
    /// What the script calls it: a JavaScript identifier.
    pub name: String,
    /// What kind of object it is.
    #[serde(rename = "type")]
    pub resource_type: ResourceType,
    /// The object's name.
    pub resource: String,
}

/// The version of a worker that is current.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerVersion {
    /// Digest of the script: equal scripts are the same version.
    pub version: String,
    /// The script.
    pub script: WorkerScript,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pointer {
    version: String,
    effect_key: String,
}

/// A version as it lies in its folder; the texts of the modules are files beside it.
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
    /// Reads the settings of a create request and checks them by themselves.
    pub(crate) fn parse(config: &Value) -> Result<Self> {
        let script: Self = serde_json::from_value(config.clone())
            .map_err(|error| LocalError::Invalid(format!("the worker's settings: {error}")))?;
        script.check()?;
        Ok(script)
    }

    fn check(&self) -> Result<()> {
        if !self.modules.contains_key(&self.main_module) {
            return invalid(format!(
                "the main module {:?} is not given",
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
                    "the binding name {name:?} is no identifier, or used twice"
                ));
            }
        }
        Ok(())
    }

    /// Checks that everything the script is bound to exists and has the same owner.
    pub(crate) fn check_bindings(&self, data: &DataDir, owner: &str) -> Result<()> {
        for binding in &self.bindings {
            let target = ResourceRef {
                resource_type: binding.resource_type,
                name: binding.resource.clone(),
            };
            // Another owner's object is not told from one that does not exist.
            let exists = match Manifest::read_owned(data, &target, owner) {
                Err(LocalError::Taken(_)) => false,
                found => found?.is_some(),
            };
            if !exists {
                return invalid(format!(
                    "the binding {} leads to {} {}, which does not exist",
                    binding.name, binding.resource_type, binding.resource
                ));
            }
        }
        Ok(())
    }

    fn version(&self) -> Result<String> {
        Ok(digest(&[&to_json(self)?])[..32].to_owned())
    }

    fn write(&self, staged: &Staged, folder: &str) -> Result<()> {
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

    /// Writes the first version into a worker in the making.
    pub(crate) fn write_first(&self, staged: &Staged, effect_key: &str) -> Result<()> {
        let version = self.version()?;
        self.write(staged, &format!("{VERSIONS}/{version}/"))?;
        let effect_key = effect_key.to_owned();
        staged.write(
            POINTER,
            &to_json(&Pointer {
                version,
                effect_key,
            })?,
        )
    }

    /// Makes this script the current version of a worker that exists.
    pub(crate) fn switch_to(
        &self,
        data: &DataDir,
        name: &str,
        owner: &str,
        effect_key: &str,
    ) -> Result<()> {
        let version = self.version()?;
        let staged = data.stage_dir()?;
        self.write(&staged, "")?;
        let lock = data.exclusive()?;
        let worker = worker(name);
        if Manifest::read_owned(data, &worker, owner)?.is_none() {
            return Err(LocalError::Missing(format!("worker {name}")));
        }
        let kind = ResourceType::Worker.as_str();
        // An equal version from before is as good.
        data.publish(staged, &[kind, name, VERSIONS, &version], &lock)?;
        let effect_key = effect_key.to_owned();
        let pointer = to_json(&Pointer {
            version,
            effect_key,
        })?;
        data.replace_file(&[kind, name, POINTER], &[&pointer])
    }
}

/// Which version of a worker is current, without its script.
pub(crate) fn current_digest(data: &DataDir, name: &str) -> Result<Option<String>> {
    let pointer = read_json::<Pointer>(data, &[ResourceType::Worker.as_str(), name, POINTER])?;
    Ok(pointer.map(|pointer| pointer.version))
}

/// The current version of a worker; `None` when the worker does not exist.
pub(crate) fn current(data: &DataDir, name: &str) -> Result<Option<WorkerVersion>> {
    if Manifest::read(data, &worker(name))?.is_none() {
        return Ok(None);
    }
    let kind = ResourceType::Worker.as_str();
    let Some(pointer) = read_json::<Pointer>(data, &[kind, name, POINTER])? else {
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
            LocalError::damaged(path, "the module is missing or no text")
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

pub(crate) fn worker(name: &str) -> ResourceRef {
    ResourceRef {
        resource_type: ResourceType::Worker,
        name: name.to_owned(),
    }
}

const fn invalid<T>(text: String) -> Result<T> {
    Err(LocalError::Invalid(text))
}
