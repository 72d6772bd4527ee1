//! Entities, resources and the secrets of resources.

use core_domain::registry::{
    Entity, EntityQuery, Resource, ResourceQuery, ResourceSecret, ResourceSecretQuery,
};

use super::{NOT_DELETED, hide_deleted, not_deleted};
use crate::codec::{Int, Json, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{Tabular, table};

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
