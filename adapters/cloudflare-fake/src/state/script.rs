//! A worker script with its versions.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::binding;
use crate::multipart::Part;

/// A worker script with its versions.
pub(crate) struct Script {
    pub(crate) name: String,
    pub(crate) tag: String,
    pub(crate) created: String,
    pub(crate) modified: String,
    /// The versions, oldest first; never empty.
    pub(crate) versions: Vec<Version>,
    /// The deployments, oldest first.
    pub(crate) deployments: Vec<Deployment>,
    /// The settings of the script, not of a version: `tags`, `logpush`, `observability`, `tail_consumers`.
    pub(crate) settings: Map<String, Value>,
    pub(crate) enabled: bool,
    pub(crate) previews_enabled: bool,
}

/// A version, created by an upload or a change of a secret.
pub(crate) struct Version {
    pub(crate) id: String,
    pub(crate) number: usize,
    pub(crate) created: String,
    pub(crate) content: Content,
}

/// The content of a version.
#[derive(Clone)]
pub(crate) struct Content {
    pub(crate) modules: Vec<Part>,
    /// The entry module; the script part for a service worker.
    pub(crate) entry: String,
    pub(crate) is_module: bool,
    /// The bindings, including the values of secrets.
    pub(crate) bindings: Vec<Value>,
    /// `compatibility_date` and the other metadata that belongs to a version.
    pub(crate) metadata: Map<String, Value>,
}

/// A deployment: the versions that serve requests.
pub(crate) struct Deployment {
    pub(crate) id: String,
    pub(crate) created: String,
    pub(crate) versions: Vec<Value>,
    pub(crate) annotations: Map<String, Value>,
}

/// The deployed version of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptInfo {
    /// The id of the version.
    pub version_id: String,
    /// The path of the entry module.
    pub main_module: String,
    /// The contents of the modules by name.
    pub modules: BTreeMap<String, Bytes>,
    /// The bindings in the form of the API, without the values of secrets.
    pub bindings: Vec<Value>,
    /// The tags of the script.
    pub tags: Vec<String>,
    /// Number of versions of the script.
    pub versions: usize,
    /// `true` if the script is served on workers.dev.
    pub workers_dev: bool,
    /// The compatibility date of the version.
    pub compatibility_date: Option<String>,
}

impl Content {
    pub(crate) fn etag(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for module in &self.modules {
            hasher.update(module.name.as_bytes()).update(&module.body);
        }
        hasher.finalize().to_hex().to_string()
    }
}

impl Script {
    /// Returns the deployed version; `None` before the first deployment.
    pub(crate) fn deployed_version(&self) -> Option<&Version> {
        let id = &self.deployments.last()?.versions.first()?["version_id"];
        self.versions.iter().find(|version| *id == *version.id)
    }

    pub(crate) fn latest_version(&self) -> Option<&Version> {
        self.versions.last()
    }

    pub(crate) fn info(&self) -> Option<ScriptInfo> {
        let version = self.deployed_version()?;
        let modules = version.content.modules.iter();
        let tags = self.settings.get("tags").and_then(Value::as_array);
        let tags = tags.into_iter().flatten().filter_map(Value::as_str);
        let date = version
            .content
            .metadata
            .get("compatibility_date")
            .and_then(Value::as_str);
        Some(ScriptInfo {
            version_id: version.id.clone(),
            main_module: version.content.entry.clone(),
            modules: modules
                .map(|module| (module.name.clone(), module.body.clone()))
                .collect(),
            bindings: version.content.bindings.iter().map(binding::view).collect(),
            tags: tags.map(str::to_owned).collect(),
            versions: self.versions.len(),
            workers_dev: self.enabled,
            compatibility_date: date.map(str::to_owned),
        })
    }

    pub(crate) fn secrets(&self) -> BTreeMap<String, String> {
        let bindings = self
            .deployed_version()
            .map(Version::bindings)
            .unwrap_or_default();
        let secrets = bindings
            .iter()
            .filter(|binding| binding::is_secret(binding));
        let text = |binding, name| binding::text(binding, name).to_owned();
        secrets
            .map(|binding| (text(binding, "name"), text(binding, "text")))
            .collect()
    }

    pub(crate) fn is_bound_to(&self, service: &str) -> bool {
        let bindings = self
            .deployed_version()
            .map(Version::bindings)
            .unwrap_or_default();
        bindings.iter().any(|binding| binding["service"] == service)
    }

    pub(crate) fn view(&self) -> Value {
        let mut view = json!({
            "id": self.name,
            "tag": self.tag,
            "tags": self.settings.get("tags"),
            "created_on": self.created,
            "modified_on": self.modified,
            "handlers": ["fetch"],
            "logpush": self.settings.get("logpush").cloned().unwrap_or(json!(false)),
            "last_deployed_from": "api",
        });
        if let Some(version) = self.latest_version() {
            view["etag"] = json!(version.content.etag());
            view["has_assets"] = json!(false);
            view["has_modules"] = json!(version.content.is_module);
            for name in ["compatibility_date", "compatibility_flags"] {
                if let Some(value) = version.content.metadata.get(name) {
                    view[name] = value.clone();
                }
            }
        }
        view
    }

    /// Creates a script without a version. The caller must add the first version.
    pub(crate) fn new(name: &str, tag: String, now: String) -> Self {
        Self {
            name: name.to_owned(),
            tag,
            created: now.clone(),
            modified: now,
            versions: Vec::new(),
            deployments: Vec::new(),
            settings: Map::new(),
            enabled: false,
            previews_enabled: false,
        }
    }
}

impl Version {
    pub(crate) fn bindings(&self) -> &[Value] {
        &self.content.bindings
    }

    pub(crate) fn metadata(&self) -> Value {
        json!({
            "created_on": self.created,
            "modified_on": self.created,
            "source": "api",
            "author_id": "",
            "author_email": "",
            "hasPreview": false,
        })
    }

    pub(crate) fn view(&self) -> Value {
        let content = &self.content;
        let runtime = [
            "compatibility_date",
            "compatibility_flags",
            "usage_model",
            "limits",
        ];
        let runtime = runtime
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), content.metadata.get(*name)?.clone())));
        let bindings: Vec<_> = content.bindings.iter().map(binding::view).collect();
        json!({
            "id": self.id,
            "number": self.number,
            "metadata": self.metadata(),
            "annotations": content.metadata.get("annotations").cloned().unwrap_or_else(|| json!({})),
            "resources": {
                "bindings": bindings,
                "script": {"etag": content.etag(), "handlers": ["fetch"], "last_deployed_from": "api"},
                "script_runtime": runtime.collect::<Map<_, _>>(),
            },
        })
    }
}

impl Deployment {
    pub(crate) fn view(&self) -> Value {
        json!({
            "id": self.id,
            "created_on": self.created,
            "source": "api",
            "strategy": "percentage",
            "versions": self.versions,
            "annotations": self.annotations,
            "author_email": "",
        })
    }
}
