//! The rules of the CLI service: the allowed content and the maximum size of an uploaded site.

mod site;

pub use site::{SiteBuilder, SiteError, SiteFile, SiteLimits};
