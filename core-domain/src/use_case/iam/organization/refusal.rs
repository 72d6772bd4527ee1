//! Refusals that several use cases of organizations share.

use crate::iam::Organization;
use crate::kernel::{Code, Error, Result, Roles};

/// Refuses roles that the organization does not have.
pub(super) fn ensure_roles_known(organization: &Organization, roles: &Roles) -> Result<()> {
    match roles.iter().find(|role| !organization.roles.knows(role)) {
        None => Ok(()),
        Some(role) => {
            let message = format!("ROLE_NOT_FOUND: {role}");
            Err(Error::refused(Code::RoleNotFound, message))
        }
    }
}
