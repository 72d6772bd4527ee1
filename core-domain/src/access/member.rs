//! Who is a member of what.

use super::records::unowned;
use crate::iam::{Member, MemberQuery, Organization, membership};
use crate::kernel::{Membership, OrganizationId, Result, Stored, UserId};
use crate::port::UnitOfWork;

/// Somebody's membership in an organization.
///
/// # Errors
/// When the store failed.
pub(crate) async fn find_member(
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
    user: &UserId,
) -> Result<Option<Stored<Member>>> {
    let of = MemberQuery::Of(organization.clone(), user.clone());
    unowned::<Member>(uow).first(&of).await
}

/// What somebody may do in an organization now, if they are a member.
pub(super) async fn membership_of(
    uow: &mut dyn UnitOfWork,
    organization: &Organization,
    user: &UserId,
) -> Result<Option<Membership>> {
    let member = find_member(uow, &organization.id, user).await?;
    let now = uow.now().await?;
    Ok(member.map(|member| membership(organization, &member, now)))
}
