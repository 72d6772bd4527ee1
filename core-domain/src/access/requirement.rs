//! What a scope demands of its caller, as far as the caller alone can tell: for endpoints to refuse before they read
//! anything, and for their description.

use crate::kernel::{Caller, Error, Permission, Result};

/// What is demanded of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Requirement {
    /// Nothing.
    Public,
    /// To be known.
    SignedIn,
    /// To be a person; a key of theirs is none.
    Person,
    /// To be a person, or a program with a personal key of theirs.
    Account,
    /// To be a person known by a session.
    Session,
    /// To operate the installation.
    Operator,
    /// To be a service: the holder of the service key, or the suite itself.
    Service,
    /// This permission on what the request names.
    Permission(Permission),
    /// To be a person known by a session, with this permission on what the request names.
    SessionPermission(Permission),
    /// To be a person known by a session who may create an organization. Others who are known are refused with 403.
    NewOrganization,
}

impl Requirement {
    /// The same requirement, which only a person known by a session meets. Others are refused with 401.
    #[must_use]
    pub const fn by_session(self) -> Self {
        match self {
            Self::Permission(permission) => Self::SessionPermission(permission),
            _ => Self::Session,
        }
    }

    /// The permission that is demanded, if one is.
    #[must_use]
    pub const fn permission(self) -> Option<Permission> {
        match self {
            Self::Permission(permission) | Self::SessionPermission(permission) => Some(permission),
            _ => None,
        }
    }

    /// Tells whether the caller can meet the requirement at all. Permissions are looked at when it is known on what.
    ///
    /// # Errors
    /// `UNAUTHORIZED` when somebody must be known and nobody is, `FORBIDDEN` when somebody else is.
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
