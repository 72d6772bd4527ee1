//! Organizations: creating them, choosing which one a session acts for, letting go of a platform that is gone.

mod active;
mod bootstrap;
mod create;
mod read;
mod release;

pub(in crate::use_case) use active::{set_active, set_active_if_none};
pub use bootstrap::{Bootstrapped, bootstrap};
pub(in crate::use_case) use create::{NewOrganization, create, slug_is_taken};
pub use read::{by_slug, create_for_owner};
pub(in crate::use_case) use release::release_platform;
