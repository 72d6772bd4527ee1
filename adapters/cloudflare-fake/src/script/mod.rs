//! Worker scripts.

pub(crate) mod assets;
mod binding;
mod secret;
pub(crate) mod service;
mod settings;
mod upload;
mod version;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::envelope::{Refusal, Reply, ok, raw};
use crate::multipart::{self, Part};
use crate::request::Request;
use crate::state::State;

const NOT_FOUND: Refusal = Refusal::new(404, 10007, "This Worker does not exist on your account.");
const IN_USE: Refusal = Refusal::new(
    400,
    10064,
    "The Worker is still referred to; delete with force=true.",
);
const NO_SUBDOMAIN: Refusal =
    Refusal::new(404, 10007, "The account has no subdomain of workers.dev.");
const INVALID: u32 = 10021;

/// A script.
pub(crate) struct Script {
    pub(crate) name: String,
    tag: String,
    created: String,
    modified: String,
    /// Oldest first, never empty.
    versions: Vec<Version>,
    /// Oldest first.
    deployments: Vec<Deployment>,
    /// What is not of a version: `tags`, `logpush`, `observability`, `tail_consumers`.
    settings: Map<String, Value>,
    enabled: bool,
    previews_enabled: bool,
    schedules: Vec<Value>,
}

/// What an upload or another secret makes.
struct Version {
    id: String,
    number: usize,
    created: String,
    content: Content,
}

/// What a version consists of.
#[derive(Clone)]
struct Content {
    modules: Vec<Part>,
    /// The module that is started; the body of a service worker else.
    entry: String,
    is_module: bool,
    /// With the values of secrets.
    bindings: Vec<Value>,
    /// `compatibility_date` and what else of the metadata is of a version.
    metadata: Map<String, Value>,
    has_assets: bool,
}

/// Which versions serve.
struct Deployment {
    id: String,
    created: String,
    versions: Vec<Value>,
    annotations: Map<String, Value>,
}

/// A worker's deployed version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptInfo {
    /// The id of the version.
    pub version_id: String,
    /// The module that is started.
    pub main_module: String,
    /// The contents of its modules, by name.
    pub modules: BTreeMap<String, Bytes>,
    /// Its bindings as the API shows them, without the values of secrets.
    pub bindings: Vec<Value>,
    /// Its tags.
    pub tags: Vec<String>,
    /// How many versions there are.
    pub versions: usize,
    /// Whether it answers on workers.dev.
    pub workers_dev: bool,
    /// The date it is compatible with.
    pub compatibility_date: Option<String>,
}

impl Content {
    fn etag(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for module in &self.modules {
            hasher.update(module.name.as_bytes()).update(&module.body);
        }
        hasher.finalize().to_hex().to_string()
    }
}

impl Script {
    /// The version that serves; none before the first deployment.
    fn deployed(&self) -> Option<&Version> {
        let id = &self.deployments.last()?.versions.first()?["version_id"];
        self.versions.iter().find(|version| *id == *version.id)
    }

    fn latest(&self) -> Option<&Version> {
        self.versions.last()
    }

    pub(crate) fn info(&self) -> Option<ScriptInfo> {
        let version = self.deployed()?;
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
            .deployed()
            .map(|version| version.content.bindings.iter());
        let secrets = bindings
            .into_iter()
            .flatten()
            .filter(|binding| binding::is_secret(binding));
        let text =
            |binding: &Value, name: &str| binding[name].as_str().unwrap_or_default().to_owned();
        secrets
            .map(|binding| (text(binding, "name"), text(binding, "text")))
            .collect()
    }

    fn is_bound_to(&self, service: &str) -> bool {
        let bindings = self
            .deployed()
            .map(|version| version.content.bindings.iter());
        bindings
            .into_iter()
            .flatten()
            .any(|binding| binding["service"] == service)
    }

    fn view(&self) -> Value {
        let mut view = json!({
            "id": self.name,
            "tag": self.tag,
            "tags": self.settings.get("tags"),
            "created_on": self.created,
            "modified_on": self.modified,
            "handlers": ["fetch"],
            "usage_model": "standard",
            "logpush": self.settings.get("logpush").cloned().unwrap_or(json!(false)),
            "last_deployed_from": "api",
        });
        if let Some(version) = self.latest() {
            view["etag"] = json!(version.content.etag());
            view["has_assets"] = json!(version.content.has_assets);
            view["has_modules"] = json!(version.content.is_module);
            for name in ["compatibility_date", "compatibility_flags"] {
                if let Some(value) = version.content.metadata.get(name) {
                    view[name] = value.clone();
                }
            }
        }
        view
    }

    /// Its modules: the text of a service worker, else a form.
    fn content(&self) -> Reply {
        let version = self.latest().ok_or(NOT_FOUND)?;
        let kind = |part: &Part| part.content_type.clone().unwrap_or_default();
        if let ([only], false) = (&version.content.modules[..], version.content.is_module) {
            return Ok(raw("application/javascript", only.body.clone()));
        }
        let kinds: Vec<_> = version
            .content
            .modules
            .iter()
            .map(|part| (part, kind(part)))
            .collect();
        let files = kinds
            .iter()
            .map(|(part, kind)| (part.name.as_str(), kind.as_str(), &part.body[..]));
        let (content_type, body) = multipart::write(files);
        Ok(raw(content_type, body))
    }
}

/// `/accounts/{account_id}/workers/scripts/..`
pub(crate) fn route(state: &mut State, request: &Request, path: &[&str]) -> Option<Reply> {
    let method = request.method.as_str();
    let Some((name, rest)) = path.split_first() else {
        return (method == "GET").then(|| list(state, request));
    };
    match (method, rest) {
        ("PUT", []) => return Some(upload::put(state, request, name)),
        ("POST", ["assets-upload-session"]) => return Some(assets::open(state, request, name)),
        _ => {}
    }
    let Some(at) = state.scripts.iter().position(|script| script.name == *name) else {
        return Some(Err(NOT_FOUND));
    };
    Some(match (method, rest) {
        ("GET", []) => state.scripts[at].content(),
        ("DELETE", []) => delete(state, at, request),
        ("GET", ["settings"]) => ok(settings::view(&state.scripts[at])),
        ("PATCH", ["settings"]) => settings::edit(state, at, request),
        ("GET", ["script-settings"]) => ok(settings::script_view(&state.scripts[at])),
        ("PATCH", ["script-settings"]) => settings::edit_script(state, at, request),
        (_, ["subdomain"]) => return subdomain(&mut state.scripts[at], request),
        (_, ["schedules"]) => return schedules(state, at, request),
        (_, ["secrets", rest @ ..]) => return secret::route(state, at, request, rest),
        ("PATCH", ["secrets-bulk"]) => secret::put_all(state, at, request),
        (_, ["versions", rest @ ..]) => return version::route(state, at, request, rest),
        ("GET", ["deployments"]) => version::deployments(&state.scripts[at]),
        ("POST", ["deployments"]) => version::deploy(state, at, request),
        _ => return None,
    })
}

/// `tags` is a list of `tag:yes` and `tag:no`.
fn list(state: &State, request: &Request) -> Reply {
    let filters: Vec<_> = request
        .param("tags")
        .unwrap_or_default()
        .split(',')
        .filter_map(|filter| filter.rsplit_once(':'))
        .collect();
    let has = |script: &Script, tag: &str| {
        let tags = script.settings.get("tags").and_then(Value::as_array);
        tags.into_iter().flatten().any(|own| own == tag)
    };
    let matches = |script: &&Script| {
        filters
            .iter()
            .all(|(tag, wanted)| has(script, tag) == (*wanted == "yes"))
    };
    ok(state
        .scripts
        .iter()
        .filter(matches)
        .map(Script::view)
        .collect())
}

fn delete(state: &mut State, at: usize, request: &Request) -> Reply {
    let name = state.scripts[at].name.clone();
    let is_in_use = state
        .scripts
        .iter()
        .any(|script| script.name != name && script.is_bound_to(&name))
        || state.queues.iter().any(|queue| queue.is_consumed_by(&name));
    if is_in_use && !request.flag("force") {
        return Err(IN_USE);
    }
    state.scripts.remove(at);
    ok(Value::Null)
}

#[derive(Deserialize)]
struct Subdomain {
    enabled: bool,
    previews_enabled: Option<bool>,
}

fn subdomain(script: &mut Script, request: &Request) -> Option<Reply> {
    match request.method.as_str() {
        "GET" => {}
        "POST" => match request.json::<Subdomain>(INVALID) {
            Err(refusal) => return Some(Err(refusal)),
            Ok(body) => {
                script.enabled = body.enabled;
                script.previews_enabled = body.previews_enabled.unwrap_or(body.enabled);
            }
        },
        "DELETE" => (script.enabled, script.previews_enabled) = (false, false),
        _ => return None,
    }
    Some(ok(
        json!({"enabled": script.enabled, "previews_enabled": script.previews_enabled}),
    ))
}

#[derive(Deserialize)]
struct Schedule {
    cron: String,
}

fn schedules(state: &mut State, at: usize, request: &Request) -> Option<Reply> {
    let script = &mut state.scripts[at];
    match request.method.as_str() {
        "GET" => {}
        "PUT" => match request.json::<Vec<Schedule>>(INVALID) {
            Err(refusal) => return Some(Err(refusal)),
            Ok(body) => {
                let now = state.clock.now();
                let view = |schedule: Schedule| json!({"cron": schedule.cron, "created_on": now, "modified_on": now});
                script.schedules = body.into_iter().map(view).collect();
            }
        },
        _ => return None,
    }
    Some(ok(json!({"schedules": script.schedules})))
}

/// `/accounts/{account_id}/workers/subdomain`
pub(crate) fn account_subdomain(state: &mut State, request: &Request) -> Option<Reply> {
    #[derive(Deserialize)]
    struct Body {
        subdomain: String,
    }
    match request.method.as_str() {
        "GET" => {}
        "PUT" => match request.json::<Body>(INVALID) {
            Err(refusal) => return Some(Err(refusal)),
            Ok(body) => state.settings.workers_subdomain = Some(body.subdomain),
        },
        _ => return None,
    }
    Some(match &state.settings.workers_subdomain {
        Some(subdomain) => ok(json!({"subdomain": subdomain})),
        None => Err(NO_SUBDOMAIN),
    })
}
