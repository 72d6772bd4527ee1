//! Endpoints for the configuration of platforms, and its history.

use std::collections::BTreeMap;

use core_domain::access::PlatformScope;
use core_domain::kernel::{
    Code, JsonText, ListQuery, Page, PlatformId, Result, Stored, permission,
};
use core_domain::port::UnitOfWork;
use core_domain::registry::{
    ConfigDiff, ConfigKey, ConfigVersion, ConfigVersionNumber, DiffVersions, PlatformConfig,
    RollBackConfig, SetConfig,
};
use core_domain::use_case::registry::config;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::upserted;
use crate::kernel::{Cx, Endpoint, Input, Output, Row, Unparsed, Versioned, get, post, put};

/// The name of the path parameter with the configuration key.
const KEY: &str = "configKey";

const ALL: &str = "/api/v1/platforms/{platformId}/config";
const ONE: &str = "/api/v1/platforms/{platformId}/config/{configKey}";
const HISTORY: &str = "/api/v1/platforms/{platformId}/config/{configKey}/history";
const VERSION: &str = "/api/v1/platforms/{platformId}/config/{configKey}/history/{version}";
const DIFF: &str = "/api/v1/platforms/{platformId}/config/{configKey}/diff";
const ROLLBACK: &str = "/api/v1/platforms/{platformId}/config/{configKey}/rollback";

type Reads = PlatformScope<permission::ConfigRead>;
type Writes = PlatformScope<permission::ConfigWrite>;
/// The path parameter with the key. The keys are a fixed set, so an unknown key is a validation error and not a 404.
type Key = Unparsed<ConfigKey>;
type One = (PlatformId, Key);

pub(super) fn rows() -> Vec<Endpoint> {
    // An unknown key in the path is a validation error.
    let checked = |row: Row| row.refuses(&[Code::ValidationError]);
    vec![
        get(ALL, "listConfig")
            .summary("Returns the complete configuration of a platform.")
            .description(
                "`configs` has the current value of every key that was set. Keys that were never \
                 set are missing.",
            )
            .reads(list),
        checked(get(ONE, "getConfig"))
            .summary("Returns the current value of a configuration key.")
            .description(
                "The response has the value and its version number, which is also the entity tag.",
            )
            .reads(show),
        checked(put(ONE, "setConfig"))
            .summary("Sets the value of a configuration key.")
            .description(
                "Creates the key if it was never set, otherwise replaces its value. Every new \
                 value becomes a version in the history of the key. If the value is equal to the \
                 current one, no version is created, so repeated calls are harmless.",
            )
            .success(&[StatusCode::OK, StatusCode::CREATED])
            .if_match()
            .if_none_match()
            .writes(set),
        checked(get(HISTORY, "listConfigVersions"))
            .summary("Lists the versions of a configuration key, highest first.")
            .description(
                "Each version has the value and the actor that set it. Versions are immutable.",
            )
            .reads(history),
        checked(get(VERSION, "getConfigVersion"))
            .summary("Returns one version of a configuration key.")
            .description(
                "Versions are immutable. The number is that in `version` of the configuration.",
            )
            .reads(version),
        checked(get(DIFF, "diffConfigVersions"))
            .summary("Compares two versions of a configuration key.")
            .description(
                "Returns the JSON Patch operations (RFC 6902) that turn the value of version \
                 `from` into the value of version `to`. Either version may be the newer one.",
            )
            .reads(diff),
        checked(post(ROLLBACK, "rollBackConfig"))
            .summary("Sets a configuration key to the value of an earlier version.")
            .description(
                "The value is stored as a new version; no version is removed. If the key already \
                 has this value, no version is created.",
            )
            .if_match()
            .writes(roll_back),
    ]
}

/// The complete configuration of a platform.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PlatformConfigs {
    /// The id of the platform.
    platform_id: PlatformId,
    /// The current value of every key that was set.
    configs: BTreeMap<ConfigKey, JsonText>,
}

/// The value of a configuration key.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct ConfigView {
    #[serde(flatten)]
    config: PlatformConfig,
    /// `created` in the response to the request that created the key, otherwise `null`.
    #[schemars(extend("enum" = ["created", null]))]
    status: Option<&'static str>,
}

impl ConfigView {
    fn of(stored: &Stored<PlatformConfig>, created: bool) -> Self {
        Self {
            config: stored.edit(),
            status: created.then_some("created"),
        }
    }

    fn answer(stored: &Stored<PlatformConfig>) -> Versioned<Self> {
        Versioned::of(stored, Self::of(stored, false))
    }
}

async fn list(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    _: Input<(PlatformId,)>,
) -> Result<Output<PlatformConfigs>> {
    let found = config::list(&scope, uow).await?;
    let configs = found.into_iter().map(Stored::into_inner);
    Ok(Output::new(PlatformConfigs {
        platform_id: scope.id().clone(),
        configs: configs.map(|c| (c.config_key, c.config_value)).collect(),
    }))
}

async fn show(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<One>,
) -> Result<Versioned<ConfigView>> {
    let found = config::get(&scope, uow, input.path.1.parse(KEY)?).await?;
    Ok(ConfigView::answer(&found))
}

async fn set(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<One, (), SetConfig>,
) -> Result<Versioned<ConfigView>> {
    let set = config::set(cx, &scope, uow, input.path.1.parse(KEY)?, input.body).await?;
    Ok(upserted::upserted_response(
        &set,
        ConfigView::of(&set.record, set.created),
    ))
}

async fn history(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<One, ListQuery>,
) -> Result<Page<Stored<ConfigVersion>>> {
    config::history(&scope, uow, input.path.1.parse(KEY)?, &input.query).await
}

async fn version(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId, Key, ConfigVersionNumber)>,
) -> Result<Stored<ConfigVersion>> {
    let (_, key, version) = input.path;
    config::version(&scope, uow, key.parse(KEY)?, version.number()).await
}

async fn diff(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<One, DiffVersions>,
) -> Result<Output<ConfigDiff>> {
    let diff = config::diff(&scope, uow, input.path.1.parse(KEY)?, input.query).await?;
    Ok(Output::new(diff))
}

async fn roll_back(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<One, (), RollBackConfig>,
) -> Result<Versioned<ConfigView>> {
    let set = config::roll_back(cx, &scope, uow, input.path.1.parse(KEY)?, input.body).await?;
    Ok(ConfigView::answer(&set))
}
