//! Limits on what callers create, counted in the unit of work that creates it: requests that come at once see each other.

use super::records::{Records, unowned};
use crate::iam::{Member, MemberQuery};
use crate::kernel::{Context, Error, Result, UserId};
use crate::port::{Persisted, UnitOfWork};
use crate::registry::{Onboarding, OnboardingQuery};

/// Refuses one more of something of which there are `count`.
///
/// # Errors
/// `LIMIT_REACHED`.
pub(crate) fn ensure_below(count: u64, limit: u32, message: &str) -> Result<()> {
    if limit == u32::MAX || count < u64::from(limit) {
        return Ok(());
    }
    Err(Error::limit_reached(limit, message))
}

/// Refuses one more record where `limit` records answer the query already.
///
/// # Errors
/// `LIMIT_REACHED`.
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

/// As [`ensure_room`], for what operators and services create for others without a limit.
///
/// # Errors
/// `LIMIT_REACHED`.
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

/// Refuses one more organization for a person, unless an operator calls. The organizations that they own count, and those
/// of their open onboardings.
///
/// # Errors
/// `LIMIT_REACHED`.
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
    let owned = unowned::<Member>(uow).count(&owned).await?;
    let open = OnboardingQuery::OpenOf(owner.clone());
    let open = unowned::<Onboarding>(uow).count(&open).await?;
    let message = "The person owns as many organizations as one person may own.";
    ensure_below(owned.saturating_add(open), limit, message)
}
