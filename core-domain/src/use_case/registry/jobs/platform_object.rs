//! The objects that jobs create for every platform. This is their only declaration: provisioning and the upgrade of auth
//! workers create them, plans and deprovisioning name them, and reconciling creates them again.

use serde_json::{Value, json};

use crate::kernel::{Environment, PlatformId, Slug};
use crate::port::{ObjectRequest, ResourceRef};
use crate::registry::{
    AUTH, DEFAULT_RESOURCES, Resource, ResourceType, auth_worker_name, purpose_of, resource_name,
};

/// One environment of a platform.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct PlatformEnvironment<'a> {
    pub(in crate::use_case::registry) platform_id: &'a PlatformId,
    /// The slug of the platform, a part of the names at the provider.
    pub(in crate::use_case::registry) slug: &'a Slug,
    pub(in crate::use_case::registry) environment: Environment,
}

/// An object that jobs create for every platform in each of its environments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::use_case::registry) enum PlatformObject {
    /// The default resource of a type.
    Default(ResourceType),
    /// The worker that identifies the users behind requests to the platform.
    AuthWorker,
}

impl PlatformObject {
    /// Returns the default resources in the order of their creation.
    pub(in crate::use_case::registry) fn defaults() -> impl DoubleEndedIterator<Item = Self> {
        let types = DEFAULT_RESOURCES.into_iter().map(|(of_type, _)| of_type);
        types.map(Self::Default)
    }

    /// Returns the objects of a type.
    pub(super) fn of_type(resource_type: ResourceType) -> impl Iterator<Item = Self> {
        let all = Self::defaults().chain([Self::AuthWorker]);
        all.filter(move |object| object.resource_type() == resource_type)
    }

    /// Returns the type of the object.
    pub(in crate::use_case::registry) const fn resource_type(self) -> ResourceType {
        match self {
            Self::Default(resource_type) => resource_type,
            Self::AuthWorker => ResourceType::Worker,
        }
    }

    /// Returns the purpose of the object, the service name of its resource.
    pub(super) fn purpose(self) -> &'static str {
        match self {
            Self::Default(resource_type) => purpose_of(resource_type),
            Self::AuthWorker => AUTH,
        }
    }

    /// Returns the name and type of the object in an environment.
    pub(in crate::use_case::registry) fn in_environment(
        self,
        at: PlatformEnvironment<'_>,
    ) -> ResourceRef {
        let (platform, slug, environment) = (at.platform_id, at.slug, at.environment);
        ResourceRef {
            resource_type: self.resource_type(),
            name: match self {
                Self::Default(of_type) => resource_name(platform, slug, environment, of_type),
                Self::AuthWorker => auth_worker_name(platform, slug, environment),
            },
        }
    }

    /// Returns the settings of the object. The auth worker verifies sessions at `iam_url`, the base URL of IAM.
    pub(super) fn config(self, at: PlatformEnvironment<'_>, iam_url: &str) -> Value {
        match self {
            Self::Default(of_type) => default_config(at, of_type),
            Self::AuthWorker => auth_config(at, iam_url),
        }
    }

    /// Returns the request that creates the object.
    pub(super) fn request(
        self,
        at: PlatformEnvironment<'_>,
        iam_url: &str,
        effect_key: String,
    ) -> ObjectRequest {
        ObjectRequest {
            resource: self.in_environment(at),
            owner: at.platform_id.to_string(),
            effect_key,
            config: self.config(at, iam_url),
        }
    }
}

/// The initial script of a platform's worker.
const WORKER: &str = include_str!("js/worker.js");

/// The name of the main module of that script.
const WORKER_MODULE: &str = "worker.js";

/// Returns the settings of a default resource. A worker is bound to the stores that were created before it; other types
/// have no settings.
pub(super) fn default_config(at: PlatformEnvironment<'_>, resource_type: ResourceType) -> Value {
    if resource_type != ResourceType::Worker {
        return json!({});
    }
    let worker = PlatformObject::Default(resource_type);
    let stores = PlatformObject::defaults().take_while(|object| *object != worker);
    let bindings = stores.map(|store| {
        json!({
            "name": store.purpose().to_uppercase(),
            "type": store.resource_type(),
            "resource": store.in_environment(at).name,
        })
    });
    json!({
        "mainModule": WORKER_MODULE,
        "modules": { WORKER_MODULE: WORKER },
        "bindings": bindings.collect::<Vec<_>>(),
    })
}

/// The script of the auth worker.
const AUTH_WORKER: &str = include_str!("js/auth.js");

/// The name of the main module of that script.
const AUTH_MODULE: &str = "auth.js";

/// The name of the generated module with the settings of the auth worker.
const AUTH_SETTINGS_MODULE: &str = "config.js";

/// The version of the auth worker's script. Must be increased with every change of the file.
pub(super) const AUTH_VERSION: i64 = 1;

/// The setting of the auth worker's resource that stores its version.
pub(super) const AUTH_VERSION_SETTING: &str = "authVersion";

/// Returns the settings of the auth worker with the current script.
fn auth_config(at: PlatformEnvironment<'_>, iam_url: &str) -> Value {
    let settings = auth_settings(at, iam_url);
    json!({
        "mainModule": AUTH_MODULE,
        "modules": { AUTH_MODULE: AUTH_WORKER, AUTH_SETTINGS_MODULE: settings },
        "bindings": [],
    })
}

/// Returns the module with the settings of the auth worker. JSON texts are valid JavaScript.
fn auth_settings(at: PlatformEnvironment<'_>, iam_url: &str) -> String {
    let url = format!("{}/api/core/session", iam_url.trim_end_matches('/'));
    let (platform, url) = (json!(at.platform_id), json!(url));
    format!(
        "export const platformId = {platform};\nexport const sessionUrl = {url};\nexport const version = {AUTH_VERSION};\n"
    )
}

/// Returns whether the resource records the current version of the auth worker.
pub(in crate::use_case::registry) fn is_current_auth(resource: &Resource) -> bool {
    resource.config.value()[AUTH_VERSION_SETTING] == AUTH_VERSION
}
