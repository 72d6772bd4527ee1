//! What IAM promises over time, as machines: steps in any order, against a plain model of what each of them leads to.

mod account_rights;
mod api_key;
mod device;
mod grants;
mod harness;
mod invitation;
mod session;
mod tokens;
