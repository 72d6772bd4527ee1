//! The command line's service: what makes an upload a site, and how large it may be.

mod limits;
mod names;
mod site;
mod site_error;

pub use limits::Limits;
pub use site::{SiteBuilder, SiteFile};
pub use site_error::SiteError;
