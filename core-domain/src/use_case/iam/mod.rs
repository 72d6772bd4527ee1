//! Identity and access. Passwords are hashed and checked before the unit of work is opened, so these take the outcome.

mod authorize;
mod begin_session;
mod bootstrap;
mod organization;
mod resolve;
mod sessions;
mod sign_in;
mod sign_out;
mod sign_up;
mod suspension;
mod users;

pub use authorize::{Authorized, authorize};
pub use begin_session::SignedIn;
pub use bootstrap::{Bootstrap, Bootstrapped, Owner, bootstrap};
pub use organization::{
    NewOrganization, create_organization_with_owner, organization_slug_is_taken,
    set_active_organization,
};
pub use resolve::{Place, ResolvedSession, extend_session, resolve_session, resolve_session_of};
pub use sessions::{revoke_session, sessions_of_caller};
pub use sign_in::{PasswordOnFile, SignIn, password_on_file, sign_in, sign_in_failed};
pub use sign_out::sign_out;
pub use sign_up::{SignUp, sign_up, sign_up_refused};
pub use suspension::{flag_platform, platform_is_suspended, set_platform_suspension};
pub use users::user_exists;
