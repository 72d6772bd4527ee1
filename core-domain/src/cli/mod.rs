//! The command line's service: which uploads are sites, and how large they may be.

mod branch;
mod site;

pub use branch::{BRANCH_PATTERN, PRODUCTION, is_branch};
pub use site::{Limits, SiteBuilder, SiteError};
