//! The configuration of platforms. Every value a key gets is a version of its history, in the same commit.

use super::Upserted;
use crate::access::{PlatformAccess, PlatformScope, audited, unaudited};
use crate::kernel::{
    ConfigId, ConfigVersionId, Context, Error, ListQuery, Page, Record, Result, Stored, grant,
};
use crate::port::UnitOfWork;
use crate::registry::{
    ConfigDiff, ConfigKey, ConfigVersion, ConfigVersionQuery, DiffVersions, PlatformConfig,
    PlatformConfigQuery, RollBackConfig, SetConfig,
};

/// More than there are keys.
const ALL_KEYS: u32 = 100;

/// Every key of a platform that was set, by name.
///
/// # Errors
/// When the store failed.
pub async fn list(
    scope: &PlatformScope<grant::ConfigRead>,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<PlatformConfig>>> {
    let configs = scope.records::<PlatformConfig>(uow);
    configs.list(&PlatformConfigQuery::All, ALL_KEYS).await
}

/// What a platform has under a key.
///
/// # Errors
/// `NOT_FOUND` for a key that was never set.
pub async fn get(
    scope: &PlatformScope<grant::ConfigRead>,
    uow: &mut dyn UnitOfWork,
    key: ConfigKey,
) -> Result<Stored<PlatformConfig>> {
    find(scope, uow, key).await?.ok_or_else(missing)
}

/// Sets a key. The value it has already makes no version.
///
/// # Errors
/// `VERSION_CONFLICT`.
pub async fn set(
    cx: &Context,
    scope: &PlatformScope<grant::ConfigWrite>,
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
    let stored = stored.map_err(set_elsewhere)?;
    record_version(cx, uow, &stored).await?;
    Ok(Upserted::new(stored))
}

/// Sets a key to the value that one of its versions had. The value it has already makes no version.
///
/// # Errors
/// `NOT_FOUND` for a key that was never set, and for an unknown version; `VERSION_CONFLICT`.
pub async fn roll_back(
    cx: &Context,
    scope: &PlatformScope<grant::ConfigWrite>,
    uow: &mut dyn UnitOfWork,
    key: ConfigKey,
    command: RollBackConfig,
) -> Result<Stored<PlatformConfig>> {
    let seen = find(scope, uow, key).await?.ok_or_else(missing)?;
    let target = numbered(scope, uow, key, command.version).await?;
    let next = seen.edit().with_value(target.config_value.clone());
    replace(cx, scope, uow, &seen, next, "config.rolled_back").await
}

async fn replace(
    cx: &Context,
    scope: &PlatformScope<grant::ConfigWrite>,
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

async fn record_version(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    config: &PlatformConfig,
) -> Result<()> {
    let id = ConfigVersionId::generate(config.updated_at, cx.entropy.as_ref());
    let version = ConfigVersion::of(id, config, &cx.caller);
    unaudited::insert(uow, version)
        .await
        .map_err(set_elsewhere)?;
    Ok(())
}

/// Two units that set one key: the one that comes second runs again and finds what the first one set.
fn set_elsewhere(error: Error) -> Error {
    match error {
        Error::Store(error) => error.conflict_as_retry().into(),
        error => error,
    }
}

/// The versions of a key, highest first.
///
/// # Errors
/// `NOT_FOUND` for a key that was never set; `INVALID_CURSOR`.
pub async fn history(
    scope: &PlatformScope<grant::ConfigRead>,
    uow: &mut dyn UnitOfWork,
    key: ConfigKey,
    query: &ListQuery,
) -> Result<Page<Stored<ConfigVersion>>> {
    get(scope, uow, key).await?;
    let versions = scope.records::<ConfigVersion>(uow);
    let of_key = ConfigVersionQuery::Of(key);
    versions.page(&of_key, &query.page()).await
}

/// A version of a key.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn version(
    scope: &PlatformScope<grant::ConfigRead>,
    uow: &mut dyn UnitOfWork,
    key: ConfigKey,
    version: i64,
) -> Result<Stored<ConfigVersion>> {
    numbered(scope, uow, key, version).await
}

/// What makes one version of a key another one.
///
/// # Errors
/// `NOT_FOUND` when there is no such version.
pub async fn diff(
    scope: &PlatformScope<grant::ConfigRead>,
    uow: &mut dyn UnitOfWork,
    key: ConfigKey,
    versions: DiffVersions,
) -> Result<ConfigDiff> {
    let from = numbered(scope, uow, key, versions.from).await?;
    let to = numbered(scope, uow, key, versions.to).await?;
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

async fn numbered(
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
