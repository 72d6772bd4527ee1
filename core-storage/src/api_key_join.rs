//! Reads an API key with its user, membership, organization and suspension in one joined query.

use async_trait::async_trait;
use core_domain::iam::{ApiKey, Member, Organization, PlatformSuspension, User};
use core_domain::kernel::StoreError;
use core_domain::port::{ApiKeyContext, ApiKeyContexts, ApiKeySecretKey};

use crate::filter::Filter;
use crate::join::{Join, On};
use crate::query::Select;
use crate::session_join::optional;
use crate::tabular::Tabular;
use crate::tabular::decode;
use crate::unit::RowUnit;
use crate::value::ReadRow;

const JOINS: &[Join] = &[
    Join {
        table: User::TABLE,
        on: &[of_key("id", "user_id")],
    },
    Join {
        table: Member::TABLE,
        on: &[
            of_key("organization_id", "organization_id"),
            of_key("user_id", "user_id"),
        ],
    },
    Join {
        table: Organization::TABLE,
        on: &[of_key("id", "organization_id")],
    },
    Join {
        table: PlatformSuspension::TABLE,
        on: &[of_key("platform_id", "platform_id")],
    },
];

const fn of_key(column: &'static str, source_column: &'static str) -> On {
    On {
        column,
        source: 0,
        source_column,
    }
}

fn context(rows: &[Option<&dyn ReadRow>]) -> Result<Option<ApiKeyContext>, StoreError> {
    let &[Some(key), user, member, organization, suspension] = rows else {
        return Ok(None);
    };
    Ok(Some(ApiKeyContext {
        key: decode(key)?,
        user: optional(user)?,
        member: optional(member)?,
        organization: optional(organization)?,
        suspension: optional(suspension)?,
    }))
}

#[async_trait]
impl ApiKeyContexts for RowUnit {
    async fn api_key_context(
        &mut self,
        secret: ApiKeySecretKey<'_>,
    ) -> Result<Option<ApiKeyContext>, StoreError> {
        let filter = match secret {
            ApiKeySecretKey::Current(hash) => Filter::eq("token_hash", hash),
            ApiKeySecretKey::Previous(hash) => Filter::eq("previous_hash", hash),
        };
        let select = Select::of(ApiKey::TABLE).filter(filter).limit(1);
        self.first_joined(&select, JOINS, context).await
    }
}
