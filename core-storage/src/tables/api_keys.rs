//! The table of API keys.

use core_domain::iam::{ApiKey, ApiKeyQuery, ApiKeyStatus};
use core_domain::kernel::Timestamp;

use crate::codec::{Int, Json, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{IndexPredicate, Tabular, table};

table! {
    ApiKey in "api_keys" {
        id: Text,
        user_id: Opt<Text>,
        organization_id: Opt<Text>,
        platform_id: Opt<Text>,
        name: Opt<Text>,
        prefix: Opt<Text>,
        start: Text,
        scopes: Opt<Json>,
        requests_per_minute: Int,
        status: Text,
        token_hash: Text,
        previous_hash: Opt<Text>,
        previous_until: Opt<Time>,
        expires_at: Opt<Time>,
        last_used_at: Opt<Time>,
        created_at: Time,
        updated_at: Time,
    }
    unique { token: [token_hash], previous: [previous_hash] }
    index {
        [user_id, created_at],
        [organization_id, created_at],
        [platform_id],
        [updated_at] where [IndexPredicate::Is("status", "revoked")],
        [expires_at] where [IndexPredicate::NotNull("expires_at")],
    }
    select api_keys
}

fn api_keys(query: &ApiKeyQuery) -> Select {
    let keys = Select::of(ApiKey::TABLE);
    let own_keys_of = |organization| {
        let of = Filter::eq("organization_id", organization);
        Select::of(ApiKey::TABLE)
            .filter(of)
            .filter(Filter::IsNull("user_id"))
    };
    match query {
        ApiKeyQuery::OfUser(user) => not_revoked(keys.filter(Filter::eq("user_id", user))),
        ApiKeyQuery::OfOrganization(organization) => not_revoked(own_keys_of(organization)),
        ApiKeyQuery::EndedOfUser(user, before) => keys
            .filter(Filter::eq("user_id", user))
            .filter(ended_before(*before)),
        ApiKeyQuery::ForgottenOfOrganization(organization, before) => {
            own_keys_of(organization).filter(ended_before(*before))
        }
        ApiKeyQuery::OfMember(organization, user) => keys
            .filter(Filter::eq("organization_id", organization))
            .filter(Filter::eq("user_id", user)),
        ApiKeyQuery::RevokedBefore(instant) => {
            keys.filter(revoked_before(*instant)).order_by("updated_at")
        }
        ApiKeyQuery::ExpiredBefore(instant) => keys.filter(expired_before(*instant)),
        ApiKeyQuery::OfPlatform(platform) => keys.filter(Filter::eq("platform_id", platform)),
    }
}

fn not_revoked(keys: Select) -> Select {
    keys.filter(Filter::ne("status", &ApiKeyStatus::Revoked))
        .order_by_desc("created_at")
}

fn ended_before(instant: Timestamp) -> Filter {
    Filter::Or(vec![revoked_before(instant), expired_before(instant)])
}

/// A revoked key does not change any more, so `updated_at` is the time of its revocation.
fn revoked_before(instant: Timestamp) -> Filter {
    let revoked = Filter::eq("status", &ApiKeyStatus::Revoked);
    revoked.and(Filter::le("updated_at", instant))
}

fn expired_before(instant: Timestamp) -> Filter {
    Filter::le("expires_at", instant)
}
