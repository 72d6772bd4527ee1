//! State machine tests of IAM: steps in random order, each compared with a simple model.

mod account_rights;
mod api_key;
mod device;
mod grants;
mod harness;
mod invitation;
mod session;
mod tokens;
