//! Limits on the number of records that callers create. They are counted in the unit of work that creates the record,
//! so concurrent requests see each other. `u32::MAX` means no limit.

use super::records::{Records, unowned_records};
use crate::iam::{Member, MemberQuery};
use crate::kernel::{Context, Error, Result, UserId};
use crate::port::{Persisted, UnitOfWork};
use crate::registry::{Onboarding, OnboardingQuery};

/// Checks that `count` is below `limit`.
///
/// # Errors
/// `LIMIT_REACHED` with this message if `count` has reached `limit`.
pub(crate) fn ensure_below(count: u64, limit: u32, message: &str) -> Result<()> {
    if limit == u32::MAX || count < u64::from(limit) {
        return Ok(());
    }
    Err(Error::limit_reached(limit, message))
}

/// Checks that fewer than `limit` records match the query.
///
/// # Errors
/// `LIMIT_REACHED` with this message if `limit` or more records match.
pub(crate) async fn ensure_room<R: Persisted>(
    records: Records<'_, R>,
    query: &R::Query,
    limit: u32,
    message: &str,
) -> Result<()> {
    if limit == u32::MAX {
        return Ok(());
    }
    ensure_below(records.count(query).await?, limit, message)
}

/// Like [`ensure_room`], but operators and services have no limit.
///
/// # Errors
/// `LIMIT_REACHED` with this message if `limit` or more records match.
pub(crate) async fn ensure_room_unless_operator<R: Persisted>(
    cx: &Context,
    records: Records<'_, R>,
    query: &R::Query,
    limit: u32,
    message: &str,
) -> Result<()> {
    if cx.caller.is_operator() {
        return Ok(());
    }
    ensure_room(records, query, limit, message).await
}

/// Checks that a person may own one more organization; operators have no limit. Counts the organizations that the
/// person owns and those that their open onboardings will create.
///
/// # Errors
/// `LIMIT_REACHED` if the person owns the maximum number of organizations.
pub(crate) async fn ensure_can_own_another(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    owner: &UserId,
) -> Result<()> {
    let limit = cx.limits.organizations_per_owner;
    if limit == u32::MAX || cx.caller.is_operator() {
        return Ok(());
    }
    let owned = MemberQuery::OwnedBy(owner.clone());
    let owned = unowned_records::<Member>(uow).count(&owned).await?;
    let open = OnboardingQuery::OpenOf(owner.clone());
    let open = unowned_records::<Onboarding>(uow).count(&open).await?;
    let message = "The person already owns the maximum number of organizations.";
    ensure_below(owned.saturating_add(open), limit, message)
}
