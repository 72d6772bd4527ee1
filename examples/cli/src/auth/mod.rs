//! The tokens of signed-in people.

#[cfg_attr(not(feature = "keyring"), path = "no_keyring.rs")]
mod keyring;
pub(crate) mod session;
pub(crate) mod token_store;
