//! Reads a session with its user, membership, organization and suspension in one joined query.

use async_trait::async_trait;
use core_domain::iam::{Member, Organization, PlatformSuspension, Session, User};
use core_domain::kernel::{StoreError, Stored};
use core_domain::port::{SessionContext, SessionContexts, SessionKey};

use crate::filter::Filter;
use crate::join::{Join, On};
use crate::query::Select;
use crate::tabular::Tabular;
use crate::tabular::decode;
use crate::unit::RowUnit;
use crate::value::ReadRow;

const SESSION: usize = 0;
const MEMBER: usize = 2;
const ORGANIZATION: usize = 3;

const JOINS: &[Join] = &[
    Join {
        table: User::TABLE,
        on: &[equal("id", SESSION, "user_id")],
    },
    Join {
        table: Member::TABLE,
        on: &[
            equal("organization_id", SESSION, "active_organization_id"),
            equal("user_id", SESSION, "user_id"),
        ],
    },
    Join {
        table: Organization::TABLE,
        on: &[equal("id", MEMBER, "organization_id")],
    },
    Join {
        table: PlatformSuspension::TABLE,
        on: &[equal("platform_id", ORGANIZATION, "platform_id")],
    },
];

const fn equal(column: &'static str, source: usize, source_column: &'static str) -> On {
    On {
        column,
        source,
        source_column,
    }
}

fn context(rows: &[Option<&dyn ReadRow>]) -> Result<Option<SessionContext>, StoreError> {
    let &[Some(session), user, member, organization, suspension] = rows else {
        return Ok(None);
    };
    Ok(Some(SessionContext {
        session: decode(session)?,
        user: optional(user)?,
        member: optional(member)?,
        organization: optional(organization)?,
        suspension: optional(suspension)?,
    }))
}

/// Decodes the record of a row, if there is a row.
pub(crate) fn optional<R: Tabular>(
    row: Option<&dyn ReadRow>,
) -> Result<Option<Stored<R>>, StoreError> {
    row.map(|row| decode(row)).transpose()
}

#[async_trait]
impl SessionContexts for RowUnit {
    async fn session_context(
        &mut self,
        key: SessionKey<'_>,
    ) -> Result<Option<SessionContext>, StoreError> {
        let filter = match key {
            SessionKey::Token(hash) => Filter::eq("token_hash", hash),
            SessionKey::Id(id) => Filter::eq("id", id),
        };
        let select = Select::of(Session::TABLE).filter(filter).limit(1);
        self.first_joined(&select, JOINS, context).await
    }
}

impl RowUnit {
    /// Runs a joined query and returns what `read` extracts from its first row and the rows joined to it.
    pub(crate) async fn first_joined<T: Send>(
        &mut self,
        select: &Select,
        joins: &'static [Join],
        read: impl Fn(&[Option<&dyn ReadRow>]) -> Result<Option<T>, StoreError> + Send + Sync,
    ) -> Result<Option<T>, StoreError> {
        let mut found = None;
        let mut visit = |rows: &[Option<&dyn ReadRow>]| {
            found = read(rows)?;
            Ok(())
        };
        self.select_joined(select, joins, &mut visit).await?;
        Ok(found)
    }
}
