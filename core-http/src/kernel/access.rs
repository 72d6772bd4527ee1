//! Who may call an endpoint at all. Finer questions are the use case's.

use core_domain::kernel::{Caller, Error, Result};

/// The class of callers an endpoint is open to; checked before anything of the request is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody.
    Public,
    /// Whoever is known.
    Signed,
    /// A person known by a session.
    Session,
    /// Whoever operates the installation.
    Operator,
    /// The holder of the service key, and the suite itself.
    Service,
}

impl Access {
    /// Tells whether the caller belongs to the class.
    ///
    /// # Errors
    /// `UNAUTHORIZED` when nobody is known, `FORBIDDEN` when somebody else is.
    pub fn check(self, caller: &Caller) -> Result<()> {
        match self {
            Self::Public => Ok(()),
            Self::Signed => caller.signed_in(),
            Self::Operator => caller.operator(),
            Self::Session => caller.session_id().map(drop).ok_or(Error::Unauthorized),
            Self::Service => {
                caller.signed_in()?;
                match caller {
                    Caller::Service { .. } | Caller::System => Ok(()),
                    _ => Err(Error::Forbidden),
                }
            }
        }
    }
}
