//! Sessions: begun by every way to sign in, looked up by their token, listed and ended by their owner.

mod begin;
mod lookup;
mod own;

pub use begin::SignedIn;
pub(super) use begin::{as_user, begin, begin_for_client};
pub(super) use lookup::grants_end;
pub use lookup::{ActiveMembership, SessionDetails, details, details_by_token, extend, is_known};
pub(super) use own::{Kept, end_all};
pub use own::{list, revoke, revoke_all, revoke_named, sign_out};
