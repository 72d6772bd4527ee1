//! The tables of platforms and of their lifecycle changes.

use core_domain::registry::{LifecycleQuery, LifecycleRecord, Platform, PlatformQuery};

use super::{NOT_DELETED, hide_deleted, not_deleted};
use crate::codec::{Bool, Json, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{Tabular, table};

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
        PlatformQuery::OfIncludingDeleted(organization) => {
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
    index { [platform_id, created_at], [created_at] }
    select lifecycle_records
}

fn lifecycle_records(query: &LifecycleQuery) -> Select {
    match query {
        LifecycleQuery::All => Select::of(LifecycleRecord::TABLE).order_by_desc("created_at"),
        LifecycleQuery::CreatedBefore(instant) => Select::of(LifecycleRecord::TABLE)
            .filter(Filter::lt("created_at", *instant))
            .order_by("created_at"),
    }
}
