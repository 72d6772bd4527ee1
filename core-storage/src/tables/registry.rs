//! Tables of the registry.

use core_domain::registry::{
    CustomDomain, CustomDomainQuery, CustomDomainStatus, Deployment, DeploymentQuery,
    DeploymentStatus, DnsRecord, DnsRecordQuery, DnsRecordStatus, Entity, EntityQuery,
    LifecycleQuery, LifecycleRecord, Onboarding, OnboardingQuery, OnboardingStatus, Platform,
    PlatformQuery, Resource, ResourceQuery, WorkspaceStack, WorkspaceStackQuery,
};

use crate::codec::{Bool, Int, Json, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{IndexPredicate, Tabular, table};

const NOT_DELETED: IndexPredicate = IndexPredicate::IsNull("deleted_at");

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
    index { [created_at] include [deleted_at], [organization_id, created_at] }
    select platforms
}

fn platforms(query: &PlatformQuery) -> Select {
    let platforms = Select::of(Platform::TABLE).order_by_desc("created_at");
    match query {
        PlatformQuery::All { deleted } => platforms.filter_if(hide_deleted(*deleted)),
        PlatformQuery::Of {
            organization_id,
            platform_id,
        } => {
            let mut own = vec![Filter::eq("organization_id", organization_id)];
            own.extend(platform_id.as_ref().map(|id| Filter::eq("id", id)));
            platforms.filter(Filter::Or(own)).filter(not_deleted())
        }
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
        [entity_id, created_at] include [deleted_at],
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
    index { [platform_id, created_at] }
    select workspace_stacks
}

fn workspace_stacks(query: &WorkspaceStackQuery) -> Select {
    match query {
        WorkspaceStackQuery::All => Select::of(WorkspaceStack::TABLE).order_by_desc("created_at"),
    }
}

table! {
    DnsRecord in "dns_records" {
        id: Text,
        platform_id: Text,
        stack_id: Text,
        hostname: Text,
        target_type: Text,
        resource_id: Text,
        environment: Text,
        cf_route_id: Opt<Text>,
        status: Text,
        created_at: Time,
        updated_at: Time,
    }
    unique { hostname: [hostname] where [IndexPredicate::Is("status", "active")] }
    index { [stack_id, created_at] include [status], [resource_id, created_at] where [IndexPredicate::Is("status", "active")] }
    select dns_records
}

fn dns_records(query: &DnsRecordQuery) -> Select {
    let records = Select::of(DnsRecord::TABLE).order_by_desc("created_at");
    let active = || Filter::eq("status", &DnsRecordStatus::Active);
    match query {
        DnsRecordQuery::OfStack { stack_id, deleted } => records
            .filter(Filter::eq("stack_id", stack_id))
            .filter_if((!deleted).then(active)),
        DnsRecordQuery::LeadingTo(resource) => records
            .filter(Filter::eq("resource_id", resource))
            .filter(active()),
    }
}

const DOMAIN_NOT_DELETED: IndexPredicate =
    IndexPredicate::OneOf("status", &["pending", "verifying", "active", "failed"]);

table! {
    CustomDomain in "custom_domains" {
        id: Text,
        platform_id: Text,
        dns_record_id: Text,
        hostname: Text,
        target_dns: Text,
        cf_hostname_id: Opt<Text>,
        ssl_status: Text,
        status: Text,
        verified_at: Opt<Time>,
        missing_records: Json,
        created_at: Time,
        updated_at: Time,
        proof: Text,
        checked_since: Opt<Time>,
        job_id: Text,
    }
    unique { hostname: [hostname] where [DOMAIN_NOT_DELETED] }
    index {
        [platform_id, created_at] include [status],
        [dns_record_id, created_at] where [DOMAIN_NOT_DELETED],
        [created_at] where [IndexPredicate::OneOf("status", &["pending", "verifying"])],
    }
    select custom_domains
}

fn custom_domains(query: &CustomDomainQuery) -> Select {
    let domains = Select::of(CustomDomain::TABLE);
    let not_deleted = || Filter::of_index(DOMAIN_NOT_DELETED);
    match query {
        CustomDomainQuery::All { deleted } => domains
            .filter_if((!deleted).then(not_deleted))
            .order_by_desc("created_at"),
        CustomDomainQuery::OnDnsRecord(record) => domains
            .filter(Filter::eq("dns_record_id", record))
            .filter(not_deleted())
            .order_by_desc("created_at"),
        CustomDomainQuery::Unverified => domains
            .filter(Filter::one_of("status", CustomDomainStatus::UNVERIFIED))
            .order_by("created_at"),
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
    index { [platform_id, created_at], [platform_id, branch, created_at], [platform_id, status, created_at], [job_id, created_at] }
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
        DeploymentQuery::InFlightOf(branch) => deployments
            .filter(Filter::eq("branch", branch))
            .filter(in_flight()),
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
