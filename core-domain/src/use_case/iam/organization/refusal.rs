//! What the use cases of organizations refuse with, in the words of the library whose clients read them.

use crate::iam::Organization;
use crate::kernel::{Code, Error, Result, Roles};

/// A refusal whose message is its code, written as a sentence.
pub(super) fn refused(code: Code) -> Error {
    let words = code.as_str().replace('_', " ").to_ascii_lowercase();
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    Error::refused(code, first.into_iter().chain(letters).collect::<String>())
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
