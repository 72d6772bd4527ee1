//! Tables of the registry.

use core_domain::registry::{
    Build, BuildQuery, ConfigVersion, ConfigVersionQuery, Deployment, DeploymentQuery,
    DeploymentStatus, Entity, EntityQuery, FeatureActivation, FeatureActivationQuery,
    FeatureStatus, LifecycleQuery, LifecycleRecord, Onboarding, OnboardingQuery, OnboardingStatus,
    Platform, PlatformConfig, PlatformConfigQuery, PlatformQuery, Resource, ResourceQuery,
    ResourceSecret, ResourceSecretQuery, WorkspaceStack, WorkspaceStackQuery,
};

use crate::codec::{Bool, Int, Json, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{IndexPredicate, Tabular, table};

const NOT_DELETED: IndexPredicate = IndexPredicate::IsNull("deleted_at");
const IN_FLIGHT: IndexPredicate =
    IndexPredicate::OneOf("status", &["queued", "uploading", "deploying"]);

fn not_deleted() -> Filter {
    Filter::IsNull("deleted_at")
}

/// Hides deleted rows unless `deleted` asks for them too.
fn hide_deleted(deleted: bool) -> Option<Filter> {
    (!deleted).then(not_deleted)
}

table! {
    Platform in "platforms" {
        id: Text,
        name: Text,
        slug: Text,
        status: Text,
        tier: Text,
        cf_account_id: Opt<Text>,
        repo_name: Opt<Text>,
        payment_customer_id: Opt<Text>,
        owner_user_id: Opt<Text>,
        organization_id: Opt<Text>,
        cancelled_at: Opt<Time>,
        cancellation_reason: Opt<Text>,
        suspended_at: Opt<Time>,
        suspension_reason: Opt<Text>,
        trial_ends_at: Opt<Time>,
        created_at: Time,
        updated_at: Time,
        deleted_at: Opt<Time>,
        purging: Bool,
    }
    unique { slug: [slug] where [NOT_DELETED] }
    index {
        [created_at] include [deleted_at],
        [organization_id, created_at] include [deleted_at],
    }
    select platforms
}

fn platforms(query: &PlatformQuery) -> Select {
    let platforms = Select::of(Platform::TABLE).order_by_desc("created_at");
    match query {
        PlatformQuery::All { deleted } => platforms.filter_if(hide_deleted(*deleted)),
        PlatformQuery::Of(organization) => platforms
            .filter(Filter::eq("organization_id", organization))
            .filter(not_deleted()),
        PlatformQuery::WithId(id) => platforms.filter(Filter::eq("id", id)).filter(not_deleted()),
        PlatformQuery::BelongingTo(organization) => {
            platforms.filter(Filter::eq("organization_id", organization))
        }
        PlatformQuery::WithSlug(slug) => platforms
            .filter(Filter::eq("slug", slug))
            .filter(not_deleted()),
    }
}

table! {
    LifecycleRecord in "lifecycle_records" {
        id: Text,
        platform_id: Text,
        from_status: Opt<Text>,
        to_status: Text,
        triggered_by: Text,
        trigger_type: Text,
        reason: Opt<Text>,
        metadata: Json,
        created_at: Time,
    }
    index { [platform_id, created_at] }
    select lifecycle_records
}

fn lifecycle_records(query: &LifecycleQuery) -> Select {
    match query {
        LifecycleQuery::All => Select::of(LifecycleRecord::TABLE).order_by_desc("created_at"),
    }
}

table! {
    Entity in "entities" {
        id: Text,
        platform_id: Text,
        parent_id: Opt<Text>,
        depth: Int,
        entity_type: Text,
        name: Text,
        slug: Text,
        status: Text,
        created_at: Time,
        updated_at: Time,
        deleted_at: Opt<Time>,
    }
    computed {
        // Those at the top are siblings too, and a unique index does not cover rows with a NULL in it.
        siblings: Text = |entity| entity.parent_id.as_ref().map_or_else(String::new, ToString::to_string),
    }
    unique { slug: [platform_id, siblings, slug] where [NOT_DELETED] }
    index {
        [platform_id, created_at] include [deleted_at],
        [platform_id, entity_type, created_at] include [deleted_at],
        [parent_id, created_at] include [deleted_at],
    }
    parent parent_id
    select entities
}

fn entities(query: &EntityQuery) -> Select {
    let entities = Select::of(Entity::TABLE);
    match query {
        EntityQuery::Listed(filter) => {
            let of_type = filter.entity_type.as_ref();
            entities
                .filter_if(of_type.map(|t| Filter::eq("entity_type", t)))
                .filter_if(hide_deleted(filter.include_deleted))
                .order_by_desc("created_at")
        }
        EntityQuery::ChildrenOf(parent) => entities
            .filter(Filter::eq("parent_id", parent))
            .filter(not_deleted())
            .order_by_desc("created_at"),
        EntityQuery::Tenants => entities
            .filter(Filter::IsNull("parent_id"))
            .filter(not_deleted())
            .order_by("created_at"),
    }
}

table! {
    Resource in "resources" {
        id: Text,
        platform_id: Text,
        entity_id: Text,
        stack_id: Opt<Text>,
        service_name: Text,
        resource_type: Text,
        environment: Text,
        cf_name: Text,
        cf_account_id: Opt<Text>,
        cf_id: Opt<Text>,
        cf_url: Opt<Text>,
        status: Text,
        provision_job_id: Opt<Text>,
        config: Json,
        created_at: Time,
        updated_at: Time,
        deleted_at: Opt<Time>,
    }
    computed {
        // A unique index does not cover rows with a NULL in it.
        account: Text = |resource| resource.cf_account_id.as_ref().map_or_else(String::new, ToString::to_string),
    }
    unique { name: [account, resource_type, cf_name] where [NOT_DELETED] }
    index {
        [platform_id, created_at] include [deleted_at],
        [platform_id, entity_id, created_at] include [deleted_at],
        [cf_name],
    }
    select resources
}

fn resources(query: &ResourceQuery) -> Select {
    let resources = Select::of(Resource::TABLE).order_by_desc("created_at");
    match query {
        ResourceQuery::All { deleted } => resources.filter_if(hide_deleted(*deleted)),
        ResourceQuery::OfEntity { entity_id, deleted } => resources
            .filter(Filter::eq("entity_id", entity_id))
            .filter_if(hide_deleted(*deleted)),
        ResourceQuery::Named(cf_name) => resources
            .filter(Filter::eq("cf_name", cf_name))
            .filter(not_deleted()),
        ResourceQuery::Exactly {
            resource_type,
            environment,
            cf_name,
        } => resources
            .filter(Filter::eq("resource_type", resource_type))
            .filter(Filter::eq("environment", environment))
            .filter(Filter::eq("cf_name", cf_name))
            .filter(not_deleted()),
        ResourceQuery::OfTypeUntil {
            resource_type,
            environment,
            until,
        } => resources
            .filter(Filter::eq("resource_type", resource_type))
            .filter_if(environment.as_ref().map(|e| Filter::eq("environment", e)))
            .filter(Filter::le("created_at", *until))
            .filter(not_deleted()),
    }
}

table! {
    ResourceSecret in "resource_secrets" {
        id: Text,
        platform_id: Text,
        resource_id: Text,
        secret_name: Text,
        status: Text,
        last_set_at: Opt<Time>,
        created_at: Time,
        updated_at: Time,
    }
    unique { name: [resource_id, secret_name] }
    index { [platform_id, resource_id, created_at] }
    select resource_secrets
}

fn resource_secrets(query: &ResourceSecretQuery) -> Select {
    let secrets = Select::of(ResourceSecret::TABLE);
    match query {
        ResourceSecretQuery::OfResource(resource) => secrets
            .filter(Filter::eq("resource_id", resource))
            .order_by_desc("created_at"),
        ResourceSecretQuery::Named(resource, name) => secrets
            .filter(Filter::eq("resource_id", resource))
            .filter(Filter::eq("secret_name", name)),
    }
}

table! {
    FeatureActivation in "feature_activations" {
        id: Text,
        platform_id: Text,
        entity_id: Text,
        feature_id: Text,
        feature_version: Text,
        environment: Text,
        status: Text,
        activated_at: Opt<Time>,
        deactivated_at: Opt<Time>,
        created_at: Time,
        updated_at: Time,
        provision_job_id: Opt<Text>,
        service_url: Opt<Text>,
        package: Text,
    }
    unique { feature: [entity_id, environment, feature_id] }
    index { [platform_id, created_at], [platform_id, entity_id, created_at] }
    select feature_activations
}

fn feature_activations(query: &FeatureActivationQuery) -> Select {
    let features = Select::of(FeatureActivation::TABLE);
    let with = |wanted: fn(&FeatureStatus) -> bool| {
        let statuses = FeatureStatus::ALL.iter().filter(|status| wanted(status));
        Filter::one_of("status", statuses)
    };
    match query {
        FeatureActivationQuery::OfEntity { entity_id, in_use } => features
            .filter(Filter::eq("entity_id", entity_id))
            .filter_if(in_use.then(|| with(|status| status.is_in_use())))
            .order_by_desc("created_at"),
        FeatureActivationQuery::Exactly {
            entity_id,
            environment,
            feature_id,
        } => features
            .filter(Filter::eq("entity_id", entity_id))
            .filter(Filter::eq("environment", environment))
            .filter(Filter::eq("feature_id", feature_id)),
        FeatureActivationQuery::ByFeature {
            entity_id,
            environment,
            active,
        } => features
            .filter(Filter::eq("entity_id", entity_id))
            .filter(Filter::eq("environment", environment))
            .filter_if(active.then(|| Filter::eq("status", &FeatureStatus::Active)))
            .order_by("feature_id"),
        FeatureActivationQuery::OfPlatform {
            environment,
            inactive,
        } => features
            .filter_if(environment.as_ref().map(|e| Filter::eq("environment", e)))
            .filter_if((!inactive).then(|| with(|status| *status != FeatureStatus::Inactive)))
            .order_by_desc("created_at"),
    }
}

table! {
    Build in "builds" {
        id: Text,
        platform_id: Text,
        environment: Text,
        repo_name: Opt<Text>,
        last_commit_sha: Opt<Text>,
        cf_deployment_id: Opt<Text>,
        build_url: Opt<Text>,
        build_status: Text,
        triggered_by: Text,
        triggered_at: Time,
        completed_at: Opt<Time>,
        updated_at: Time,
        created_at: Time,
        job_id: Opt<Text>,
    }
    unique { job: [job_id] }
    index { [platform_id, created_at], [platform_id, environment, created_at] }
    select builds
}

fn builds(query: &BuildQuery) -> Select {
    let newest_first = || Select::of(Build::TABLE).order_by_desc("created_at");
    match query {
        BuildQuery::All => newest_first(),
        BuildQuery::In(environment) => {
            newest_first().filter(Filter::eq("environment", environment))
        }
        BuildQuery::OfJob(job) => Select::of(Build::TABLE).filter(Filter::eq("job_id", job)),
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
        DeploymentQuery::WithKey(key) => deployments.filter(Filter::eq("idempotency_key", key)),
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

table! {
    WorkspaceStack in "workspace_stacks" {
        id: Text,
        tenant_id: Text,
        platform_id: Text,
        name: Text,
        template_id: Opt<Text>,
        repo_name: Opt<Text>,
        status: Text,
        created_at: Time,
        updated_at: Time,
        is_default: Bool,
    }
    computed {
        default_of: Opt<Text> = |stack| stack.is_default.then(|| stack.tenant_id.to_string()),
    }
    unique {
        name: [tenant_id, name],
        default: [default_of] where [IndexPredicate::NotNull("default_of")],
    }
    index { [platform_id, created_at], [tenant_id, created_at] }
    select workspace_stacks
}

fn workspace_stacks(query: &WorkspaceStackQuery) -> Select {
    let stacks = Select::of(WorkspaceStack::TABLE).order_by_desc("created_at");
    match query {
        WorkspaceStackQuery::Listed(filter) => {
            let tenant = filter.tenant_id.as_ref();
            stacks.filter_if(tenant.map(|tenant| Filter::eq("tenant_id", tenant)))
        }
        WorkspaceStackQuery::DefaultOf(tenant) => stacks.filter(Filter::eq("default_of", tenant)),
    }
}

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
    Onboarding in "onboardings" {
        id: Text,
        requested_by: Text,
        requested_id: Opt<Text>,
        platform_name: Text,
        slug: Text,
        tier: Text,
        platform_tier: Text,
        stack_template_id: Opt<Text>,
        billing_email: Opt<Text>,
        user_id: Opt<Text>,
        session_id: Opt<Text>,
        platform_id: Text,
        job_id: Text,
        status: Text,
        created_at: Time,
        updated_at: Time,
    }
    unique {
        slug: [slug] where [IndexPredicate::Is("status", "open")],
        requested_id: [requested_by, requested_id],
    }
    index { [requested_id] }
    select onboardings
}

fn onboardings(query: &OnboardingQuery) -> Select {
    match query {
        OnboardingQuery::OpenWithSlug(slug) => Select::of(Onboarding::TABLE)
            .filter(Filter::eq("slug", slug))
            .filter(Filter::eq("status", &OnboardingStatus::Open)),
        OnboardingQuery::RequestedAs {
            requested_by,
            requested_id,
        } => Select::of(Onboarding::TABLE)
            .filter(Filter::eq("requested_by", requested_by))
            .filter(Filter::eq("requested_id", requested_id)),
        OnboardingQuery::WithRequestedId(requested_id) => Select::of(Onboarding::TABLE)
            .filter(Filter::eq("requested_id", requested_id))
            .order_by_desc("created_at"),
    }
}
