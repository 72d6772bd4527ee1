//! The tables of platform configurations and their versions.

use core_domain::registry::{
    ConfigVersion, ConfigVersionQuery, PlatformConfig, PlatformConfigQuery,
};

use crate::codec::{Int, Json, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{Tabular, table};

table! {
    PlatformConfig in "platform_configs" {
        id: Text,
        platform_id: Text,
        config_key: Text,
        config_value: Json,
        version: Int,
        updated_at: Time,
    }
    unique { config_key: [platform_id, config_key] }
    select platform_configs
}

fn platform_configs(query: &PlatformConfigQuery) -> Select {
    let configs = Select::of(PlatformConfig::TABLE).order_by("config_key");
    match query {
        PlatformConfigQuery::All => configs,
        PlatformConfigQuery::Of(key) => configs.filter(Filter::eq("config_key", key)),
    }
}

table! {
    ConfigVersion in "config_versions" {
        id: Text,
        platform_id: Text,
        config_key: Text,
        version: Int,
        config_value: Json,
        actor_id: Text,
        actor_type: Text,
        created_at: Time,
    }
    unique { version: [platform_id, config_key, version] }
    index { [platform_id, config_key, version] }
    select config_versions
}

fn config_versions(query: &ConfigVersionQuery) -> Select {
    let of = |key| {
        Select::of(ConfigVersion::TABLE)
            .filter(Filter::eq("config_key", key))
            .order_by_desc("version")
    };
    match query {
        ConfigVersionQuery::Of(key) => of(key),
        ConfigVersionQuery::Numbered(key, version) => {
            of(key).filter(Filter::eq("version", *version))
        }
    }
}
