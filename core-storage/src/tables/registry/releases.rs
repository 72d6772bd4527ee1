//! Configuration and deployment records.

use core_domain::registry::{
    ConfigVersion, ConfigVersionQuery, Deployment, DeploymentQuery, DeploymentStatus,
    PlatformConfig, PlatformConfigQuery,
};

use crate::codec::{Int, Json, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{IndexPredicate, Tabular, table};

const IN_FLIGHT: IndexPredicate =
    IndexPredicate::OneOf("status", &["queued", "uploading", "deploying"]);

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

table! {
    Deployment in "deployments" {
        id: Text,
        idempotency_key: Text,
        platform_id: Text,
        user_id: Text,
        cf_deployment_id: Opt<Text>,
        project_name: Text,
        branch: Text,
        url: Opt<Text>,
        error_message: Opt<Text>,
        status: Text,
        file_count: Opt<Int>,
        total_bytes: Opt<Int>,
        started_at: Opt<Time>,
        completed_at: Opt<Time>,
        created_at: Time,
        updated_at: Time,
        content_hash: Opt<Text>,
        job_id: Opt<Text>,
    }
    unique { idempotency_key: [platform_id, idempotency_key] }
    index {
        [platform_id, created_at],
        [platform_id, created_at] where [IN_FLIGHT],
        [platform_id, branch, created_at],
        [job_id, created_at],
    }
    select deployments
}

fn deployments(query: &DeploymentQuery) -> Select {
    let deployments = Select::of(Deployment::TABLE).order_by_desc("created_at");
    let in_flight = || Filter::one_of("status", DeploymentStatus::IN_FLIGHT);
    match query {
        DeploymentQuery::All {
            in_flight: in_flight_only,
        } => deployments.filter_if(in_flight_only.then(in_flight)),
        DeploymentQuery::WithKey(key) => {
            Select::of(Deployment::TABLE).filter(Filter::eq("idempotency_key", key))
        }
        DeploymentQuery::InFlightOf {
            branch,
            moved_since,
        } => deployments
            .filter(Filter::eq("branch", branch))
            .filter(in_flight())
            .filter(Filter::Or(vec![
                Filter::NotNull("job_id"),
                Filter::ge("updated_at", *moved_since),
            ])),
        DeploymentQuery::WithContent {
            branch,
            content_hash,
        } => deployments
            .filter(Filter::eq("branch", branch))
            .filter(Filter::eq("content_hash", content_hash)),
        DeploymentQuery::OfJob(job) => deployments.filter(Filter::eq("job_id", job)),
    }
}
