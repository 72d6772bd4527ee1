//! Sessions: begun by every way to sign in, looked up by their token, listed and ended by their owner.

mod begin;
mod lookup;
mod own;

pub use begin::SignedIn;
pub(super) use begin::{as_user, begin};
pub(super) use lookup::grants_end;
pub use lookup::{ActiveMembership, SessionDetails, details, details_by_token, extend, is_known};
pub use own::{list, revoke, sign_out};
