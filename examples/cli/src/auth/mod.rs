//! The tokens of signed-in people.

pub(crate) mod session;
pub(crate) mod token_store;
