//! Passkeys: registered by whoever has just proved who they are, shown to sign in or as a fresh proof, named and removed.

mod challenge;
mod own;
mod register;
mod show;

pub use challenge::{Begun, remove_expired_passkey_challenges};
pub use own::{list, remove, rename};
pub use register::{Registration, begin_registration, complete_registration};
pub use show::{Showing, Shown, begin_authentication, complete_authentication};
