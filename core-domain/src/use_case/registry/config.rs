//! The configuration of platforms. Every change of a value is stored as a version in the same unit of work.

use super::Upserted;
use crate::access::{PlatformAccess, PlatformScope, audited, unaudited};
use crate::kernel::{
    ConfigId, ConfigVersionId, Context, Error, ListQuery, Page, Record, Result, Stored, permission,
};
use crate::port::UnitOfWork;
use crate::registry::{
    ConfigDiff, ConfigKey, ConfigVersion, ConfigVersionQuery, DiffVersions, PlatformConfig,
    PlatformConfigQuery, RollBackConfig, SetConfig,
};

/// A limit that exceeds the number of configuration keys.
const ALL_KEYS: u32 = 100;

/// Lists the configuration of a platform, sorted by key. Keys that were never set are not listed.
///
/// # Errors
/// Only those of the store.
pub async fn list(
    scope: &PlatformScope<permission::ConfigRead>,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<PlatformConfig>>> {
    let configs = scope.records::<PlatformConfig>(uow);
    configs.list(&PlatformConfigQuery::All, ALL_KEYS).await
}

/// Returns the value of a configuration key.
///
/// # Errors
/// `NOT_FOUND` if the key was never set.
pub async fn get(
    scope: &PlatformScope<permission::ConfigRead>,
    uow: &mut dyn UnitOfWork,
    key: ConfigKey,
) -> Result<Stored<PlatformConfig>> {
    find(scope, uow, key).await?.ok_or_else(missing)
}

/// Sets a configuration key. Setting the current value again creates no version.
///
/// # Errors
/// `VERSION_CONFLICT` if `If-Match` does not match.
pub async fn set(
    cx: &Context,
    scope: &PlatformScope<permission::ConfigWrite>,
    uow: &mut dyn UnitOfWork,
    key: ConfigKey,
    command: SetConfig,
) -> Result<Upserted<PlatformConfig>> {
    let value = command.config_value.into();
    if let Some(seen) = find(scope, uow, key).await? {
        let next = seen.edit().with_value(value);
        let stored = replace(cx, scope, uow, &seen, next, "config.updated").await?;
        return Ok(Upserted::existing(stored));
    }
    cx.check_absent()?;
    let now = uow.now().await?;
    let id = ConfigId::generate(now, cx.entropy.as_ref());
    let config = PlatformConfig::create(id, scope.id(), key, value, now);
    let stored = audited::insert(cx, scope, uow, config, "config.created").await;
    let stored = stored.map_err(conflict_as_retry)?;
    record_version(cx, uow, &stored).await?;
    Ok(Upserted::new(stored))
}

/// Sets a key to the value of one of its versions. Nothing is written if the key already has this value.
///
/// # Errors
/// `NOT_FOUND` if the key was never set or the version does not exist; `VERSION_CONFLICT` if `If-Match` does not match.
pub async fn roll_back(
    cx: &Context,
    scope: &PlatformScope<permission::ConfigWrite>,
    uow: &mut dyn UnitOfWork,
    key: ConfigKey,
    command: RollBackConfig,
) -> Result<Stored<PlatformConfig>> {
    let seen = find(scope, uow, key).await?.ok_or_else(missing)?;
    let target = find_version(scope, uow, key, command.version).await?;
    let next = seen.edit().with_value(target.config_value.clone());
    replace(cx, scope, uow, &seen, next, "config.rolled_back").await
}

/// Replaces a value, and stores a version if the record changed.
async fn replace(
    cx: &Context,
    scope: &PlatformScope<permission::ConfigWrite>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<PlatformConfig>,
    next: PlatformConfig,
    action: &'static str,
) -> Result<Stored<PlatformConfig>> {
    let stored = audited::replace(cx, scope, uow, seen, next, action).await?;
    if stored.version != seen.version {
        record_version(cx, uow, &stored).await?;
    }
    Ok(stored)
}

/// Stores the current value as a version.
async fn record_version(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    config: &PlatformConfig,
) -> Result<()> {
    let id = ConfigVersionId::generate(config.updated_at, cx.entropy.as_ref());
    let version = ConfigVersion::of(id, config, &cx.caller);
    unaudited::insert(uow, version)
        .await
        .map_err(conflict_as_retry)?;
    Ok(())
}

/// Converts a conflict with a concurrent change of the same key to a retry. The retry sees the other value.
fn conflict_as_retry(error: Error) -> Error {
    match error {
        Error::Store(error) => error.conflict_as_retry().into(),
        error => error,
    }
}

/// Lists the versions of a key, highest number first.
///
/// # Errors
/// `NOT_FOUND` if the key was never set; `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn history(
    scope: &PlatformScope<permission::ConfigRead>,
    uow: &mut dyn UnitOfWork,
    key: ConfigKey,
    query: &ListQuery,
) -> Result<Page<Stored<ConfigVersion>>> {
    get(scope, uow, key).await?;
    let versions = scope.records::<ConfigVersion>(uow);
    let of_key = ConfigVersionQuery::Of(key);
    versions.page(&of_key, &query.page()).await
}

/// Returns a version of a key.
///
/// # Errors
/// `NOT_FOUND` if the key has no version with this number.
pub async fn version(
    scope: &PlatformScope<permission::ConfigRead>,
    uow: &mut dyn UnitOfWork,
    key: ConfigKey,
    version: i64,
) -> Result<Stored<ConfigVersion>> {
    find_version(scope, uow, key, version).await
}

/// Compares two versions of a key.
///
/// # Errors
/// `NOT_FOUND` if one of the versions does not exist.
pub async fn diff(
    scope: &PlatformScope<permission::ConfigRead>,
    uow: &mut dyn UnitOfWork,
    key: ConfigKey,
    versions: DiffVersions,
) -> Result<ConfigDiff> {
    let from = find_version(scope, uow, key, versions.from).await?;
    let to = find_version(scope, uow, key, versions.to).await?;
    Ok(ConfigDiff::between(&from, &to))
}

async fn find(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    key: ConfigKey,
) -> Result<Option<Stored<PlatformConfig>>> {
    let configs = scope.records::<PlatformConfig>(uow);
    configs.first(&PlatformConfigQuery::Of(key)).await
}

/// Returns the version of a key with this number.
async fn find_version(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    key: ConfigKey,
    version: i64,
) -> Result<Stored<ConfigVersion>> {
    let versions = scope.records::<ConfigVersion>(uow);
    let numbered = ConfigVersionQuery::Numbered(key, version);
    let found = versions.first(&numbered).await?;
    found.ok_or(Error::NotFound(ConfigVersion::KIND))
}

const fn missing() -> Error {
    Error::NotFound(PlatformConfig::KIND)
}
