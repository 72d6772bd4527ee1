//! The table of resource secrets.

use core_domain::registry::{ResourceSecret, ResourceSecretQuery};

use crate::codec::{Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{Tabular, table};

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
