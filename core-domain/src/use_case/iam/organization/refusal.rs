//! What the use cases of organizations refuse with, in the words of the library whose clients read them.

use super::member::OwnMembership;
use crate::access::unowned;
use crate::iam::{Member, MemberQuery, Organization};
use crate::kernel::{
    Code, Error, OrganizationId, PermissionPattern, Result, Roles, Stored, UserId,
};
use crate::port::UnitOfWork;

/// A refusal whose message is its code, written as a sentence.
pub(super) fn refused(code: Code) -> Error {
    let words = code.as_str().replace('_', " ").to_ascii_lowercase();
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    Error::refused(code, first.into_iter().chain(letters).collect::<String>())
}

pub(super) async fn is_member_of(
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
    user: &UserId,
) -> Result<Option<Stored<Member>>> {
    let of = MemberQuery::Of(organization.clone(), user.clone());
    unowned::<Member>(uow).first(&of).await
}

/// Refuses roles that the organization does not have.
pub(super) fn role_is_known(organization: &Organization, roles: &Roles) -> Result<()> {
    match roles.iter().find(|role| !organization.roles.knows(role)) {
        None => Ok(()),
        Some(role) => {
            let message = format!("ROLE_NOT_FOUND: {role}");
            Err(Error::refused(Code::RoleNotFound, message))
        }
    }
}

/// Whether the person may do everything that the roles allow: nobody gives what they lack.
pub(super) fn holds_all_of(own: &OwnMembership, roles: &Roles) -> bool {
    let patterns = roles
        .iter()
        .flat_map(|role| own.organization.roles.patterns_of(&role));
    let mut patterns = patterns.filter_map(|pattern| PermissionPattern::parse(&pattern).ok());
    patterns.all(|pattern| own.may.permissions.covers(pattern.as_str()))
}
