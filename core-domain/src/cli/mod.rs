//! The command line's service: what makes an upload a site, and how large it may be.

mod site;

pub use site::{Limits, SiteBuilder, SiteError, SiteFile};
