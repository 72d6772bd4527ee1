//! DNS records of workspace stacks. A job has the hostname of a record lead to its resource.

mod create;
mod delete;
mod job;
mod read;
mod route_id;
mod rules;
mod stack;

pub use create::create;
pub use delete::delete;
pub(super) use delete::delete_leading_to;
pub(super) use job::{follow_job, record_proof, record_route};
pub use read::{get, get_of_stack, list};
pub(super) use route_id::record_route_id;
pub(super) use rules::{
    count_leading_to, ensure_none_leads_into, ensure_none_leads_to, not_deleted,
};
