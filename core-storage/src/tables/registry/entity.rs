//! The table of entities.

use core_domain::registry::{Entity, EntityQuery};

use super::{NOT_DELETED, hide_deleted, not_deleted};
use crate::codec::{Int, Opt, Text, Time};
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
        // Root entities are siblings of each other. A unique index does not cover rows with a NULL, so this column is
        // empty for them.
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
