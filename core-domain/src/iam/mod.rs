//! Identity and access: people, sessions, organizations, and the pure rules about them.

mod common_passwords;
mod credential;
mod organization;
mod password;
mod session;
mod suspension;
mod user;

pub use credential::{CookieNames, CookieSigner, TokenHash};
pub use organization::{
    Member, MemberQuery, Organization, OrganizationQuery, OrganizationType, membership,
};
pub use password::{check_password, normal_password};
pub use session::{LIFETIME, MAX_SESSIONS, Session, SessionQuery, Standing};
pub use suspension::{PlatformSuspension, PlatformSuspensionQuery};
pub use user::{Account, AccountQuery, CREDENTIAL, User, UserQuery};
