//! Identity and access: people, sessions, organizations, and the pure rules about them.

mod common_passwords;
mod credential;
mod oauth;
mod organization;
mod password;
mod service_token;
mod session;
mod sign_in_delay;
mod suspension;
mod user;

pub use credential::{CookieNames, CookieSigner, TokenHash};
pub use oauth::*;
pub use organization::{
    Bootstrap, Member, MemberQuery, Organization, OrganizationQuery, OrganizationType,
    SetUpOrganization, membership,
};
pub use password::{PasswordHash, check_password, normal_password};
pub use service_token::*;
pub use session::{LIFETIME, MAX_SESSIONS, Session, SessionQuery, SessionValidity};
pub use sign_in_delay::{FAILURES_FORGOTTEN_AFTER, sign_in_delay};
pub use suspension::{PlatformSuspension, PlatformSuspensionQuery};
pub use user::{Account, AccountQuery, CREDENTIAL, User, UserQuery};
