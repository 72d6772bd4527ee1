//! The command line's service: branches, what makes an upload a site, and how large it may be.

mod branch;
mod limits;
mod names;
mod site;
mod site_error;

pub use branch::{BRANCH_PATTERN, PRODUCTION, is_branch};
pub use limits::Limits;
pub use site::{SiteBuilder, SiteFile};
pub use site_error::SiteError;
