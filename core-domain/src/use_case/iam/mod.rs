//! Use cases of identity and access management. Passwords are hashed and verified before a unit of work is opened, so
//! these functions take the result.

pub mod api_key;
mod caller;
mod eviction;
pub mod oauth;
pub mod organization;
pub mod own_access;
pub mod passkey;
pub mod permission_grant;
pub mod role_mapping;
pub mod service_token;
pub mod session;
pub mod suspension;
pub mod two_factor;
pub mod user;
pub mod verification;

pub use caller::{NamedOrganization, current_caller, named_api_key, named_person, named_session};
