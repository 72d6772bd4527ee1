//! The table of resources.

use core_domain::registry::{AccountName, Resource, ResourceQuery};

use super::{NOT_DELETED, hide_deleted, not_deleted};
use crate::codec::{Json, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{IndexPredicate, Tabular, table};

table! {
    Resource in "resources" {
        id: Text,
        platform_id: Text,
        entity_id: Text,
        stack_id: Opt<Text>,
        feature_activation_id: Opt<Text>,
        service_name: Text,
        resource_type: Text,
        environment: Text,
        cf_name: Text,
        cf_account_id: Opt<Text>,
        cf_id: Opt<Text>,
        cf_url: Opt<Text>,
        status: Text,
        provision_job_id: Opt<Text>,
        removal_job_id: Opt<Text>,
        config: Json,
        created_at: Time,
        updated_at: Time,
        deleted_at: Opt<Time>,
    }
    computed {
        // A unique index does not cover rows with a NULL, so this column is empty for resources without an account.
        account: Text = |resource| account_of(resource.cf_account_id.as_ref()),
    }
    unique { name: [account, resource_type, cf_name] where [NOT_DELETED] }
    index {
        [platform_id, created_at] include [deleted_at],
        [platform_id, entity_id, created_at] include [deleted_at],
        [platform_id, stack_id, created_at] include [deleted_at],
        [platform_id, feature_activation_id, created_at] include [deleted_at] where [IndexPredicate::NotNull("feature_activation_id")],
        [platform_id, removal_job_id, created_at] where [IndexPredicate::NotNull("removal_job_id")],
        [cf_name],
    }
    select resources
}

/// Returns the account as the unique index has it.
fn account_of(account: Option<&AccountName>) -> String {
    account.map_or_else(String::new, ToString::to_string)
}

fn resources(query: &ResourceQuery) -> Select {
    let resources = Select::of(Resource::TABLE).order_by_desc("created_at");
    match query {
        ResourceQuery::All { deleted } => resources.filter_if(hide_deleted(*deleted)),
        ResourceQuery::OfEntity { entity_id, deleted } => resources
            .filter(Filter::eq("entity_id", entity_id))
            .filter_if(hide_deleted(*deleted)),
        ResourceQuery::OfStack(stack_id) => resources
            .filter(Filter::eq("stack_id", stack_id))
            .filter(not_deleted()),
        ResourceQuery::OfFeature(feature) => resources
            .filter(Filter::eq("feature_activation_id", feature))
            .filter(not_deleted()),
        ResourceQuery::ToRemove {
            job_id,
            resource_type,
        } => resources
            .filter(Filter::eq("removal_job_id", job_id))
            .filter(Filter::eq("resource_type", resource_type)),
        ResourceQuery::Named(cf_name) => resources
            .filter(Filter::eq("cf_name", cf_name))
            .filter(not_deleted()),
        ResourceQuery::OfObject {
            cf_account_id,
            resource_type,
            cf_name,
        } => resources
            .filter(Filter::eq("account", &*account_of(cf_account_id.as_ref())))
            .filter(Filter::eq("resource_type", resource_type))
            .filter(Filter::eq("cf_name", cf_name))
            .filter(not_deleted()),
        ResourceQuery::EverNamed(cf_name) => resources.filter(Filter::eq("cf_name", cf_name)),
        ResourceQuery::InEnvironment(environment) => resources
            .filter(Filter::eq("environment", environment))
            .filter(not_deleted()),
        ResourceQuery::Exactly {
            resource_type,
            cf_name,
        } => resources
            .filter(Filter::eq("resource_type", resource_type))
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
