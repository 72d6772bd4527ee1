//! The auth worker of a platform: says who requests of the platform's users come from, by what IAM knows of their tokens.

use serde_json::json;

use super::resource::PlatformEnvironment;
use crate::port::{CreateResource, ResourceRef};
use crate::registry::{Resource, ResourceType, auth_worker_name};

/// The script.
const WORKER: &str = include_str!("auth.js");
const MAIN_MODULE: &str = "auth.js";
const SETTINGS_MODULE: &str = "config.js";

/// The version of the script: to be raised with every change of the file.
pub(super) const AUTH_VERSION: i64 = 1;

/// The setting of the worker's entry that tells its version.
pub(super) const VERSION_SETTING: &str = "authVersion";

/// The worker in an environment.
pub(in crate::use_case::registry) fn auth_ref(
    (platform, slug, environment): PlatformEnvironment<'_>,
) -> ResourceRef {
    ResourceRef {
        resource_type: ResourceType::Worker,
        name: auth_worker_name(platform, slug, environment),
    }
}

/// Asks for the worker with the current script, which asks the IAM at this address.
pub(super) fn auth_request(
    at: PlatformEnvironment<'_>,
    iam_url: &str,
    effect_key: String,
) -> CreateResource {
    let (main, settings) = (WORKER, settings(at, iam_url));
    CreateResource {
        resource: auth_ref(at),
        owner: at.0.to_string(),
        effect_key,
        config: json!({
            "mainModule": MAIN_MODULE,
            "modules": { MAIN_MODULE: main, SETTINGS_MODULE: settings },
            "bindings": [],
        }),
    }
}

/// The module of what the script has to know. JSON texts are JavaScript.
fn settings(at: PlatformEnvironment<'_>, iam_url: &str) -> String {
    let url = format!("{}/api/core/session", iam_url.trim_end_matches('/'));
    let (platform, url) = (json!(at.0), json!(url));
    format!(
        "export const platformId = {platform};\nexport const sessionUrl = {url};\nexport const version = {AUTH_VERSION};\n"
    )
}

/// Whether an entry says that the worker is of the current version.
pub(in crate::use_case::registry) fn is_current(entry: &Resource) -> bool {
    entry.config.value()[VERSION_SETTING] == AUTH_VERSION
}
