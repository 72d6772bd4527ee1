//! Tables of the registry.

use core_domain::registry::{
    Deployment, DeploymentQuery, DeploymentStatus, Entity, EntityQuery, LifecycleQuery,
    LifecycleRecord, Onboarding, OnboardingQuery, OnboardingStatus, Platform, PlatformQuery,
    Resource, ResourceQuery,
};

use crate::filter::Filter;
use crate::kind::{Bool, Int, Json, Opt, Text, Time};
use crate::query::Select;
use crate::{Only, Tabular, table};

const LIVING: Only = Only::IsNull("deleted_at");

fn living() -> Filter {
    Filter::IsNull("deleted_at")
}

/// Leaves deleted rows out unless they are wanted.
fn unless(deleted: bool) -> Option<Filter> {
    (!deleted).then(living)
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
    unique { slug: [slug] only [LIVING] }
    index { [created_at], [organization_id, created_at] }
    select platforms
}

fn platforms(query: &PlatformQuery) -> Select {
    let platforms = Select::of(Platform::TABLE).by_desc("created_at");
    match query {
        PlatformQuery::All { deleted } => platforms.only_if(unless(*deleted)),
        PlatformQuery::Of {
            organization_id,
            platform_id,
        } => {
            let mut own = vec![Filter::eq("organization_id", organization_id)];
            own.extend(platform_id.as_ref().map(|id| Filter::eq("id", id)));
            platforms.only(Filter::Or(own)).only(living())
        }
        PlatformQuery::WithSlug(slug) => platforms.only(Filter::eq("slug", slug)).only(living()),
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
        LifecycleQuery::OfPlatform(platform) => Select::of(LifecycleRecord::TABLE)
            .only(Filter::eq("platform_id", platform))
            .by_desc("created_at"),
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
        // Those at the top are siblings too, and a unique set does not cover rows with nothing in it.
        siblings: Text = |entity| entity.parent_id.as_ref().map_or_else(String::new, ToString::to_string),
    }
    unique { slug: [platform_id, siblings, slug] only [LIVING] }
    index { [platform_id, created_at], [parent_id, created_at] }
    parent parent_id
    select entities
}

fn entities(query: &EntityQuery) -> Select {
    let entities = Select::of(Entity::TABLE);
    match query {
        EntityQuery::OfPlatform {
            platform_id,
            entity_type,
            deleted,
        } => entities
            .only(Filter::eq("platform_id", platform_id))
            .only_if(entity_type.as_ref().map(|t| Filter::eq("entity_type", t)))
            .only_if(unless(*deleted))
            .by_desc("created_at"),
        EntityQuery::ChildrenOf(parent) => entities
            .only(Filter::eq("parent_id", parent))
            .only(living())
            .by_desc("created_at"),
        EntityQuery::TenantsOf(platform) => entities
            .only(Filter::eq("platform_id", platform))
            .only(Filter::IsNull("parent_id"))
            .only(living())
            .by("created_at"),
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
        cf_id: Opt<Text>,
        cf_url: Opt<Text>,
        status: Text,
        provision_job_id: Opt<Text>,
        config: Json,
        created_at: Time,
        updated_at: Time,
        deleted_at: Opt<Time>,
    }
    unique { cf_name: [platform_id, resource_type, environment, cf_name] only [LIVING] }
    index { [platform_id, created_at], [entity_id, created_at], [cf_name] }
    select resources
}

fn resources(query: &ResourceQuery) -> Select {
    let resources = Select::of(Resource::TABLE).by_desc("created_at");
    match query {
        ResourceQuery::OfPlatform {
            platform_id,
            deleted,
        } => resources
            .only(Filter::eq("platform_id", platform_id))
            .only_if(unless(*deleted)),
        ResourceQuery::OfEntity { entity_id, deleted } => resources
            .only(Filter::eq("entity_id", entity_id))
            .only_if(unless(*deleted)),
        ResourceQuery::Named {
            cf_name,
            platform_id,
        } => resources
            .only(Filter::eq("cf_name", cf_name))
            .only_if(platform_id.as_ref().map(|id| Filter::eq("platform_id", id)))
            .only(living()),
        ResourceQuery::Exactly {
            platform_id,
            resource_type,
            environment,
            cf_name,
        } => resources
            .only(Filter::eq("platform_id", platform_id))
            .only(Filter::eq("resource_type", resource_type))
            .only(Filter::eq("environment", environment))
            .only(Filter::eq("cf_name", cf_name))
            .only(living()),
        ResourceQuery::LivingOfType {
            platform_id,
            resource_type,
            environment,
            until,
        } => resources
            .only(Filter::eq("platform_id", platform_id))
            .only(Filter::eq("resource_type", resource_type))
            .only_if(environment.as_ref().map(|e| Filter::eq("environment", e)))
            .only(Filter::le("created_at", *until))
            .only(living()),
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
    index { [platform_id, created_at], [platform_id, branch, created_at], [platform_id, status, created_at] }
    select deployments
}

fn deployments(query: &DeploymentQuery) -> Select {
    let of = |platform| {
        Select::of(Deployment::TABLE)
            .only(Filter::eq("platform_id", platform))
            .by_desc("created_at")
    };
    let in_flight = || Filter::one_of("status", DeploymentStatus::IN_FLIGHT);
    match query {
        DeploymentQuery::OfPlatform {
            platform_id,
            in_flight: only,
        } => of(platform_id).only_if(only.then(in_flight)),
        DeploymentQuery::WithKey(platform, key) => {
            of(platform).only(Filter::eq("idempotency_key", key))
        }
        DeploymentQuery::InFlightOf(platform, branch) => of(platform)
            .only(Filter::eq("branch", branch))
            .only(in_flight()),
        DeploymentQuery::WithContent {
            platform_id,
            branch,
            content_hash,
        } => of(platform_id)
            .only(Filter::eq("branch", branch))
            .only(Filter::eq("content_hash", content_hash)),
    }
}

table! {
    Onboarding in "onboardings" {
        id: Text,
        platform_name: Text,
        slug: Text,
        tier: Text,
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
    unique { slug: [slug] only [Only::Is("status", "open")] }
    select onboardings
}

fn onboardings(query: &OnboardingQuery) -> Select {
    match query {
        OnboardingQuery::OpenWithSlug(slug) => Select::of(Onboarding::TABLE)
            .only(Filter::eq("slug", slug))
            .only(Filter::eq("status", &OnboardingStatus::Open)),
    }
}
