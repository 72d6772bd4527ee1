//! Requirements that can be checked from the caller alone. Endpoints check them before they read anything, and show
//! them in their API description.

use crate::kernel::{Caller, Error, Permission, Result};

/// A requirement on the caller of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Requirement {
    /// No requirement; anonymous callers are accepted.
    Public,
    /// A caller who is authenticated in any way.
    SignedIn,
    /// A person. API keys are refused, also the person's own.
    Person,
    /// A person, or a program with a personal API key of that person.
    Account,
    /// A person with a session.
    Session,
    /// An operator of the installation.
    Operator,
    /// A service: the holder of the service key, or the suite itself.
    Service,
    /// A caller with this permission on the addressed record.
    Permission(Permission),
    /// A person with a session who has this permission on the addressed record.
    SessionPermission(Permission),
    /// A person with a session who may create an organization. Other authenticated callers are refused with 403.
    NewOrganization,
}

impl Requirement {
    /// Returns the same requirement restricted to persons with a session. Other callers are refused with 401.
    #[must_use]
    pub const fn by_session(self) -> Self {
        match self {
            Self::Permission(permission) => Self::SessionPermission(permission),
            _ => Self::Session,
        }
    }

    /// Returns the required permission, if any.
    #[must_use]
    pub const fn permission(self) -> Option<Permission> {
        match self {
            Self::Permission(permission) | Self::SessionPermission(permission) => Some(permission),
            _ => None,
        }
    }

    /// Checks the part of the requirement that depends on the caller alone. Permissions are checked later, when the
    /// addressed record is known.
    ///
    /// # Errors
    /// - `UNAUTHORIZED` if the caller is anonymous, or is not the required person or session.
    /// - `FORBIDDEN` if an authenticated caller is not an operator or a service, or has no session to create an
    ///   organization.
    pub fn check(self, caller: &Caller) -> Result<()> {
        let refuse = |met: bool, refusal| if met { Ok(()) } else { Err(refusal) };
        match self {
            Self::Public => return Ok(()),
            Self::Person => return refuse(caller.person_id().is_some(), Error::Unauthorized),
            Self::Account => return refuse(caller.account_id().is_some(), Error::Unauthorized),
            Self::Session | Self::SessionPermission(_) => {
                return refuse(caller.session_id().is_some(), Error::Unauthorized);
            }
            _ => refuse(!caller.is_anonymous(), Error::Unauthorized)?,
        }
        match self {
            Self::Operator => refuse(caller.is_operator(), Error::Forbidden),
            Self::Service => refuse(caller.is_service(), Error::Forbidden),
            Self::NewOrganization => refuse(caller.session_id().is_some(), Error::Forbidden),
            _ => Ok(()),
        }
    }
}
