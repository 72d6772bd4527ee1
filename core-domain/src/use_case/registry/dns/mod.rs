//! DNS records of workspace stacks. What is entered here makes and removes nothing in the DNS by itself.

mod create;
mod delete;
mod read;
mod rules;
mod stack;

pub use create::create;
pub use delete::delete;
pub(super) use delete::delete_leading_to;
pub use read::{get, get_of_stack, list};
pub(super) use rules::{ensure_none_leads_into, ensure_none_leads_to, not_deleted};
